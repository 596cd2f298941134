// Interpreters that are here, read from outside while they hang.
#include "launcher/stacks/stack_python.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::TempDir;

namespace {

// The lines are counted by the tests below.
constexpr const char* kScript = R"(import sys, threading, time
class Trainer:
    def step(self, n):
        if n:
            return self.step(n - 1)
        lock = threading.Lock()
        lock.acquire()
        print("ready", flush=True)
        return [
            lock.acquire(),
        ]
def load():
    while True:
        time.sleep(
            1000)
def größe日本():
    threading.Thread(target=load, daemon=True).start()
    return list(map(lambda n: Trainer().step(n), [1]))
größe日本()
)";

/// An interpreter that runs the script, from the moment that it hangs; killed at the end.
class Hanging {
 public:
  Hanging(const std::string& python, const std::string& script) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::setenv("PYTHONUTF8", "1", 1);
      ::execlp(python.c_str(), python.c_str(), script.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    char text[5];
    is_ready_ = ::read(ends[0], text, sizeof text) == sizeof text;
    ::close(ends[0]);
  }
  ~Hanging() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;
  bool is_ready() const { return is_ready_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  bool is_ready_ = false;
};

/// The stacks once all that is looked for is there: after it said "ready" the script has a few steps to go.
std::string stacks_with(pid_t pid, const std::string& wanted) {
  std::string text;
  for (int i = 0; i < 5'000 && text.find(wanted) == text.npos; ++i) {
    ::poll(nullptr, 0, 2);
    text = read_python_stacks(pid);
  }
  return text;
}

}  // namespace

TEST_CASE("frames of each Python that is here: names, files, lines, the main thread") {
  const TempDir folder;
  const std::string script = folder.path() / "train.py";
  std::ofstream(script) << kScript;
  int read = 0;
  for (const char* name : {"python3", "python3.8", "python3.9", "python3.10", "python3.11", "python3.12",
                           "python3.13", "python3.14"}) {
    CAPTURE(name);
    const Hanging process(name, script);
    if (!process.is_ready()) continue;
    ++read;
    const std::string text = stacks_with(process.pid(), "step (" + script + ":10)");
    const std::string main = text.substr(text.find("Thread \"MainThread\""));
    CHECK(text.find("load (" + script + ":1") != text.npos);
    CHECK(main.find("step (" + script + ":10)\n") < main.find("step (" + script + ":5)\n"));
    CHECK(main.find("<lambda> (" + script + ":18)\n") < main.find("größe日本 (" + script + ":18)\n"));
    CHECK(main.find("<module> (" + script + ":19)\n") != main.npos);
    CHECK(main.find("load (") == main.npos);
  }
  CHECK(read > 0);
}

TEST_CASE("what is not Python, or is gone, is said") {
  const std::string self = std::to_string(::getpid());
  CHECK_THROWS_WITH_AS(read_python_stacks(::getpid()),
                       ("process " + self + " has no interpreter of Python").c_str(), Error);
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  CHECK_THROWS_AS(read_python_stacks(gone), Error);
}
