#include "launcher/status/control_actions.h"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <utility>

#include "launcher/stacks/stacks.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

class Actions final : public ControlHandler {
 public:
  Actions(JobControl& control, const StatusBoard& board, Environ environment,
          std::shared_ptr<ServerCount> servers)
      : control_(control),
        board_(board),
        environment_(std::move(environment)),
        servers_(std::move(servers)),
        grace_(control.loop()) {}

  void request_stop(const StopRequest& request) override {
    if (request.now) return control_.request_stop(true);
    if (board_.phase() == JobPhase::stopping || board_.phase() == JobPhase::ended)
      return;  // asked for already
    if (request.signal != 0) {
      for (std::size_t i = 0; i < control_.plan().processes.size(); ++i)
        control_.send_signal(i, request.signal);
    }
    control_.request_stop(false);
    if (!request.grace) return;
    grace_.expires_after(*request.grace);
    grace_.async_wait([this](const boost::system::error_code& error) {
      if (!error && board_.phase() != JobPhase::ended) control_.request_stop(true);
    });
  }

  void request_signal(const SignalRequest& request) override {
    for (const std::size_t index : request.processes) control_.send_signal(index, request.number);
  }

  std::string request_restart(const RestartRequest& request) override {
    const Plan& plan = control_.plan();
    const ProcessSpec& process = plan.processes.at(request.process);
    if (!plan.restart.any() || plan.roles.at(process.role).restart == RestartScope::nobody)
      return process.name + " would not be started again: the job was begun without restarts (--max_restart)";
    if (!is_alive(board_.status(0).processes.at(request.process).state))
      return process.name + " does not run";
    control_.send_signal(request.process, SIGKILL);
    return {};
  }

  void request_resize(const ResizeRequest& request, std::function<void(std::string why_not)> done) override {
    if (servers_) return servers_->resize(request.servers, std::move(done));
    done("this job has no servers");
  }

  void request_stacks(std::function<void(std::string)> done) override {
    if (reading_) return done("the stacks are being read already; ask again");
    std::vector<StackTarget> targets;
    const JobStatus status = board_.status(0);
    for (std::size_t i = 0; i < status.processes.size(); ++i) {
      const ProcessStatus& process = status.processes[i];
      if (is_alive(process.state)) targets.push_back({i, process.role, process.rank, process.pid});
    }
    StackSettings settings;
    settings.environment = environment_;
    try {
      reading_ =
          read_stacks(control_.loop(), std::move(targets), std::move(settings),
                      [this, done](const std::vector<ProcessStacks>& stacks) {
                        // It ends after the call that it has just made.
                        boost::asio::post(control_.loop(),
                                          [ended = std::shared_ptr<StackReading>(std::move(reading_))] {});
                        done(all_stacks_text(stacks));
                      });
    } catch (const Error& error) {
      done(error.what());
    }
  }

 private:
  JobControl& control_;
  const StatusBoard& board_;
  Environ environment_;
  std::shared_ptr<ServerCount> servers_;  // with the part that counts them
  boost::asio::steady_timer grace_;
  std::unique_ptr<StackReading> reading_;
};

}  // namespace

std::unique_ptr<ControlHandler> control_actions(JobControl& control, const StatusBoard& board,
                                                Environ environment, std::shared_ptr<ServerCount> servers) {
  return std::make_unique<Actions>(control, board, std::move(environment), std::move(servers));
}

}  // namespace fleetrun::launcher
