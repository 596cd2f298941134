#include "launcher/log_writer/log_writer.h"

#include <sys/mount.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Place {
  tests::TempDir directory;
  std::string log_dir = directory.file("log");
  std::string log = log_dir + "/abcdef/0/workerlog.0";

  LogPlace place() const {
    return {log_dir, "abcdef", "0", "workerlog.0", {"workerlog.0", "default.abcdef.trainer.0.log"}};
  }
  std::string part(int number) const { return text_of(log + "." + std::to_string(number)); }
  /// Every part, oldest first.
  std::string all() const {
    std::string text;
    for (int number = 20; number > 0; --number) text.append(part(number));
    return text + text_of(log);
  }
};

const LogWriter::Time kNow{};

std::string numbered_lines(int begin, int end) {
  std::string text;
  for (int i = begin; i < end; ++i) text.append("line ").append(std::to_string(1000 + i)).append("\n");
  return text;  // ten bytes each
}

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

}  // namespace

TEST_CASE("without a cap a log is one file, with its other names") {
  const Place place;
  LogWriter writer(place.place(), {});
  writer.write("a\n", kNow);
  writer.write("b", kNow);
  CHECK(text_of(place.log) == "a\nb");
  CHECK(text_of(place.log_dir + "/workerlog.0") == "a\nb");
  LogWriter next(place.place(), {});
  next.write("c\n", kNow);
  CHECK(text_of(place.log_dir + "/default.abcdef.trainer.0.log") == "a\nbc\n");
  CHECK(writer.dropped() + next.dropped() == 0);
}

TEST_CASE("at the cap a log is rotated between two lines, and as many are kept as wanted") {
  const Place place;
  LogWriter writer(place.place(), {.cap = 35, .keep = 3});
  writer.write(numbered_lines(0, 4), kNow);
  writer.write("line", kNow);
  writer.write(" 1004\n" + numbered_lines(5, 14), kNow);
  CHECK(text_of(place.log) == numbered_lines(12, 14));
  CHECK(place.part(1) == numbered_lines(9, 12));
  CHECK(place.part(2) == numbered_lines(6, 9));
  CHECK(place.part(3) == numbered_lines(3, 6));
  CHECK(place.part(4) == "");
  CHECK(writer.removed() == 30);
  CHECK(text_of(place.log_dir + "/workerlog.0") == numbered_lines(12, 14));
  CHECK(text_of(place.log_dir + "/default.abcdef.trainer.0.log") == numbered_lines(12, 14));
}

TEST_CASE("a line that is longer than a file goes on in the next") {
  const Place place;
  LogWriter writer(place.place(), {.cap = 10, .keep = 20});
  const std::string text = "short\n" + std::string(27, 'x') + "\nend";
  writer.write(text, kNow);
  CHECK(place.all() == text);
  for (int i = 1; i < 5; ++i) CHECK(place.part(i).size() <= 10);
}

TEST_CASE("the names of a later attempt are left alone") {
  const Place place;
  LogWriter writer(place.place(), {.cap = 15, .keep = 3});
  writer.write("first one\n", kNow);
  LogPlace second = place.place();
  second.attempt = "1";
  fs::remove(place.log_dir + "/workerlog.0");
  LogWriter later(second, {});
  later.write("second\n", kNow);
  writer.write("first two\n", kNow);
  CHECK(text_of(place.log) == "first two\n");
  CHECK(text_of(place.log_dir + "/workerlog.0") == "second\n");
}

TEST_CASE("killed at any step of a rotation: the next writer loses nothing") {
  for (const int kept : {2, 3}) {
    for (int kill_at = 0; kill_at < 12; ++kill_at) {
      CAPTURE(kill_at);
      const Place place;
      const LogLimits limits{.cap = 20, .keep = kept};
      int steps = 0;
      bool was_killed = false;
      std::uint64_t removed = 0;
      {
        LogWriter writer(place.place(), limits, [&](std::string_view) {
          if (steps++ == kill_at) throw Killed();
        });
        try {
          writer.write(numbered_lines(0, 2), kNow);
          writer.write(numbered_lines(2, 4), kNow);
          writer.write(numbered_lines(4, 6), kNow);
          writer.write(numbered_lines(6, 8), kNow);
        } catch (const Killed&) {
          was_killed = true;
        }
        removed += writer.removed();
      }
      const std::string before = place.all();
      const std::string expected = numbered_lines(static_cast<int>(removed / 10), 8).substr(0, before.size());
      CHECK(before == expected);
      LogWriter next(place.place(), limits);
      next.write("more text\nmore text\n", kNow);
      CHECK(place.all() == before.substr(next.removed()) + "more text\nmore text\n");
      CHECK(text_of(place.log_dir + "/workerlog.0") == "more text\nmore text\n");
      CHECK((was_killed || kill_at >= steps));
    }
  }
}

TEST_CASE("a directory that is deleted is made again, with what comes then") {
  const Place place;
  LogWriter writer(place.place(), {});
  writer.write("lost\n", kNow);
  fs::remove_all(place.log_dir);
  writer.write("kept\n", kNow + 1s);
  CHECK(text_of(place.log) == "kept\n");
  CHECK(text_of(place.log_dir + "/workerlog.0") == "kept\n");
}

TEST_CASE("what cannot be written is dropped, counted and told about") {
  const Place place;
  place.directory.write("log", "in the way");
  LogWriter writer(place.place(), {});
  writer.write("lost\n", kNow);
  CHECK(writer.error() == ENOTDIR);
  fs::remove(place.log_dir);
  writer.write("lost\n", kNow + 50ms);  // it waits before it tries again
  CHECK(writer.dropped() == 10);
  writer.write("kept\n", kNow + 200ms);
  CHECK(text_of(place.log) == "[fleetrun: 10 bytes dropped: Not a directory]\nkept\n");
  CHECK(writer.error() == 0);
}

TEST_CASE("a full disk costs what does not fit, and no more") {
  const Place place;
  fs::create_directory(place.log_dir);
  if (::geteuid() != 0 || ::mount("tmpfs", place.log_dir.c_str(), "tmpfs", 0, "size=64k") != 0) return;
  LogWriter writer(place.place(), {});
  const std::string block = numbered_lines(0, 100);
  for (int i = 0; i < 100; ++i) writer.write(block, kNow);
  CHECK(writer.error() == ENOSPC);
  CHECK(writer.dropped() + fs::file_size(place.log) == 100 * block.size());
  const auto held = fs::file_size(place.log);
  CHECK(held > 32 * 1024);
  fs::resize_file(place.log, 1000);
  writer.write("there is room again\n", kNow + 10s);
  const std::string text = text_of(place.log).substr(1000);
  CHECK(text == "\n[fleetrun: " + std::to_string(100 * block.size() - held) +
                    " bytes dropped: No space left on device]\nthere is room again\n");
  ::umount2(place.log_dir.c_str(), MNT_DETACH);
}
