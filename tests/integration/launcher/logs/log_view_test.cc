#include "launcher/logs/log_view.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace asio = boost::asio;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void append(const std::string& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  while (!text.empty()) {
    const ssize_t count = ::write(fd.value(), text.data(), text.size());
    REQUIRE(count > 0);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::vector<ViewedProcess> trainers(int count, Showing showing = Showing::always) {
  std::vector<ViewedProcess> viewed;
  for (int i = 0; i < count; ++i) viewed.push_back({"trainer " + std::to_string(i), showing});
  return viewed;
}

/// A view into a file.
struct Shown {
  explicit Shown(std::vector<ViewedProcess> processes, bool raw = false)
      : out(::open(directory.file("out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
        view(view_logs(loop, std::move(processes), {.output = out.value(), .raw = raw, .colour = false})) {}

  std::string log(int index) const { return directory.file("log." + std::to_string(index)); }

  /// Runs the loop until `text` was shown, in time.
  void wait_for(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (text_of(directory.file("out")).find(text) == std::string::npos) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.restart();
      loop.run_for(std::chrono::milliseconds(5));
    }
  }

  std::string drained() {
    bool done = false;
    view->drain([&] {
      done = true;
      loop.stop();
    });
    loop.restart();
    loop.run_for(std::chrono::seconds(60));
    CHECK(done);
    return text_of(directory.file("out"));
  }

  tests::TempDir directory;
  asio::io_context loop{1};
  UniqueFd out;
  std::unique_ptr<LogView> view;
};

/// The lines of one process in what was shown, without its name.
std::string lines_of(const std::string& shown, const std::string& prefix) {
  std::string lines;
  for (std::size_t at = 0; at < shown.size();) {
    const std::size_t end = shown.find('\n', at);
    REQUIRE(end != std::string::npos);
    if (shown.compare(at, prefix.size(), prefix) == 0)
      lines.append(shown, at + prefix.size(), end + 1 - at - prefix.size());
    at = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("lines are shown whole, after the name of their process") {
  Shown shown({{"server 0", Showing::always}, {"trainer 0", Showing::always}, {"hidden", Showing::never}});
  for (int i = 0; i < 3; ++i) {
    append(shown.log(i), "");
    shown.view->attach(static_cast<std::size_t>(i), shown.log(i), 0);
  }
  append(shown.log(0), "half");
  append(shown.log(1), "10%\r20%\r30%\nsecond");
  append(shown.log(2), "not this\n");
  shown.wait_for("trainer 0 | 30%\n");
  append(shown.log(0), " whole\n");
  shown.wait_for("server 0  | half whole\n");
  append(shown.log(1), " line");
  CHECK(shown.drained() == "trainer 0 | 30%\nserver 0  | half whole\ntrainer 0 | second line\n");
}

TEST_CASE("one process alone is shown byte by byte") {
  Shown shown(trainers(1), true);
  const std::string bytes("\x1b[2Ja\0\xff\r10%\r", 11);
  append(shown.log(0), "earlier" + bytes);
  shown.view->attach(0, shown.log(0), 7);
  shown.wait_for("10%");
  append(shown.log(0), "end");
  CHECK(shown.drained() == bytes + "end");
}

TEST_CASE("many that write at once: no byte is lost, and no line is cut by another") {
  constexpr int kWriters = 16, kLines = 2000;
  Shown shown(trainers(kWriters));
  std::vector<std::string> texts;
  for (int i = 0; i < kWriters; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    std::string text;
    for (int line = 0; line < kLines; ++line) {
      text.append(std::to_string(line)).append(random() % 200, 'x').append("ä大").push_back('\0');
      if (line % 1000 == 500) text.append(1 << 20, 'y');
      text.push_back('\n');
    }
    texts.push_back(text + "no newline");
    append(shown.log(i), "");
    shown.view->attach(static_cast<std::size_t>(i), shown.log(i), 0);
  }
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      std::vector<std::size_t> at(kWriters);
      for (bool more = true; std::exchange(more, false);) {
        for (std::size_t i = static_cast<std::size_t>(w); i < kWriters; i += 4) {
          const std::string_view part = std::string_view(texts[i]).substr(at[i], 1 + random() % 60000);
          if (part.empty()) continue;
          append(shown.log(static_cast<int>(i)), part);
          at[i] += part.size();
          more = true;
        }
      }
      asio::post(shown.loop, [] {});
    });
  }
  shown.wait_for("x");
  for (std::thread& writer : writers) writer.join();
  const std::string all = shown.drained();
  for (int i = 0; i < kWriters; ++i) {
    CAPTURE(i);
    const std::string name = "trainer " + std::to_string(i);
    const std::string prefix = name + std::string(i < 10 ? 1 : 0, ' ') + " | ";
    CHECK((lines_of(all, prefix) == texts[static_cast<std::size_t>(i)] + "\n"));
  }
}

TEST_CASE("a line of 100 MB is shown whole, and costs no memory") {
  Shown shown(trainers(2));
  for (int i = 0; i < 2; ++i) {
    append(shown.log(i), "");
    shown.view->attach(static_cast<std::size_t>(i), shown.log(i), 0);
  }
  const std::string megabyte(1 << 20, 'z');
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 100; ++i) append(shown.log(0), megabyte);
  append(shown.log(0), "\nnext");
  append(shown.log(1), "short\n");
  bool done = false;
  shown.view->drain([&] { done = true; });
  shown.loop.run_for(std::chrono::seconds(60));
  CHECK(done);
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 4096);
  const std::string path = shown.directory.file("out");
  CHECK(std::filesystem::file_size(path) == (100u << 20) + 12 + 1 + 12 + 5 + 12 + 6);
  CHECK(text_of(path).find("z\ntrainer 0 | next\n") != std::string::npos);
}

