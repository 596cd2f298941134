#include "ps/base/block_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::text_of;

namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Three blocks and some.
std::vector<std::uint32_t> numbers() {
  std::vector<std::uint32_t> out(800000);
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

BlockWriter::Written write_numbers(const std::string& path, const std::vector<std::uint32_t>& values) {
  BlockWriter out(path);
  for (const std::uint32_t value : values) out.value(value);
  return out.finish();
}

}  // namespace

TEST_CASE("what is written over several blocks is read again") {
  const fleetrun::tests::TempDir dir;
  const auto values = numbers();
  const auto written = write_numbers(dir.file("f"), values);
  CHECK(std::filesystem::file_size(dir.file("f")) == written.bytes);
  BlockReader in(dir.file("f"), written.bytes);
  std::vector<std::uint32_t> again(values.size());
  in.read(again.data(), again.size() * sizeof(std::uint32_t));
  CHECK(again == values);
  in.expect_end(written.digest);
  CHECK(text_of([&] { in.value<char>(); }) == dir.file("f") + ": the tables in it end too soon");
}

TEST_CASE("what is written to memory is what a file would have, and is read as such") {
  const fleetrun::tests::TempDir dir;
  const auto values = numbers();
  const auto written = write_numbers(dir.file("f"), values);
  std::vector<std::byte> memory;
  BlockWriter out(memory);
  for (const std::uint32_t value : values) out.value(value);
  CHECK(out.finish().digest == written.digest);
  CHECK(std::string(reinterpret_cast<const char*>(memory.data()), memory.size()) == read_text(dir.file("f")));
  BlockReader in("the state", memory);
  std::vector<std::uint32_t> again(values.size());
  in.read(again.data(), again.size() * sizeof(std::uint32_t));
  CHECK(again == values);
  in.expect_end(written.digest);
  memory[memory.size() / 2] ^= std::byte{1};
  BlockReader damaged("the state", memory);
  CHECK(text_of([&] { damaged.read(again.data(), again.size() * sizeof(std::uint32_t)); }) ==
        "the state: block 1 is damaged: its checksum differs");
}

TEST_CASE("a file that is not finished goes again") {
  const fleetrun::tests::TempDir dir;
  {
    BlockWriter out(dir.file("f"));
    out.value(1);
  }
  CHECK(std::filesystem::is_empty(dir.path().string()));
}

TEST_CASE("what does not fit the manifest is named") {
  const fleetrun::tests::TempDir dir;
  const std::string path = dir.file("f");
  const auto written = write_numbers(path, {1, 2, 3});
  CHECK(text_of([&] { BlockReader(dir.file("g"), 1); }) == dir.file("g") + ": the file is not there");
  CHECK(text_of([&] { BlockReader(path, 5); }) ==
        path + ": it has " + std::to_string(written.bytes) + " bytes, the manifest says 5");
  BlockReader early(path, written.bytes);
  CHECK(text_of([&] { early.expect_end(written.digest); }) == path + ": there is more in it than its tables");
  BlockReader other(path, written.bytes);
  for (int i = 0; i < 3; ++i) other.value<std::uint32_t>();
  CHECK(text_of([&] { other.expect_end(written.digest + 1); }) ==
        path + ": it is not the file that the manifest names: its digest differs");
}

TEST_CASE("two blocks that changed places are found") {
  const fleetrun::tests::TempDir dir;
  const std::string path = dir.file("f");
  const auto values = numbers();
  const auto written = write_numbers(path, values);
  std::string text = read_text(path);
  const std::size_t block = (1 << 20) + 8;
  std::swap_ranges(text.begin(), text.begin() + block, text.begin() + block);
  write_text(path, text);
  BlockReader in(path, written.bytes);
  CHECK(text_of([&] { in.value<std::uint32_t>(); }) == path + ": block 0 is damaged: its checksum differs");
}

TEST_CASE("a directory that is not there is named") {
  CHECK(text_of([] { BlockWriter("/no/such/place/f"); }) ==
        "/no/such/place/f: No such file or directory (open)");
}

TEST_CASE("a text file is replaced whole") {
  const fleetrun::tests::TempDir dir;
  write_file_atomically(dir.file("m"), dir.file("m.tmp"), "one");
  write_file_atomically(dir.file("m"), dir.file("m.tmp"), "two\n");
  CHECK(read_text(dir.file("m")) == "two\n");
  CHECK(!std::filesystem::exists(dir.file("m.tmp")));
}

TEST_CASE("a file that is there is not written over, and one that was removed meanwhile is missed") {
  const fleetrun::tests::TempDir dir;
  const std::string path = dir.file("f");
  BlockWriter out(path);
  out.value(1);
  const fleetrun::Error error = fleetrun::tests::error_of([&] { BlockWriter other(path); });
  CHECK(std::string(error.what()) == path + ": it is there already");
  CHECK(error.hint() == "another process saves to the same directory: give each its own");
  out.finish();
  out.check_still_there();
  std::filesystem::remove(path);
  CHECK(text_of([&] { out.check_still_there(); }) == path + ": it was removed before the save was complete");
}

TEST_CASE("what is no file is not read as one, and never waited for") {
  const fleetrun::tests::TempDir dir;
  const auto written = write_numbers(dir.file("f"), {1});
  std::filesystem::create_symlink(dir.file("f"), dir.file("link"));
  std::filesystem::create_directory(dir.file("d"));
  REQUIRE(::mkfifo(dir.file("fifo").c_str(), 0600) == 0);
  CHECK(text_of([&] { BlockReader(dir.file("link"), written.bytes); }) ==
        dir.file("link") + ": it is a symbolic link, not a file");
  CHECK(text_of([&] { BlockReader(dir.file("d"), written.bytes); }) == dir.file("d") + ": it is not a file");
  CHECK(text_of([&] { read_small_file(dir.file("fifo"), 10); }) == dir.file("fifo") + ": it is not a file");
  CHECK(text_of([&] { read_small_file(dir.file("f"), 3); }) == dir.file("f") + ": it has " +
                                                                   std::to_string(written.bytes) +
                                                                   " bytes, more than the 3 that are read");
  CHECK(!read_small_file(dir.file("none"), 3));
}

TEST_CASE("bytes are shown where they lie, or gathered where a block ends") {
  const fleetrun::tests::TempDir dir;
  const auto values = numbers();
  const auto written = write_numbers(dir.file("f"), values);
  BlockReader in(dir.file("f"), written.bytes);
  std::vector<std::byte> copy;
  for (std::size_t i = 0; i + 7 <= values.size(); i += 7) {
    const std::byte* at = in.view(7 * sizeof(std::uint32_t), copy);
    REQUIRE(std::memcmp(at, values.data() + i, 7 * sizeof(std::uint32_t)) == 0);
  }
}
