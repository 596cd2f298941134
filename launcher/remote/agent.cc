#include "launcher/remote/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <cstring>
#include <filesystem>
#include <optional>

#include "launcher/host/helper_child.h"
#include "launcher/host/job_signals.h"
#include "launcher/host/own_process.h"
#include "launcher/remote/agent_channel.h"
#include "launcher/remote/command.h"
#include "launcher/remote/fan_out.h"
#include "launcher/remote/launcher_lines.h"
#include "launcher/remote/log_collection.h"
#include "launcher/remote/ship_environment.h"
#include "launcher/remote/tunnel.h"
#include "launcher/ship/store.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/version.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher::remote {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Stream = asio::posix::stream_descriptor;

constexpr std::size_t kMaxWaiting =
    1 << 20;  // for the controller; then the launcher's output stays in its pipe
constexpr int kStopped = 128 + SIGTERM, kRefused = 125;
constexpr std::chrono::minutes kLongestIdle{
    20};  // without a launcher, or a word from the controller, which may be gone unnoticed
constexpr std::chrono::minutes kLongestStop{10};  // of a launcher, whose own grace is much shorter

/// A second of slack: the clock of files is coarser, and on another machine where they are on a network.
std::int64_t files_since() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec - 1) * std::int64_t{1'000'000'000} + now.tv_nsec;
}