TEST_CASE("at a restart, the end of the attempt before comes first") {
  Shown shown(trainers(1));
  append(shown.log(0), "first attempt\nlast words");
  shown.view->attach(0, shown.log(0), 0);
  shown.view->ended(0, true);
  append(shown.log(1), "second attempt\n");
  shown.view->attach(0, shown.log(1), 0);
  shown.wait_for("second");
  append(shown.log(1), "more\n");
  CHECK(shown.drained() ==
        "trainer 0 | first attempt\ntrainer 0 | last words\ntrainer 0 | second attempt\ntrainer 0 | more\n");
}

TEST_CASE("of those that are shown when they fail, the last lines are") {
  Shown shown(trainers(2, Showing::after_failure));
  for (int i = 0; i < 2; ++i) {
    for (int line = 0; line < 100; ++line) append(shown.log(i), "line " + std::to_string(line) + "\n");
    shown.view->attach(static_cast<std::size_t>(i), shown.log(i), 0);
  }
  shown.view->ended(0, false);
  shown.view->ended(1, true);
  const std::string all = shown.drained();
  CHECK(all.starts_with("trainer 1 | line 60\n"));
  CHECK(all.ends_with("trainer 1 | line 99\n"));
  CHECK(std::count(all.begin(), all.end(), '\n') == 40);
}

TEST_CASE("a log that is rotated is read through to its newest file") {
  Shown shown(trainers(1), true);
  const std::string log = shown.log(0);
  append(log, "one\n");
  shown.view->attach(0, log, 0);
  shown.wait_for("one");
  append(log, "two\n");
  std::filesystem::rename(log, log + ".1");
  append(log, "three\n");
  std::filesystem::rename(log + ".1", log + ".2");
  std::filesystem::rename(log, log + ".1");
  append(log, "four\n");
  shown.wait_for("four");
  append(log, "five\n");
  std::filesystem::rename(log, log + ".1");
  CHECK(shown.drained() == "one\ntwo\nthree\nfour\nfive\n");
}

TEST_CASE("a log that its user empties is read on from its beginning") {
  Shown shown(trainers(1));
  append(shown.log(0), "a long beginning\n");
  shown.view->attach(0, shown.log(0), 0);
  shown.wait_for("beginning");
  std::filesystem::resize_file(shown.log(0), 0);
  append(shown.log(0), "anew\n");
  shown.wait_for("anew");
  CHECK(shown.drained() == "trainer 0 | a long beginning\ntrainer 0 | anew\n");
}

TEST_CASE("a reader that is gone or takes nothing holds nobody up") {
  tests::TempDir directory;
  asio::io_context loop{1};
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  auto view = view_logs(loop, trainers(1), {.output = write_end.value()});
  const std::string log = directory.write("log", std::string(1 << 20, '\n'));
  view->attach(0, log, 0);
  loop.run_for(std::chrono::milliseconds(50));  // the pipe is full now
  bool done = false;
  view->drain([&] { done = true; });
  loop.poll();
  CHECK_FALSE(done);
  SUBCASE("gone") {
    read_end.reset();
    loop.run_for(std::chrono::seconds(5));
    CHECK(done);
  }
  SUBCASE("reading again") {
    std::thread reader;
    std::string all;
    reader = std::thread([&] {
      std::vector<char> block(65536);
      for (ssize_t count = 0; (count = ::read(read_end.value(), block.data(), block.size())) > 0;)
        all.append(block.data(), static_cast<std::size_t>(count));
    });
    loop.run_for(std::chrono::seconds(9));
    CHECK(done);
    view.reset();
    write_end.reset();
    reader.join();
    CHECK(all.size() == (std::size_t{1} << 20) * 13);
  }
}

TEST_CASE("on a terminal, progress bars are repainted and control characters are shown") {
  tests::TempDir directory;
  asio::io_context loop{1};
  int ours = -1, theirs = -1;
  winsize size = {};
  size.ws_col = 24;
  if (::openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) {
    MESSAGE("left out: no pseudo-terminals here");
    return;
  }
  const UniqueFd terminal(ours), line(theirs);
  REQUIRE(::fcntl(ours, F_SETFL, O_NONBLOCK) == 0);
  const auto view = view_logs(loop, trainers(2), {.output = theirs, .raw = false, .colour = true});
  const std::string log = directory.write("log", "\a\x1b[2J\n\r 10%|#\r 50%|#####-----------------");
  view->attach(0, log, 0);
  std::string seen;
  const auto wait_for = [&](const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (seen.find(text) == std::string::npos) {
      CAPTURE(seen);
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.run_for(std::chrono::milliseconds(5));
      char bytes[4096];
      const ssize_t count = ::read(ours, bytes, sizeof bytes);
      if (count > 0) seen.append(bytes, static_cast<std::size_t>(count));
    }
  };
  const std::string name = "\x1b[36mtrainer 0\x1b[0m | ";
  wait_for(name + "^G^[[2J\r\n");
  wait_for(name + " 50%|#####-\x1b[0m");  // cut to the terminal, one column less
  seen.clear();
  append(log, "\r100%|##|\ndone\n");
  wait_for("\r\x1b[K" + name + "100%|##|\r\n" + name + "done\r\n");
  append(log, " 10%\r");
  wait_for(name + " 10%");
  seen.clear();
  view->drain([] {});
  wait_for("\r\x1b[K" + name + " 10%\r\n");
}
