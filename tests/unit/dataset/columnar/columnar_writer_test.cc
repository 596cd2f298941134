#include "dataset/columnar/columnar_writer.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "dataset/columnar/columnar_file.h"
#include "runtime/base/error.h"
#include "tests/support/columnar_rows.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using namespace fleetrun::tests;

namespace {

Batch read_back(const std::string& file, std::size_t batch_size) {
  ColumnarDataset dataset({.slots = {}, .files = {file}, .batch_size = batch_size});
  return all_rows(dataset);
}

}  // namespace

TEST_CASE("what is written is read again, for any size of ids, blocks and batches") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  for (const unsigned bits : {1u, 8u, 9u, 17u, 33u, 64u}) {
    for (const std::size_t rows : {0u, 1u, 64u, 65u, 200u}) {
      const Batch written = columnar_rows(rows, bits, 100 * bits + rows);
      for (const std::uint32_t block_rows : {7u, 64u, 1000u}) {
        INFO("bits " << bits << " rows " << rows << " block " << block_rows);
        CHECK(write_columnar(file, written, block_rows).rows == rows);
        for (const std::size_t batch_size : {1u, 10u, 1000u}) REQUIRE(read_back(file, batch_size) == written);
      }
    }
  }
}

TEST_CASE("values take the bytes that their range in a block needs") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  ColumnarWriter writer(file, {{.name = "id", .dense = true}}, 2);
  const std::vector<std::int64_t> ids{1000, 1255, -1, 255, 0, 70000, INT64_MIN, INT64_MAX};
  writer.add(batch_of(8, {{.floats = {}, .ints = ids, .offsets = {}}}));
  writer.finish();
  const ColumnarFile written(file);
  const int expected[] = {1, 2, 4, 8};
  for (std::uint64_t block = 0; block < 4; ++block)
    CHECK(written.section(block, 0).value_bytes == expected[block]);
}

TEST_CASE("counts are stored where rows differ only, and rows without a value can be") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  const auto counts_of = [&](std::vector<std::size_t> offsets) {
    Batch batch = batch_of(offsets.size() - 1, {{.floats = {}, .ints = {}, .offsets = offsets}});
    for (std::size_t i = 0; i < offsets.back(); ++i)
      batch.slots[0].ints.push_back(static_cast<std::int64_t>(i));
    ColumnarWriter writer(file, {{.name = "id"}});
    writer.add(batch);
    writer.finish();
    CHECK(read_back(file, 3) == batch);
    return static_cast<int>(ColumnarFile(file).section(0, 0).count_bytes);
  };
  CHECK(counts_of({0, 1, 2, 3}) == 0);
  CHECK(counts_of({0, 5, 10}) == 0);
  CHECK(counts_of({0, 5, 11}) == 1);
  CHECK(counts_of({0, 255, 257}) == 1);
  CHECK(counts_of({0, 256, 257}) == 2);
  CHECK(counts_of({0, 65536, 65537}) == 4);
  CHECK(counts_of({0, 0, 0}) == 1);
  CHECK(counts_of({0, 0, 2}) == 1);
}

TEST_CASE("equal examples make equal digests, other examples other ones") {
  const TempDir directory;
  const Batch rows = columnar_rows(50, 20, 1);
  const ColumnarWritten whole = write_columnar(directory.file("a.frc"), rows, 16);
  CHECK(whole.digest == write_columnar(directory.file("b.frc"), rows, 16).digest);
  CHECK(whole.bytes == std::filesystem::file_size(directory.file("a.frc")));
  CHECK(write_columnar(directory.file("c.frc"), columnar_rows(50, 20, 2), 16).digest != whole.digest);
}

TEST_CASE("a writer that goes without an end leaves nothing, and what was there before stays") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  const Batch rows = columnar_rows(20, 8, 3);
  write_columnar(file, rows, 4);
  {
    ColumnarWriter writer(file, columnar_slots(), 4);
    writer.add(columnar_rows(100, 8, 4));
    CHECK(std::filesystem::exists(file + ".partial"));
  }
  CHECK_FALSE(std::filesystem::exists(file + ".partial"));
  CHECK(read_back(file, 7) == rows);
}

TEST_CASE("what another writer left is replaced; one that still writes is not disturbed") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  directory.write("a.frc.partial", std::string(100000, 'x'));
  const Batch rows = columnar_rows(20, 8, 3);
  ColumnarWriter writer(file, columnar_slots(), 4);
  CHECK_THROWS_WITH_AS(ColumnarWriter(file, columnar_slots(), 4),
                       ("another process is writing " + file).c_str(), Error);
  writer.add(rows);
  writer.finish();
  CHECK(read_back(file, 7) == rows);
}

TEST_CASE("slots that no file can have, and places that cannot be written, are refused") {
  const TempDir directory;
  const std::string file = directory.file("a.frc");
  CHECK_THROWS_WITH_AS(ColumnarWriter(file, {}), "a columnar file without slots", Error);
  CHECK_THROWS_WITH_AS(ColumnarWriter(file, {{.name = ""}}), "a slot without a name", Error);
  CHECK_THROWS_WITH_AS(ColumnarWriter(file, {{.name = "a", .width = 0}}),
                       "slot 'a' has a width of 0, less than 1", Error);
  CHECK_THROWS_WITH_AS(ColumnarWriter(file, columnar_slots(), 0), "a columnar file with blocks without rows",
                       Error);
  CHECK_THROWS_WITH_AS(
      ColumnarWriter(directory.file("no/a.frc"), columnar_slots()),
      (directory.file("no/a.frc.partial") + " cannot be made: No such file or directory").c_str(), Error);
}
