// fleetrun-log is a child of fleetrun and not of fleetrun-init: it must not be killed with the processes
// whose last words it writes. It ends by itself when fleetrun is gone and the pipes have ended.
#include "launcher/logs/log_through.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <vector>

#include "launcher/host/find_program.h"
#include "launcher/log_writer/log_writer_protocol.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/passed_files.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience{8};  // with a fleetrun-log that does not end
constexpr int kMaxStarts = 5;                 // of fleetrun-log

struct Pipe {
  UniqueFd read_end;
  std::string message;  // that tells fleetrun-log about it
};

class Through final : public LogThrough {
 public:
  Through(asio::io_context& loop, const Plan& plan, LogThroughSettings settings)
      : loop_(loop), plan_(plan), settings_(std::move(settings)), socket_(loop), patience_(loop) {
    start();
  }

  ~Through() override {
    error_code ignored;
    socket_.close(ignored);
    if (child_ > 0) ::waitpid(child_, nullptr, WNOHANG);
  }

  UniqueFd open(std::size_t index, const LogFile& log) override {
    int ends[2];
    check_errno(::pipe2(ends, O_CLOEXEC), "pipe", "making a pipe for " + log.shown, ErrorKind::spawn);
    Pipe pipe;
    pipe.read_end.reset(ends[0]);
    UniqueFd write_end(ends[1]);
    const ProcessSpec& process = plan_.processes[index];
    LogPlace place{
        plan_.log_dir, plan_.pod_name, std::to_string(log.attempt), process.log_name, {process.log_name}};
    if (!process.log_alias.empty()) place.other_names.push_back(process.log_alias);
    lost_.erase(index);
    pipe.message = encode_open(static_cast<std::uint32_t>(index), place, settings_.limits);
    send(pipe);
    pipes_[index] = std::move(pipe);
    return write_end;
  }

  void settle(std::chrono::milliseconds max) override {
    const SettleLogs question;
    if (!socket_.is_open() ||
        ::send(socket_.native_handle(), &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
      return;
    const auto end = std::chrono::steady_clock::now() + max;
    for (settled_ = false; !settled_ && socket_.is_open();) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
              .count();
      pollfd ready = {socket_.native_handle(), POLLIN, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return;
      if (!receive()) return;
    }
  }

  std::string last_words(std::size_t index, std::chrono::milliseconds max) override {
    settle(max);
    const auto found = lost_.find(index);
    return found == lost_.end() ? std::string() : found->second;
  }

  void finish(std::function<void()> on_done) override {
    on_done_ = std::move(on_done);
    pipes_.clear();
    if (!socket_.is_open()) return be_done();
    ::shutdown(socket_.native_handle(), SHUT_WR);
    patience_.expires_after(kPatience);
    patience_.async_wait([this](const error_code& error) {
      if (!error) be_done();
    });
  }

 private:
  void start() {
    ++starts_;
    int ends[2];
    check_errno(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair",
                "starting fleetrun-log", ErrorKind::spawn);
    UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    spawn(theirs.value());
    socket_.assign(ours.release());
    for (const auto& [index, pipe] : pipes_) send(pipe);
    await_news();
  }

  void spawn(int socket) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions, 0, 1);
    ::posix_spawn_file_actions_adddup2(&actions, socket, kLogWriterSocket);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    std::string name = "fleetrun-log";
    char* const arguments[] = {name.data(), nullptr};
    std::vector<std::string> variables = Environ::of_process().entries();
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    const int error = ::posix_spawn(&child_, settings_.program.c_str(), &actions, &attributes, arguments,
                                    environment.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      throw Error(ErrorKind::spawn,
                  "fleetrun-log could not be started: " + settings_.program + ": " +
                      std::generic_category().message(error),
                  "install fleetrun again");
  }

  void send(const Pipe& pipe) {
    if (!socket_.is_open()) return;
    const int file = pipe.read_end.value();
    const auto message = std::as_bytes(std::span(pipe.message));
    while (send_with_files(socket_.native_handle(), message, {&file, 1}) < 0 &&
           (errno == EINTR || errno == EAGAIN)) {
      pollfd ready = {socket_.native_handle(), POLLOUT, 0};
      ::poll(&ready, 1, 100);
    }
  }

  void await_news() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (error || !socket_.is_open()) return;
      if (receive()) await_news();
    });
  }

  /// Reads one message, if there is one. False: fleetrun-log is gone,
  /// and another one was started where that helps.
  bool receive() {
    std::string message(kLongestLogMessage, '\0');
    const ssize_t count = ::recv(socket_.native_handle(), message.data(), message.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    LogNews news;
    if (count < static_cast<ssize_t>(sizeof news)) {
      on_gone();
      return false;
    }
    std::memcpy(&news, message.data(), sizeof news);
    if (news.kind == LogMessage::lost)
      lost_[news.index] = message.substr(sizeof news, static_cast<std::size_t>(count) - sizeof news);
    if (news.kind == LogMessage::settled) settled_ = true;
    if (news.kind == LogMessage::news && news.index < plan_.processes.size() && settings_.on_lost &&
        told_.insert({news.index, news.dropped > 0}).second)
      settings_.on_lost(news.index, news.dropped > 0 ? news.dropped : news.removed,
                        news.dropped > 0 ? news.error : 0);
    return true;
  }

  void on_gone() {
    error_code ignored;
    socket_.close(ignored);
    if (child_ > 0) ::waitpid(std::exchange(child_, -1), nullptr, 0);
    if (on_done_) return be_done();
    if (starts_ == kMaxStarts) return;
    try {
      start();
    } catch (const Error&) {
      starts_ = kMaxStarts;  // the pipes fill up: nothing else is left to try
    }
  }

  void be_done() {
    patience_.cancel();
    error_code ignored;
    socket_.cancel(ignored);
    if (on_done_) asio::post(loop_, std::exchange(on_done_, nullptr));
  }

  asio::io_context& loop_;
  const Plan& plan_;
  LogThroughSettings settings_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer patience_;
  pid_t child_ = -1;
  int starts_ = 0;
  std::map<std::size_t, Pipe> pipes_;
  std::set<std::pair<std::uint32_t, bool>> told_;  // losses by whom, and whether they were dropped
  std::map<std::size_t, std::string> lost_;
  bool settled_ = false;
  std::function<void()> on_done_;
};

}  // namespace

std::unique_ptr<LogThrough> log_through(asio::io_context& loop, const Plan& plan,
                                        LogThroughSettings settings) {
  return std::make_unique<Through>(loop, plan, std::move(settings));
}

std::string find_log_program(const std::string& init_program) {
  const std::string path = directory_of(init_program) + "/fleetrun-log";
  if (::access(path.c_str(), X_OK) == 0) return path;
  throw Error(ErrorKind::spawn, "fleetrun-log is not beside fleetrun-init in " + directory_of(init_program),
              "install fleetrun again");
}

}  // namespace fleetrun::launcher
