#include "ps/durable/write_log.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::error_of;
using fleetrun::tests::TempDir;

namespace {

constexpr std::size_t kHead = 16 + 24 + 16;  // of a segment that follows another

void append(WriteLog& log, std::uint32_t kind, const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  const std::size_t half = text.size() / 2;
  log.append(kind, {bytes.first(half), {}, bytes.subspan(half)});
}

std::vector<std::string> read(const std::string& directory, std::uint64_t first = 1,
                              ReplayedLog* replayed = nullptr) {
  std::vector<std::string> out;
  const ReplayedLog result = replay_log(directory, first, [&](LogRecord& record) {
    std::string text(record.payload.remaining(), '\0');
    record.payload.read(text.data(), text.size());
    out.push_back(std::to_string(record.kind) + text);
  });
  if (replayed != nullptr) *replayed = result;
  return out;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void replace(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("records come back in order, over segments") {
  const TempDir directory;
  {
    WriteLog log(directory.path().string(), 1, LogSync::process);
    append(log, 1, "one");
    append(log, 2, "");
    CHECK(log.rotate() == 2);
    CHECK(log.bytes() == kHead);
    append(log, 3, std::string(100000, 'x'));
    CHECK(log.bytes() == kHead + 24 + 100000);
  }
  ReplayedLog replayed;
  CHECK(read(directory.path().string(), 1, &replayed) ==
        std::vector<std::string>{"1one", "2", "3" + std::string(100000, 'x')});
  CHECK(replayed.next_segment == 3);
  CHECK(replayed.records == 3);
  CHECK(replayed.cut_off == 0);
  CHECK(read(directory.path().string(), 2).size() == 1);
  CHECK(read(directory.path().string(), 3).empty());
  remove_log_before(directory.path().string(), 2);
  CHECK(read(directory.path().string(), 2).size() == 1);
  const Error error = error_of([&] { read(directory.path().string(), 1); });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) ==
        log_path(directory.path().string(), 1) + ": this part of the log is missing");
}

TEST_CASE("a log that ends anywhere is read up to its last whole record, and goes on after it") {
  const TempDir made;
  {
    WriteLog log(made.path().string(), 1, LogSync::process);
    append(log, 1, "first");
    append(log, 2, "second");
  }
  const std::string whole = contents(log_path(made.path().string(), 1));
  const std::size_t second = 16 + 24 + 5;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const TempDir directory;
    replace(log_path(directory.path().string(), 1), whole.substr(0, size));
    const std::size_t expected = size == whole.size() ? 2 : size >= second ? 1 : 0;
    REQUIRE(read(directory.path().string()).size() == expected);
    ReplayedLog replayed;
    REQUIRE(read(directory.path().string(), 1, &replayed).size() == expected);
    REQUIRE(replayed.cut_off == 0);
    {
      WriteLog log(directory.path().string(), replayed.next_segment, LogSync::process);
      append(log, 3, "third");
    }
    REQUIRE(read(directory.path().string()).size() == expected + 1);
  }
}

TEST_CASE("every flipped byte before the last record is found, and named") {
  const TempDir made;
  {
    WriteLog log(made.path().string(), 1, LogSync::process);
    append(log, 1, "first");
    append(log, 2, "second");
    append(log, 3, "third");
  }
  const std::string path = log_path(made.path().string(), 1);
  const std::string whole = contents(path);
  const std::size_t last = whole.size() - 24 - 5;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    replace(path, flipped);
    if (at >= last) {
      REQUIRE(read(made.path().string()).size() == 2);
      continue;
    }
    const Error error = error_of([&] { read(made.path().string()); });
    REQUIRE(error.kind() == ErrorKind::data);
    REQUIRE(std::string(error.what()).starts_with(path + ": byte "));
    REQUIRE(contents(path) == flipped);
  }
}

TEST_CASE("a record at another place, or of another segment, is none") {
  const TempDir directory;
  {
    WriteLog log(directory.path().string(), 1, LogSync::process);
    append(log, 1, "first");
    append(log, 2, "other");
  }
  const std::string path = log_path(directory.path().string(), 1);
  const std::string whole = contents(path);
  const std::size_t record = 24 + 5;
  SUBCASE("swapped") {
    replace(path, whole.substr(0, 16) + whole.substr(16 + record) + whole.substr(16, record));
  }
  SUBCASE("twice") {
    replace(path, whole.substr(0, 16) + whole.substr(16 + record));
  }
  CHECK(read(directory.path().string()).empty());
}

