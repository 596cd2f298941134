#include "dataset/columnar/columnar_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"
#include "tests/support/columnar_rows.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using namespace fleetrun::tests;

namespace {

std::string bytes_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(text).str();
}

/// The rows of a file, or what is said about it.
struct Reading {
  std::optional<Batch> rows;
  std::string refusal;
};
Reading read(const std::string& file) {
  try {
    ColumnarDataset dataset({.slots = {}, .files = {file}, .batch_size = 16});
    return {all_rows(dataset), ""};
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::data);
    REQUIRE(std::string(error.what()).starts_with(file));
    return {std::nullopt, std::string(error.what()).substr(file.size())};
  }
}

Reading read(const TempDir& directory, const std::string& bytes) {
  return read(directory.write("read.frc", bytes));
}

/// In place: a file that is made anew thousands of times keeps a disk busy.
void overwrite(const std::string& file, std::size_t at, std::string_view bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(at))
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

const Batch kRows = columnar_rows(9, 12, 7);

std::string small_file(const TempDir& directory) {
  write_columnar(directory.file("whole.frc"), kRows, 4);
  return bytes_of(directory.file("whole.frc"));
}

}  // namespace

TEST_CASE("every flipped bit of a file is found, or changes nothing") {
  const TempDir directory;
  const std::string whole = small_file(directory);
  std::size_t found = 0, harmless = 0;
  const std::string file = directory.write("read.frc", whole);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    const char flipped = static_cast<char>(whole[bit / 8] ^ (1 << (bit % 8)));
    overwrite(file, bit / 8, {&flipped, 1});
    const Reading reading = read(file);
    overwrite(file, bit / 8, {&whole[bit / 8], 1});
    if (reading.rows) REQUIRE_MESSAGE(*reading.rows == kRows, "bit " << bit);
    ++(reading.rows ? harmless : found);
  }
  MESSAGE(whole.size() << " bytes: " << found << " bits found, " << harmless << " harmless (padding)");
  CHECK(found > 5000);
}

TEST_CASE("a file that is cut anywhere is refused, and one with more at its end too") {
  const TempDir directory;
  const std::string whole = small_file(directory);
  const std::string file = directory.write("cut.frc", whole);
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(file, size);
    const Reading reading = read(file);
    REQUIRE_FALSE(reading.rows);
    const char* reason = size < 8 ? "is not a columnar file" : "is half a columnar file";
    REQUIRE_MESSAGE(reading.refusal.find(reason) != std::string::npos, reading.refusal);
  }
  CHECK(read(directory, whole + "x").refusal.find("its end is missing") != std::string::npos);
  CHECK(read(directory, "1 2 3\n1 2 3\n").refusal ==
        " is not a columnar file: it does not begin with FRCOLUMN");
}

TEST_CASE("a file of a later version is refused by its number") {
  const TempDir directory;
  std::string later = small_file(directory);
  later[8] = 2;
  CHECK(read(directory, later).refusal == " has version 2 of the format, this program reads version 1");
}

TEST_CASE("an index that lies, and says that it was written so, is refused or read within the file") {
  const TempDir directory;
  const std::string whole = small_file(directory);
  std::uint64_t footer_bytes = 0;
  std::memcpy(&footer_bytes, whole.data() + whole.size() - 24, sizeof footer_bytes);
  const std::size_t footer_at = whole.size() - 24 - footer_bytes;
  const std::string file = directory.write("lying.frc", whole);
  std::mt19937_64 random(11);
  std::size_t refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string lying = whole;
    for (std::uint64_t change = 0; change <= random() % 3; ++change) {
      const std::size_t at = footer_at + random() % footer_bytes;
      const std::size_t size = std::min<std::size_t>(random() % 9, footer_at + footer_bytes - at);
      const std::uint64_t words[] = {random(), ~std::uint64_t{0}, random() % 10};
      std::memcpy(lying.data() + at, &words[random() % 3], std::min<std::size_t>(size, 8));
    }
    ContentDigest digest;
    digest.add(std::as_bytes(std::span(lying).subspan(footer_at, footer_bytes)));
    const std::uint64_t value = digest.value();
    std::memcpy(lying.data() + whole.size() - 16, &value, sizeof value);
    overwrite(file, footer_at, std::string_view(lying).substr(footer_at));
    refused += !read(file).rows;
  }
  CHECK(refused > 2500);
}

TEST_CASE("what is not a file is refused by name") {
  const TempDir directory;
  CHECK_THROWS_WITH_AS(ColumnarFile(directory.file("none.frc")),
                       (directory.file("none.frc") + " cannot be read: No such file or directory").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(ColumnarFile(directory.path().string()),
                       (directory.path().string() + " is not a regular file").c_str(), Error);
}
