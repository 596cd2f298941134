#include "launcher/remote/srun_fan_out.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include "launcher/remote/link.h"
#include "launcher/remote/srun_lines.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using remote::LoginFailure;

constexpr std::chrono::seconds kEnding{5};  // for srun, after its last task

class SrunFan final : public remote::FanOut, public remote::LinkListener {
 public:
  SrunFan(asio::io_context& loop, remote::FanOutSettings settings, remote::FanOutListener& listener)
      : loop_(loop), timer_(loop), settings_(std::move(settings)), listener_(listener) {}

  void start(std::vector<remote::Destination> destinations) override {
    states_.assign(destinations.size(), State::connecting);
    asio::post(loop_, [this] { begin(); });
  }

  void send(std::uint32_t host, remote::Message message) override {
    if (link_) link_->send({host, std::move(message)});
  }

  void close() override {
    if (link_) link_->close_input();
  }

  /// What runs on the hosts ends with its input, and srun with that.
  void kill() override {
    close();
    if (link_) link_->kill();
  }

  void set_reading(bool reading) override {
    if (link_) link_->set_reading(reading);
  }

  std::size_t alive() const override { return link_ ? 1 : 0; }

  // From the link.

  void on_frame(remote::Addressed frame) override {
    const std::uint32_t host = frame.host;
    if (host >= states_.size() || states_[host] == State::over) return;
    if (const auto* end = std::get_if<remote::Verdict>(&frame.message)) return on_end(host, end->reason);
    if (states_[host] == State::joined) return listener_.on_message(host, std::move(frame.message));
    const auto* hello = std::get_if<remote::Hello>(&frame.message);
    if (!hello || hello->protocol != remote::kProtocol || hello->version != FLEETRUN_VERSION)
      return refuse(
          host, {"fleetrun there is " + (hello ? printable(hello->version, 40) : "of an unknown version") +
                     ", and " FLEETRUN_VERSION " here",
                 "install the same version on all hosts, or name it with --path"});
    states_[host] = State::joined;
    listener_.on_joined(host, *hello);
  }

  void on_closed(int exit_status, const std::string& said, const std::string& garbled) override {
    const std::unique_ptr<remote::Link> ended = std::move(link_);
    timer_.cancel();
    LoginFailure why = explain_srun(exit_status, said);
    if (!garbled.empty()) why = {garbled, ""};
    if (last_) std::exchange(last_, nullptr)();
    for (std::uint32_t host = 0; host < states_.size(); ++host) {
      if (states_[host] == State::connecting) refuse(host, why);
      if (states_[host] == State::joined) on_end(host, exit_status == 0 ? "" : why.reason);
    }
  }

 private:
  enum class State { connecting, joined, over };

  void begin() {
    remote::CommandLine line;
    line.argv = settings_.srun;
    for (const std::string& word : {settings_.program, std::string("agent"), std::string("--task")})
      line.argv.push_back(word);
    line.environment = settings_.environment;
    try {
      link_ = remote::start_link(loop_, line, *this,
                                 [merger = SrunMerger(static_cast<std::uint32_t>(states_.size()))](
                                     std::string_view bytes) mutable { return merger.merge(bytes); });
    } catch (const Error& error) {
      for (std::uint32_t host = 0; host < states_.size(); ++host)
        refuse(host, {error.what(), "is this a host that Slurm's commands are installed on?"});
      return;
    }
    timer_.expires_after(settings_.hello_timeout);
    timer_.async_wait([this](const error_code& error) {
      if (!error) on_silence();
    });
  }

  /// A step may have to wait for others of the allocation.
  void on_silence() {
    for (std::uint32_t host = 0; host < states_.size(); ++host) {
      if (states_[host] == State::connecting)
        refuse(host, {"srun has started no fleetrun there yet",
                      "does another step use the allocation? squeue --steps shows them"});
    }
  }

  void refuse(std::uint32_t host, const LoginFailure& failure) {
    settle(host, [this, host, failure] { listener_.on_refused(host, failure, 1); });
  }

  void on_end(std::uint32_t host, const std::string& why) {
    if (states_[host] == State::connecting) return refuse(host, {why.empty() ? "its agent ended" : why, ""});
    settle(host, [this, host, why] { listener_.on_gone(host, why); });
  }

  /// The end of the last host is told when srun has ended too: then nothing is alive any more.
  void settle(std::uint32_t host, std::function<void()> tell) {
    states_[host] = State::over;
    const bool last =
        std::all_of(states_.begin(), states_.end(), [](State state) { return state == State::over; });
    if (!last || !link_) return tell();
    last_ = std::move(tell);
    link_->close_input();
    timer_.expires_after(kEnding);
    timer_.async_wait([this](const error_code& error) {
      if (!error && link_) link_->kill();
    });
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  const remote::FanOutSettings settings_;
  remote::FanOutListener& listener_;
  std::unique_ptr<remote::Link> link_;
  std::vector<State> states_;
  std::function<void()> last_;
};

}  // namespace

std::vector<std::string> srun_command(const SlurmAllocation& allocation, std::size_t hosts) {
  const std::string count = std::to_string(hosts);
  std::vector<std::string> words = {"srun", "--nodes=" + count, "--ntasks=" + count};
  // srun gives its input to the tasks of one component only: tests/e2e/cluster/test_slurm.py.
  if (allocation.components > 1)
    throw Error(
        ErrorKind::config,
        "Slurm job " + allocation.job + " is heterogeneous: its " + std::to_string(allocation.components) +
            " components have " + std::to_string(allocation.hosts.size()) +
            " hosts, and srun hands its input to those of one component only",
        "start a launcher on each host: srun --het-group=0-" + std::to_string(allocation.components - 1) +
            " --ntasks-per-node=1 fleetrun …; or on this one "
            "alone: --nnodes=1");
  for (const char* word : {"--ntasks-per-node=1",
                           "--kill-on-bad-exit=0",  // who ends what is fleetrun's to decide
                           "--wait=0", "--input=all", "--mpi=none",
                           "--cpu-bind=none",  // an agent's cores are all of its host's
                           "--overlap", "--job-name=fleetrun", "--export=ALL"})
    words.emplace_back(word);
  if (hosts < allocation.hosts.size()) {
    const std::vector<std::string> chosen(allocation.hosts.begin(),
                                          allocation.hosts.begin() + static_cast<std::ptrdiff_t>(hosts));
    words.push_back("--nodelist=" + join(chosen, ","));
  }
  return words;
}

std::unique_ptr<remote::FanOut> make_srun_fan_out(asio::io_context& loop, remote::FanOutSettings settings,
                                                  remote::FanOutListener& listener) {
  return std::make_unique<SrunFan>(loop, std::move(settings), listener);
}

LoginFailure explain_srun(int exit_status, std::string_view said) {
  std::string last;
  for (const std::string& line : split(said, '\n')) {
    if (line.find("lacks support for cpu binding") != std::string::npos)
      continue;  // --cpu-bind=none is said in vain
    if (line.find("error:") != std::string::npos || (last.empty() && !line.empty())) last = line;
  }
  const std::string status = "srun ended with " + std::to_string(exit_status);
  if (said.find("execve()") != std::string_view::npos && said.find("No such file") != std::string_view::npos)
    return {"there is no such fleetrun there (" + printable(last) + ")",
            "install it at the same path on all hosts, or name it with --path"};
  return {last.empty() ? status : status + ": " + printable(last),
          "where the allocation is gone, `env -u SLURM_JOB_ID fleetrun …` does not look at it"};
}

}  // namespace fleetrun::launcher