TEST_CASE("what was never safe is cut off also where something follows it; what was safe is missed") {
  const TempDir directory;
  std::promise<void> safe;
  {
    WriteLog log(directory.path().string(), 1, LogSync::power);
    append(log, 1, "first");
    log.when_safe([&] { safe.set_value(); });
    safe.get_future().get();
    append(log, 2, "second");
    append(log, 3, "third");
  }
  const std::string path = log_path(directory.path().string(), 1);
  const std::string whole = contents(path);
  std::string flipped = whole;
  SUBCASE("never safe") {
    flipped[16 + 24 + 5 + 24] ^= 1;
    replace(path, flipped);
    ReplayedLog replayed;
    CHECK(read(directory.path().string(), 1, &replayed) == std::vector<std::string>{"1first"});
    CHECK(replayed.cut_off == 24 + 6 + 24 + 5);
  }
  SUBCASE("safe") {
    flipped[16 + 24] ^= 1;
    replace(path, flipped);
    CHECK(error_of([&] { read(directory.path().string()); }).kind() == ErrorKind::data);
  }
}

TEST_CASE("what waits for the disk is told once it is there, in order") {
  const TempDir directory;
  std::vector<int> told;
  {
    WriteLog log(directory.path().string(), 1, LogSync::power);
    for (int i = 0; i < 100; ++i) {
      append(log, 1, std::to_string(i));
      log.when_safe([&told, i] { told.push_back(i); });
      if (i == 50) log.rotate();
    }
  }
  REQUIRE(told.size() == 100);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(read(directory.path().string()).size() == 100);
}

TEST_CASE(
    "a segment that goes on from what was lost with the host is not read, and the next takes its place") {
  const TempDir directory;
  const std::string one = log_path(directory.path().string(), 1),
                    two = log_path(directory.path().string(), 2);
  {
    WriteLog log(directory.path().string(), 1, LogSync::process);
    append(log, 1, "first");
    append(log, 2, "second");
    log.rotate();
    append(log, 3, "third");
    log.rotate();
    append(log, 4, "fourth");
  }
  std::size_t cut = 24 + 6, expected = 1;
  SUBCASE("a record is gone") {}
  SUBCASE("and a part of the one before it") {
    cut += 2;
    expected = 0;
  }
  SUBCASE("zeros are in its place") {
    const std::string whole = contents(one);
    replace(one, whole.substr(0, whole.size() - cut) + std::string(cut, '\0'));
    cut = 0;
  }
  const std::string whole = contents(one);
  replace(one, whole.substr(0, whole.size() - cut));
  ReplayedLog replayed;
  CHECK(read(directory.path().string(), 1, &replayed).size() == expected);
  CHECK(replayed.next_segment == 2);
  CHECK(replayed.cut_off >= 2 * kHead + 24 + 5 + 24 + 6);
  CHECK_FALSE(std::filesystem::exists(two));
  CHECK_FALSE(std::filesystem::exists(log_path(directory.path().string(), 3)));
  {
    WriteLog log(directory.path().string(), replayed.next_segment, LogSync::process);
    append(log, 5, "fifth");
  }
  CHECK(read(directory.path().string()).size() == expected + 1);
}

TEST_CASE("a segment that was safe when another was begun must be whole") {
  const TempDir directory;
  const std::string path = log_path(directory.path().string(), 1);
  const auto error_when_cut = [&](std::size_t size) {
    replace(path, contents(path).substr(0, size));
    return std::string(error_of([&] { read(directory.path().string()); }).what());
  };
  SUBCASE("by the process") {
    WriteLog log(directory.path().string(), 1, LogSync::power);
    append(log, 1, "first");
    log.rotate();
  }
  SUBCASE("by the one that goes on after it") {
    { append(*std::make_unique<WriteLog>(directory.path().string(), 1, LogSync::process), 1, "first"); }
    WriteLog(directory.path().string(), 2, LogSync::power);
  }
  CHECK(read(directory.path().string()).size() == 1);
  CHECK(error_when_cut(30) ==
        path + ": byte 16: its end is missing, and was safe when another segment was begun");
  CHECK(error_when_cut(16) ==
        path + ": byte 16: its end is missing, and was safe when another segment was begun");
}

TEST_CASE("a segment before one whose beginning is missing must be whole") {
  const TempDir directory;
  {
    WriteLog log(directory.path().string(), 1, LogSync::process);
    append(log, 1, "first");
    log.rotate();
  }
  const std::string one = log_path(directory.path().string(), 1),
                    two = log_path(directory.path().string(), 2);
  replace(two, contents(two).substr(0, 10));
  CHECK(read(directory.path().string()).size() == 1);
  replace(two, "");
  replace(one, contents(one).substr(0, 30));
  CHECK(std::string(error_of([&] { read(directory.path().string()); }).what()) ==
        one + ": byte 16: a record is damaged, and another segment follows");
}

TEST_CASE("a log that cannot be made says so") {
  CHECK(error_of([] { WriteLog("/nowhere/at/all", 1, LogSync::process); }).kind() == ErrorKind::host);
}
