// One timer per signal that is due at a time; the others wait in a list for the start or the step that they
// are about. A new attempt forgets what is left of the one before.
#include "launcher/run/injector.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/process_end.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Moment = Injection::Moment;
using Target = Injection::Target;

// <sys/pidfd.h> of glibc 2.36 declares these as C++ functions, which nothing defines.
UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool send_signal(const UniqueFd& process, int number) {
  return process && ::syscall(SYS_pidfd_send_signal, process.value(), number, nullptr, 0) == 0;
}

class TimedInjector final : public Injector {
 public:
  TimedInjector(asio::io_context& loop, std::vector<Injection> injections,
                std::vector<InjectionTarget> processes, std::uint64_t seed,
                std::function<void(const JobEvent&)> emit)
      : loop_(loop),
        injections_(std::move(injections)),
        processes_(std::move(processes)),
        seed_(seed),
        emit_(std::move(emit)),
        running_(processes_.size()),
        ended_(processes_.size()) {}

  std::chrono::milliseconds start_delay(std::size_t index, int attempt) const override {
    return plan_injections(injections_, processes_, attempt, seed_).start_delays.at(index);
  }

  void on_progress(std::size_t index, std::int64_t step) override {
    send_awaited([&](const PlannedSignal& signal) {
      return signal.moment == Moment::step && signal.index == index && step >= signal.step;
    });
  }

  void on_event(const JobEvent& event) override {
    std::visit([this](const auto& e) { on(e); }, event);
  }

 private:
  template <class Other>
  void on(const Other&) {}

  void on(const event::Contained& contained) {
    init_ = open_pidfd(contained.init_pid);
    send_awaited([](const PlannedSignal& signal) { return signal.target == Target::init; });
  }

  void on(const event::AttemptBegan& began) {
    timers_.clear();
    awaited_.clear();
    ended_.assign(processes_.size(), false);
    attempt_ = began.attempt;
    tell_seed();
    for (PlannedSignal& signal : plan_injections(injections_, processes_, attempt_, seed_).signals) {
      if (signal.moment == Moment::elapsed)
        arm(std::move(signal));
      else
        awaited_.push_back(std::move(signal));
    }
    send_awaited([this](const PlannedSignal& signal) {
      return signal.target == Target::launcher || (signal.target == Target::init && init_);
    });
  }

  void on(const event::ProcessStarted& started) {
    if (started.attempt > attempt_) on(event::AttemptBegan{started.attempt});
    running_.at(started.index) = open_pidfd(started.pid);
    send_awaited([&](const PlannedSignal& signal) {
      return signal.target == Target::process && signal.moment == Moment::started &&
             signal.index == started.index && started.attempt == attempt_;
    });
  }

  void on(const event::ProcessExited& exited) {
    running_.at(exited.index).reset();
    ended_[exited.index] = true;
  }

  void on(const event::JobEnded&) {
    timers_.clear();
    awaited_.clear();
  }

  void tell_seed() {
    if (std::exchange(seed_told_, true) || !needs_seed(injections_)) return;
    const std::string seed = std::to_string(seed_);
    asio::post(loop_, [this, seed] {
      emit_(
          event::Injected{"what is drawn follows seed " + seed + "; --inject_seed=" + seed + " repeats it"});
    });
  }

  void arm(PlannedSignal signal) {
    auto& timer = timers_.emplace_back(loop_, signal.at);
    timer.async_wait([this, signal = std::move(signal)](const error_code& error) {
      if (!error) send(signal);
    });
  }

  /// Sends what was waited for and takes it off the list; later in this turn of the loop, because the caller
  /// is in the middle of telling about an event.
  template <class Due>
  void send_awaited(Due&& due) {
    for (auto signal = awaited_.begin(); signal != awaited_.end();) {
      if (!due(*signal)) {
        ++signal;
        continue;
      }
      asio::post(loop_, [this, due_now = std::move(*signal)] { send(due_now); });
      signal = awaited_.erase(signal);
    }
  }

  void send(const PlannedSignal& signal) {
    if (signal.target == Target::launcher) {
      emit_(event::Injected{signal.what});
      ::kill(::getpid(), signal.signal);
      return;
    }
    const UniqueFd& process = signal.target == Target::init ? init_ : running_[signal.index];
    if (signal.target == Target::process && !process && !ended_[signal.index]) {
      awaited_.push_back(signal);  // it is due before the process is there: the process gets it at its start
      awaited_.back().moment = Moment::started;
      return;
    }
    if (!send_signal(process, 0)) {
      emit_(event::Warning{"--inject: " + signal.what + ": not sent, since it does not run"});
      return;
    }
    emit_(event::Injected{signal.what, signal.index, signal.target == Target::init ? 0 : signal.signal});
    send_signal(process, signal.signal);
  }

  asio::io_context& loop_;
  std::vector<Injection> injections_;
  std::vector<InjectionTarget> processes_;
  std::uint64_t seed_;
  std::function<void(const JobEvent&)> emit_;
  std::vector<UniqueFd> running_;  // pidfds, by process
  std::vector<bool> ended_;        // in this attempt
  UniqueFd init_;
  int attempt_ = -1;
  bool seed_told_ = false;
  std::list<asio::steady_timer> timers_;
  std::list<PlannedSignal> awaited_;
};

}  // namespace

std::unique_ptr<Injector> make_injector(asio::io_context& loop, std::vector<Injection> injections,
                                        std::vector<InjectionTarget> processes, std::uint64_t seed,
                                        std::function<void(const JobEvent&)> emit) {
  if (!has_pidfds())
    throw Error(ErrorKind::host, "--inject needs pidfd_open(), which this kernel or container does not have",
                "leave out --inject, or use Linux 5.3 or later");
  return std::make_unique<TimedInjector>(loop, std::move(injections), std::move(processes), seed,
                                         std::move(emit));
}

}  // namespace fleetrun::launcher
