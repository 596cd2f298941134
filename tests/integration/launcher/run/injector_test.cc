#include "launcher/run/injector.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <string>

#include <doctest/doctest.h>

#include "runtime/base/exit_reason.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using std::chrono::milliseconds;

namespace {

/// A process that waits for a signal. Killed and waited for at the end.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Sleeper() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return pid_; }
  ExitReason wait_for_end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return exit_reason_from(status);
  }
  bool wait_for_stop() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }

 private:
  pid_t pid_;
};

/// An injector for two trainers and a server, and what it told.
struct Bench {
  explicit Bench(const char* spec, std::uint64_t seed = 1)
      : injector(make_injector(loop, parse_injections(spec),
                               {{"server", 0, true}, {"trainer", 0, false}, {"trainer", 1, false}}, seed,
                               [this](const JobEvent& event) { told.push_back(text_of(event)); })) {}

  static std::string text_of(const JobEvent& event) {
    if (const auto* injected = std::get_if<event::Injected>(&event)) return injected->what;
    if (const auto* warning = std::get_if<event::Warning>(&event)) return "warning: " + warning->text;
    return "?";
  }
  void begin(int attempt) { injector->on_event(event::AttemptBegan{attempt}); }
  void start(std::size_t index, const Sleeper& process, int attempt = 0) {
    injector->on_event(event::ProcessStarted{index, process.pid(), attempt, 0});
  }
  /// Until nothing is due any more.
  void run() {
    loop.restart();
    loop.run();
  }

  boost::asio::io_context loop{1};
  std::vector<std::string> told;
  std::unique_ptr<Injector> injector;
};

const ExitReason kKilled = {ExitReason::Kind::signaled, SIGKILL, false};

}  // namespace

TEST_CASE("a signal that is due at a time reaches its process and no other") {
  Bench bench("kill rank=1 at=20ms");
  Sleeper other, target;
  bench.begin(0);
  bench.start(1, other);
  bench.start(2, target);
  bench.run();
  CHECK(target.wait_for_end() == kKilled);
  CHECK(::waitpid(other.pid(), nullptr, WNOHANG) == 0);
  CHECK(bench.told == std::vector<std::string>{"SIGKILL to trainer 1, 0.02 s into attempt 0"});
}

TEST_CASE("a signal at the start waits for the start of the attempt that it is for") {
  Bench bench("stop rank=0 role=server attempt=1");
  Sleeper first, second;
  bench.begin(0);
  bench.start(0, first, 0);
  bench.run();
  CHECK(bench.told.empty());
  bench.start(0, second, 1);  // restarted alone: no event of its own says that attempt 1 began
  bench.run();
  CHECK(second.wait_for_stop());
  CHECK(::waitpid(first.pid(), nullptr, WNOHANG | WUNTRACED) == 0);
  CHECK(bench.told == std::vector<std::string>{"SIGSTOP to server 0 as soon as it is started, in attempt 1"});
}

TEST_CASE("a signal that is due before its process is there waits for it") {
  Bench bench("kill rank=0 at=1ms");
  bench.begin(0);
  bench.run();
  CHECK(bench.told.empty());
  Sleeper target;
  bench.start(1, target);
  bench.run();
  CHECK(target.wait_for_end() == kKilled);
  CHECK(bench.told == std::vector<std::string>{"SIGKILL to trainer 0, 0.001 s into attempt 0"});
}

TEST_CASE("a signal at a step is sent once, when the step has come") {
  Bench bench("kill rank=0 at=step:10");
  Sleeper target;
  bench.begin(0);
  bench.start(1, target);
  bench.injector->on_progress(1, 9);
  bench.injector->on_progress(2, 11);
  bench.run();
  CHECK(bench.told.empty());
  bench.injector->on_progress(1, 12);
  bench.injector->on_progress(1, 13);
  bench.run();
  CHECK(target.wait_for_end() == kKilled);
  CHECK(bench.told.size() == 1);
}

TEST_CASE("init gets its signal although it may be known later than the attempt") {
  for (const bool known_first : {true, false}) {
    Bench bench("init hup");
    Sleeper init;
    event::Contained contained;
    contained.init_pid = init.pid();
    if (known_first) bench.injector->on_event(contained);
    bench.begin(0);
    if (!known_first) bench.injector->on_event(contained);
    bench.run();
    CHECK(init.wait_for_end() == ExitReason{ExitReason::Kind::signaled, SIGHUP, false});
  }
}

TEST_CASE("fleetrun's own signal goes to fleetrun") {
  const pid_t fleetrun = ::fork();
  if (fleetrun == 0) {
    Bench bench("launcher kill at=1ms");
    bench.begin(0);
    bench.run();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(fleetrun, &status, 0) == fleetrun);
  CHECK(exit_reason_from(status) == kKilled);
}

TEST_CASE("what does not run gets nothing, and that is said") {
  Bench bench("kill rank=0 at=1ms");
  Sleeper target;
  bench.begin(0);
  bench.start(1, target);
  bench.injector->on_event(event::ProcessExited{.index = 1, .pid = target.pid(), .attempt = 0, .reason = {}});
  bench.run();
  CHECK(::waitpid(target.pid(), nullptr, WNOHANG) == 0);
  CHECK(bench.told == std::vector<std::string>{"warning: --inject: SIGKILL to trainer 0, 0.001 s into "
                                               "attempt 0: not sent, since it does not run"});
}

TEST_CASE("a new attempt and the end of the job forget what is still due") {
  Bench bench("kill rank=0 at=10s");
  bench.begin(0);
  bench.begin(1);
  bench.run();  // returns at once: no timer is left
  bench.begin(0);
  bench.injector->on_event(event::JobEnded{0});
  bench.run();
  CHECK(bench.told.empty());
}

TEST_CASE("the seed is told once, where something is drawn") {
  Bench bench("slow-start rank=any by=1s..2s", 77);
  bench.begin(0);
  bench.begin(1);
  bench.run();
  CHECK(bench.told == std::vector<std::string>{"what is drawn follows seed 77; --inject_seed=77 repeats it"});
  std::chrono::milliseconds together{};
  for (std::size_t index = 0; index < 3; ++index) together += bench.injector->start_delay(index, 0);
  CHECK(together >= milliseconds(1000));
  CHECK(together <= milliseconds(2000));
  CHECK(bench.injector->start_delay(0, 0) == milliseconds(0));
}
