#include "launcher/logs/log_through.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    REQUIRE(count > 0);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

struct Job {
  explicit Job(int processes, LogLimits limits = {}) {
    plan.log_dir = plan.log_dir_shown = directory.file("log");
    plan.pod_name = "abcdef";
    for (int i = 0; i < processes; ++i) {
      ProcessSpec process;
      process.log_name = "workerlog." + std::to_string(i);
      plan.processes.push_back(process);
    }
    logs = open_first_logs(plan, [](const std::string& text) { FAIL(text); });
    through = log_through(loop, plan,
                          {.program = Environ::of_process().value_or("FLEETRUN_LOG", ""),
                           .limits = limits,
                           .on_lost = [this](std::size_t index, std::uint64_t, int error) {
                             lost.emplace_back(index, error);
                           }});
    for (int i = 0; i < processes; ++i)
      ends.push_back(through->open(static_cast<std::size_t>(i), logs[static_cast<std::size_t>(i)]));
  }

  void finish() {
    ends.clear();
    bool done = false;
    through->finish([&] {
      done = true;
      loop.stop();
    });
    loop.restart();
    loop.run_for(60s);
    CHECK(done);
  }

  /// The fleetrun-log that runs.
  static pid_t writer() {
    pid_t found = -1;
    std::ifstream children("/proc/self/task/" + std::to_string(::gettid()) + "/children");
    for (pid_t pid = 0; children >> pid;) {
      std::string name;
      std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
      if (name == "fleetrun-log") found = pid;
    }
    return found;
  }

  std::string log(int index) const {
    return text_of(directory.file("log/workerlog." + std::to_string(index)));
  }

  tests::TempDir directory;
  Plan plan;
  asio::io_context loop{1};
  std::vector<LogFile> logs;
  std::vector<std::pair<std::size_t, int>> lost;
  std::unique_ptr<LogThrough> through;
  std::vector<UniqueFd> ends;
};

}  // namespace

TEST_CASE("through the writer, logs are byte for byte what the processes wrote") {
  constexpr int kProcesses = 64;
  Job job(kProcesses);
  std::vector<std::string> texts(kProcesses);
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      for (int line = 0; line < 1000; ++line) {
        for (std::size_t i = static_cast<std::size_t>(w); i < kProcesses; i += 4) {
          std::string text = std::to_string(line) + std::string(random() % 60, 'x') + "ä大\r";
          text.push_back('\0');
          if (line == 500 && i % 16 == 0) text.append(1 << 20, 'y');
          if (line < 999) text.push_back('\n');
          write_all(job.ends[i].value(), text);
          texts[i].append(text);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  job.finish();
  for (int i = 0; i < kProcesses; ++i) {
    CAPTURE(i);
    CHECK((job.log(i) == texts[static_cast<std::size_t>(i)]));
  }
  CHECK(job.lost.empty());
}

TEST_CASE("a process that ends leaves the others' logs alone") {
  Job job(2);
  write_all(job.ends[0].value(), "ends\n");
  job.ends[0].reset();
  std::string text;
  for (int line = 0; line < 200; ++line) {
    const std::string words = "line " + std::to_string(line) + "\n";
    write_all(job.ends[1].value(), words);
    text.append(words);
    job.through->settle(10s);
  }
  // With nothing to read, the writer sleeps.
  const auto state = [writer = Job::writer()] {
    std::string pid, name, letter;
    std::ifstream("/proc/" + std::to_string(writer) + "/stat") >> pid >> name >> letter;
    return letter;
  };
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (state() != "S") REQUIRE(std::chrono::steady_clock::now() < end);
  job.finish();
  CHECK(job.log(0) == "ends\n");
  CHECK(job.log(1) == text);
  CHECK(job.lost.empty());
}

TEST_CASE("after settling, the last words are in the log") {
  Job job(2);
  for (int round = 0; round < 100; ++round) {
    write_all(job.ends[1].value(), "word " + std::to_string(round) + "\n");
    job.through->settle(10s);
    CHECK(job.log(1).ends_with("word " + std::to_string(round) + "\n"));
  }
  job.finish();
}

TEST_CASE("a writer that is killed costs the processes nothing") {
  Job job(1, {.cap = 64 * 1024, .keep = 1000});
  std::string text;
  for (int kills = 0; kills < 4; ++kills) {
    for (int line = 0; line < 2000; ++line) {
      const std::string words = "line " + std::to_string(text.size()) + "\n";
      write_all(job.ends[0].value(), words);
      text.append(words);
    }
    job.through->settle(10s);
    REQUIRE(Job::writer() > 0);
    ::kill(Job::writer(), SIGKILL);
    job.loop.restart();
    job.loop.run_for(20ms);
    job.through->settle(10s);
  }
  write_all(job.ends[0].value(), "the end");
  job.finish();
  std::string all;
  for (int number = 1000; number > 0; --number)
    all.append(text_of(job.logs[0].path + "." + std::to_string(number)));
  CHECK((all + job.log(0) == text + "the end"));
}

TEST_CASE("what a cap or a deleted directory costs is told once") {
  Job job(2, {.cap = 1000, .keep = 1});
  write_all(job.ends[0].value(), std::string(100, '\n'));
  write_all(job.ends[1].value(), std::string(5000, '\n'));
  job.through->settle(10s);
  job.loop.restart();
  job.loop.run_for(10ms);
  CHECK(job.lost == std::vector<std::pair<std::size_t, int>>{{1, 0}});
  job.finish();
}

TEST_CASE("the writer ends soon after a fleetrun that is gone") {
  Job job(1);
  job.through->settle(10s);
  const pid_t writer = Job::writer();
  REQUIRE(writer > 0);
  write_all(job.ends[0].value(), "last words");
  job.ends.clear();
  job.through.reset();
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (Job::writer() == writer && ::waitpid(writer, nullptr, WNOHANG) == 0)
    REQUIRE(std::chrono::steady_clock::now() < end);
  CHECK(job.log(0) == "last words");
}

TEST_CASE("fleetrun-log is looked for beside fleetrun-init") {
  const tests::TempDir directory;
  CHECK_THROWS_WITH_AS(find_log_program(directory.file("fleetrun-init")),
                       ("fleetrun-log is not beside fleetrun-init in " + directory.path().string()).c_str(),
                       Error);
  fs::permissions(directory.write("fleetrun-log", ""), fs::perms(0755));
  CHECK(find_log_program(directory.file("fleetrun-init")) == directory.file("fleetrun-log"));
}
