#include "ps/durable/log_tail.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ps/durable/log_format.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void append(WriteLog& log, const std::string& text) {
  log.append(7, {bytes_of(text)});
}

std::vector<std::string> read(LogTail& tail) {
  std::vector<std::string> out;
  tail.read([&](LogRecord& record) {
    CHECK(record.kind == 7);
    std::string text(record.payload.remaining(), ' ');
    record.payload.read(text.data(), text.size());
    out.push_back(std::move(text));
  });
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a log is read as it grows, each record once, and over its segments") {
  const TempDir directory;
  WriteLog log(directory.path(), 3, LogSync::process);
  LogTail tail(directory.path(), 3);
  CHECK(read(tail).empty());
  append(log, "one");
  append(log, std::string(100'000, 'x'));
  CHECK(read(tail) == Words{"one", std::string(100'000, 'x')});
  CHECK(read(tail).empty());
  append(log, "three");
  CHECK(log.rotate() == 4);
  CHECK(log.rotate() == 5);
  append(log, "four");
  CHECK(read(tail) == Words{"three", "four"});
  CHECK(tail.segment() == 5);
}

TEST_CASE("a record that is written just now is read once all of it is there") {
  const TempDir directory;
  { append(*std::make_unique<WriteLog>(directory.path(), 1, LogSync::process), "whole"); }
  const std::string path = log_path(directory.path(), 1);
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (std::size_t size = 0; size < all.size(); ++size) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << all.substr(0, size);
    LogTail tail(directory.path(), 1);
    CHECK(read(tail).empty());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << all;
    CHECK(read(tail) == Words{"whole"});
  }
}

TEST_CASE("a segment that ends within a record, or is missing, is an error once another follows it") {
  const TempDir directory;
  WriteLog log(directory.path(), 1, LogSync::process);
  append(log, "one");
  const std::string path = log_path(directory.path(), 1);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  LogTail tail(directory.path(), 1);
  CHECK(read(tail).empty());
  log.rotate();
  CHECK(text_of([&] { read(tail); }) == path + ": it ends within a record, at byte 16");
  std::filesystem::remove(path);
  LogTail other(directory.path(), 1);
  CHECK(text_of([&] { read(other); }) ==
        path + " is not there, and " + log_path(directory.path(), 2) + " is");
}

TEST_CASE("what is no segment of this log is refused; a record that was changed, or moved, is not taken") {
  const TempDir directory;
  for (const std::uint64_t segment : {1, 2}) {
    WriteLog log(directory.path(), segment, LogSync::process);
    append(log, "one");
    append(log, "two");
  }
  const std::string path = log_path(directory.path(), 2), other = log_path(directory.path(), 1);
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr std::size_t kHead = sizeof(SegmentHead) + sizeof(RecordHead) + sizeof(Follows);
  constexpr std::size_t kRecord = sizeof(RecordHead) + 3;
  REQUIRE(all.size() == kHead + 2 * kRecord);
  const auto words_of = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    LogTail tail(directory.path(), 2);
    return read(tail);
  };
  CHECK(words_of(all) == Words{"one", "two"});
  std::string changed = all;
  changed.back() ^= 1;
  CHECK(words_of(changed) == Words{"one"});
  CHECK(words_of(all.substr(0, kHead) + all.substr(kHead + kRecord) + all.substr(kHead, kRecord)).empty());
  std::filesystem::copy_file(other, path, std::filesystem::copy_options::overwrite_existing);
  const auto said = [&] {
    return text_of([&] {
      LogTail tail(directory.path(), 2);
      read(tail);
    });
  };
  CHECK(said() == path + ": it does not begin as segment 2 of a server's log");
  std::filesystem::remove(path);
  std::filesystem::create_symlink(other, path);
  CHECK(said().find("Too many levels of symbolic links") != std::string::npos);
}