class Agent final : private FanOutListener {
 public:
  explicit Agent(const Environ& environment)
      : environment_(environment),
        decoder_(kLongestOrder, false),
        input_(loop_, STDIN_FILENO),
        output_(loop_, STDOUT_FILENO),
        said_(loop_),
        shown_(loop_),
        ended_(loop_),
        stop_(loop_),
        idle_(loop_),
        signals_(loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int number) { stop(number); }) {}

  int run() {
    input_.native_non_blocking(true);
    output_.native_non_blocking(true);
    outgoing_ = kMarker;
    Hello hello;
    hello.version = FLEETRUN_VERSION;
    hello.connection = environment_.value_or("SSH_CONNECTION", "");
    hello.host = host_name();
    send(hello);
    read_input();
    watch_idleness();
    loop_.run();
    if (store_ && store_->list().removed) remove_store();
    return status_;
  }

 private:
  // The channel.

  void read_input() {
    input_.async_wait(Stream::wait_read, [this](const error_code& error) {
      if (error || !take_input()) return;
      read_input();
    });
  }

  bool take_input() {
    char bytes[64 << 10];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) {
      if (!numbered_) complain_of_no_input();
      on_channel_end();
      return false;
    }
    heard_ = true;
    decoder_.append({bytes, static_cast<std::size_t>(count)});
    try {
      while (auto frame = decoder_.next()) {
        if (!std::exchange(numbered_, true)) number_ = frame->host;
        if (frame->host == number_)
          std::visit([this](auto& message) { on(message); }, frame->message);
        else if (others_)
          others_->send(frame->host, std::move(frame->message));
      }
    } catch (const Error&) {
      on_channel_end();
      return false;
    }
    return true;
  }

  static void complain_of_no_input() {
    write_all(STDERR_FILENO,
              "its input ended before a word came (StdinNull in ~/.ssh/config, or a start file of the shell "
              "that reads?)\n");
  }

  void send(Message message) { send(number_, std::move(message)); }

  void send(std::uint32_t host, Message message) {
    if (channel_gone_) return;
    outgoing_.append(encode(Addressed{host, std::move(message)}));
    write();
    if (others_ && waiting() >= kMaxWaiting && !std::exchange(others_held_, true))
      others_->set_reading(false);
  }

  void write() {
    if (!writing_.empty() || outgoing_.empty()) return;
    writing_.swap(outgoing_);
    asio::async_write(output_, asio::buffer(writing_), [this](const error_code& error, std::size_t) {
      writing_.clear();
      if (error) return on_channel_end();
      write();
      drained();
    });
  }

  std::size_t waiting() const { return outgoing_.size() + writing_.size(); }

  /// There is room again for what the launcher and its logs have.
  void drained() {
    if (waiting() < kMaxWaiting && !output_held_ && std::exchange(held_, false)) read_shown();
    if (waiting() < kMaxWaiting && std::exchange(others_held_, false)) others_->set_reading(true);
    if (sender_) send_files();
    end_if_possible();
  }

  /// Nobody is there any more: what runs here stops.
  void on_channel_end() {
    if (std::exchange(channel_gone_, true)) return;
    outgoing_.clear();
    if (others_) others_->close();
    output_held_ = false;
    tunnel_.reset();
    stop(SIGTERM);
    if (std::exchange(held_, false)) read_shown();
  }

  /// There is nothing left to wait for: the launcher has ended, other hosts' agents too,
  /// and all has been said.
  void end_if_possible() {
    if (!channel_gone_ && !leaving_ && !stopped_) return;
    if (launcher_ || (others_ && others_->alive() > 0) || (!channel_gone_ && waiting() > 0)) return;
    loop_.stop();
  }

  void watch_idleness() {
    idle_.expires_after(kLongestIdle);
    idle_.async_wait([this](const error_code& error) {
      if (error) return;
      const bool busy = launcher_ || sender_ || (others_ && others_->alive() > 0);
      if (!std::exchange(heard_, false) && !busy) return loop_.stop();
      watch_idleness();
    });
  }

  // Agents of other hosts, which are started from here.

  void on(Start& start) {
    FanOutSettings settings;
    if (start.ships && store_) settings.cargo = cargo_of(*store_, start.ship_root);
    settings.ssh = std::move(start.ssh);
    settings.program = std::move(start.program);
    settings.environment = environment_.entries();
    settings.window = start.window;
    settings.tree_above = start.hosts.size();
    settings.seed = number_;
    std::vector<Destination> destinations;
    for (std::size_t i = 0; i < start.hosts.size(); ++i)
      destinations.push_back({start.numbers[i], std::move(start.hosts[i]), false});
    try {
      others_ = make_fan_out(loop_, std::move(settings), *this);
      others_->start(std::move(destinations));
    } catch (const Error& error) {
      for (const std::uint32_t host : start.numbers) send(host, Verdict{error.what(), error.hint()});
    }
  }

  void on_joined(std::uint32_t host, const Hello& hello) override { send(host, hello); }
  void on_refused(std::uint32_t host, const LoginFailure& failure, int) override {
    send(host, Verdict{failure.reason, failure.hint});
    end_if_possible();
  }
  void on_message(std::uint32_t host, Message message) override { send(host, std::move(message)); }
  void on_gone(std::uint32_t host, const std::string& why) override {
    send(host, Gone{why});
    end_if_possible();
  }

  void on_progress(std::uint32_t host, const Progress& progress) override {
    if (progress.sent < progress.total && waiting() > 0) return;  // there will be another one
    send(host, progress);
  }

  /// What came here, for others.
  static std::shared_ptr<const ship::Cargo> cargo_of(const ship::Store& store, const std::string& root) {
    auto cargo = std::make_shared<ship::Cargo>();
    cargo->list = store.list();
    for (const ship::Item& item : cargo->list.items) cargo->sources.push_back(store.root() + "/" + item.path);
    cargo->launcher = own_program();
    cargo->root = root;
    return cargo;
  }

  /// Logs that were brought go, too.
  void remove_store() {
    if (brought_ && !logs_.empty() && logs_.front() != '/') {
      std::error_code ignored;
      std::filesystem::remove_all(logs_, ignored);
      std::filesystem::remove(std::filesystem::path(logs_).parent_path(), ignored);  // where it is empty
    }
    std::error_code ignored;
    const std::string top = store_->root() + "/" + store_->list().prefix;
    std::filesystem::remove_all(top + std::string(kMissingFolder) + "-" + host_name(), ignored);
    store_->remove();
  }

  // What travels here before an order.

  void on(Offer& offer) {
    if (store_) return;
    shipping([&] {
      const std::string program = own_program(), folder = program.substr(0, program.rfind('/'));
      store_ = std::make_unique<ship::Store>(folder.substr(0, folder.rfind('/')));
      const auto wanted = store_->begin(std::move(offer.list));
      if (!store_->is_whole()) send(Wanted{wanted});
    });
  }

  void on(const ship::Piece& piece) {
    if (store_ && !shipped_) shipping([&] { store_->take(piece); });
  }

  template <class Step>
  void shipping(Step step) {
    try {
      step();
      if (!store_->is_whole()) return;
      store_->finish();
      send(Shipped{});
    } catch (const Error& error) {
      send(Shipped{error.what(), error.hint()});
    }
    shipped_ = true;
  }

  // Orders.

  template <class Other>
  void on(const Other&) {}

  void on(const Order& order) {
    if (ordered_) return;
    ordered_ = true;
    since_ = files_since();
    try {
      start_launcher(order.bytes);
    } catch (const Error& error) {
      send(Ended{kRefused, render(error, "fleetrun") + "\n"});
      status_ = kRefused;
    }
  }

  void on(const Signal& signal) {
    if (launcher_) ::kill(launcher_->pid, signal.number);
  }

  void on(const Hold& hold) {
    output_held_ = hold.held;
    drained();
  }

  void on(const Bytes& bytes) {
    if (tunnel_) tunnel_->on(bytes);
  }
  void on(const Hangup& hangup) {
    if (tunnel_) tunnel_->on(hangup);
  }

  void on(const Collect& collect) {
    sender_.emplace(logs_, collect.marker, since_);
    send_files();
  }

  void on(const Bye&) {
    leaving_ = true;
    end_if_possible();
  }

  void send_files() {
    while (waiting() < kMaxWaiting) {
      auto file = sender_->next();
      if (!file) {
        const std::string error = sender_->error();
        brought_ = error.empty();
        sender_.reset();
        return send(FilesEnd{error});
      }
      send(std::move(*file));
    }
  }

  // The launcher.

  void start_launcher(const std::string& bytes) {
    LaunchOrder order = decode_order(bytes);
    if (order.version != FLEETRUN_VERSION)
      throw Error(ErrorKind::config,
                  "fleetrun is " FLEETRUN_VERSION " here, and the order is from " + order.version);
    if (store_) map_paths(order);
    if (!order.cwd.empty() && ::chdir(order.cwd.c_str()) != 0)
      throw Error(ErrorKind::host, "directory " + order.cwd + ": " + std::strerror(errno),
                  "make it on this host, name another with --chdir, or let it travel: --ship");
    const auto logs = order.values.find("log_dir");
    logs_ = logs == order.values.end() ? "log" : logs->second;
    Environ environment = environment_;
    if (store_) set_environment(environment);
    environment.set("PWD", order.cwd);
    for (const auto& [name, value] : order.environment) environment.set(name, value);
    if (order.coordinator.port == 0) {
      tunnel_.emplace(loop_, [this](Message message) { send(std::move(message)); });
      order.coordinator = tunnel_->open_entrance();
    }
    const UniqueFd file = memory_file(encode(order));
    CommandLine line;
    line.argv = {"fleetrun", "agent", "--node"};
    line.program = "/proc/self/exe";
    line.environment = environment.entries();
    line.input = file.value();
    launcher_ = start_command(line);
    shown_.assign(launcher_->output.release());
    said_.assign(launcher_->error.release());
    ended_.assign(::fcntl(launcher_->ended.value(), F_DUPFD_CLOEXEC, 3));
    read_shown();
    read_said();
    ended_.async_wait(Stream::wait_read, [this](const error_code& error) {
      if (!error) on_launcher_end();
    });
  }

  /// What lies elsewhere on the head lies in the store here.
  void map_paths(LaunchOrder& order) const {
    order.cwd = store_->place_of(order.cwd);
    if (order.script) order.script = store_->place_of(*order.script);
    if (const auto python = order.values.find("python"); python != order.values.end())
      python->second = store_->place_of(python->second);
  }

  /// What came with a Python environment, for who looks for it.
  void set_environment(Environ& environment) const {
    const std::string top = store_->root() + "/" + store_->list().prefix;
    const std::string folder = top + std::string(kMissingFolder) + "-" + host_name();
    std::error_code ignored;
    for (const std::string& name : missing_libraries(store_->list())) {
      std::filesystem::create_directory(folder, ignored);
      std::filesystem::create_symlink(top + std::string(kLibraryFolder) + "/" + name, folder + "/" + name,
                                      ignored);
    }
    const auto add = [&](const char* variable, const std::string& path) {
      const std::string before = environment.value_or(variable, "");
      environment.set(variable, path + (before.empty() ? "" : ":" + before));
    };
    if (std::filesystem::exists(folder, ignored)) add("LD_LIBRARY_PATH", folder);
    const auto& modules = store_->list().module_paths;
    for (auto path = modules.rbegin(); path != modules.rend(); ++path)
      add("PYTHONPATH", store_->place_of(*path));
  }

  void read_shown() {
    if (!shown_.is_open()) return;
    if (waiting() >= kMaxWaiting || output_held_) {
      held_ = true;
      return;
    }
    shown_.async_wait(Stream::wait_read, [this](const error_code& error) {
      if (!error && take_shown()) read_shown();
    });
  }

  bool take_shown() {
    char bytes[64 << 10];
    const ssize_t count = ::read(shown_.native_handle(), bytes, sizeof bytes);
    if (count > 0) send(Output{{bytes, static_cast<std::size_t>(count)}});
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  void read_said() {
    said_.async_wait(Stream::wait_read, [this](const error_code& error) {
      if (!error && take_said()) read_said();
    });
  }

  bool take_said() {
    char bytes[64 << 10];
    const ssize_t count = ::read(said_.native_handle(), bytes, sizeof bytes);
    if (count > 0) {
      for (Log& record : lines_.take({bytes, static_cast<std::size_t>(count)})) send(std::move(record));
    }
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  /// It has written everything; nobody else has these pipes.
  void on_launcher_end() {
    status_ = exit_status_of(*launcher_);
    launcher_.reset();
    while (said_.is_open() && ready(said_) && take_said()) {
    }
    while (shown_.is_open() && ready(shown_) && take_shown()) {
    }
    error_code ignored;
    said_.close(ignored);
    shown_.close(ignored);
    send(Ended{status_, lines_.screen()});
    end_if_possible();
  }

  static bool ready(Stream& stream) {
    boost::asio::posix::descriptor_base::bytes_readable waiting;
    error_code error;
    stream.io_control(waiting, error);
    return !error && waiting.get() > 0;
  }

  // Ends.

  void stop(int signal) {
    stopped_ = true;
    if (launcher_) ::kill(launcher_->pid, signal);
    if (launcher_) ::kill(launcher_->pid, SIGCONT);
    stop_.expires_after(kLongestStop);
    stop_.async_wait([this](const error_code& error) {
      if (error) return;
      if (launcher_) ::kill(launcher_->pid, SIGKILL);
      if (others_) others_->kill();
    });
    end_if_possible();
  }

  const Environ& environment_;
  asio::io_context loop_;
  ChannelDecoder decoder_;
  Stream input_, output_, said_, shown_, ended_;
  asio::steady_timer stop_, idle_;
  JobSignals signals_;
  std::string outgoing_, writing_;
  std::uint32_t number_ = 0;
  std::optional<Command> launcher_;
  std::unique_ptr<FanOut> others_;
  std::optional<Tunnel> tunnel_;        // to the coordinator
  std::unique_ptr<ship::Store> store_;  // of files that travelled here
  LauncherLines lines_;
  std::string logs_;
  std::int64_t since_ = 0;
  std::optional<LogSender> sender_;
  int status_ = kStopped;
  bool numbered_ = false, ordered_ = false, held_ = false, others_held_ = false, heard_ = false;
  bool channel_gone_ = false, leaving_ = false, stopped_ = false, shipped_ = false, brought_ = false,
       output_held_ = false;
};

}  // namespace

int run_agent(const Environ& environment) {
  return Agent(environment).run();
}

LaunchOrder take_order() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::string bytes;
  for (char block[64 << 10];;) {
    const ssize_t count = ::read(STDIN_FILENO, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    check_errno(count < 0 ? -1 : 0, "read", "taking the order");
    if (count == 0) break;
    bytes.append(block, static_cast<std::size_t>(count));
    if (bytes.size() > kLongestOrder) throw Error(ErrorKind::data, "the order is longer than 64 MiB");
  }
  const UniqueFd nothing(check_errno(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open", "/dev/null"));
  check_errno(::dup2(nothing.value(), STDIN_FILENO), "dup2", "taking the order");
  return decode_order(bytes);
}

}  // namespace fleetrun::launcher::remote
