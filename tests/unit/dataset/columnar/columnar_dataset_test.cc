#include "dataset/columnar/columnar_dataset.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "tests/support/columnar_rows.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;
using namespace fleetrun::tests;

namespace {

std::string refusal(ColumnarDatasetOptions options) {
  try {
    ColumnarDataset dataset(std::move(options));
    all_rows(dataset);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

struct TwoFiles {
  TempDir directory;
  Batch rows;  // of both
  std::vector<std::string> files{directory.file("a.frc"), directory.file("b.frc")};

  TwoFiles() {
    rows = columnar_rows(30, 10, 1);
    const Batch second = columnar_rows(25, 40, 2);
    write_columnar(files[0], rows, 8);
    write_columnar(files[1], second, 10);
    rows.rows += second.rows;
    for (std::size_t i = 0; i < rows.slots.size(); ++i) append(rows.slots[i], second.slots[i]);
  }
};

std::vector<std::size_t> batch_rows(ColumnarDataset& dataset, std::size_t reader) {
  std::vector<std::size_t> all;
  for (Batch batch; dataset.next(reader, batch);) all.push_back(batch.rows);
  return all;
}

}  // namespace

TEST_CASE(
    "one reader reads the files in order, and batches go on from block to block and from file to file") {
  TwoFiles two;
  ColumnarDataset dataset({.slots = {}, .files = two.files, .batch_size = 7});
  CHECK(dataset.slots() == columnar_slots());
  CHECK(dataset.rows() == 55);
  for (int epoch = 0; epoch < 2; ++epoch) CHECK(all_rows(dataset) == two.rows);
  dataset.start(false);
  CHECK(batch_rows(dataset, 0) == std::vector<std::size_t>{7, 7, 7, 7, 7, 7, 7, 6});
}

TEST_CASE("drop_last leaves out the batch that is short") {
  TwoFiles two;
  ColumnarDataset dataset({.slots = {}, .files = two.files, .batch_size = 7, .drop_last = true});
  dataset.start(false);
  CHECK(batch_rows(dataset, 0) == std::vector<std::size_t>(7, 7));
}

TEST_CASE("in turn each reader has blocks of its own; in any case every row comes once") {
  TwoFiles two;
  ColumnarDataset dataset({.slots = {}, .files = two.files, .batch_size = 6, .threads = 3});
  dataset.start(true);
  CHECK(dataset.readers() == 3);
  // Blocks have 8, 8, 8, 6, 10, 10 and 5 rows: those of reader 0 are the first, the fourth and the last.
  CHECK(batch_rows(dataset, 0) == std::vector<std::size_t>{6, 6, 6, 1});
  CHECK(batch_rows(dataset, 1) == std::vector<std::size_t>{6, 6, 6});
  CHECK(batch_rows(dataset, 2) == std::vector<std::size_t>{6, 6, 6});
  CHECK(all_rows(dataset, true) == all_rows(dataset, true));
  CHECK(all_rows(dataset).rows == 55);
}

TEST_CASE("there are no more readers than blocks, and at least one") {
  const TempDir directory;
  write_columnar(directory.file("none.frc"), columnar_rows(0, 8, 1), 8);
  ColumnarDataset dataset(
      {.slots = {}, .files = {directory.file("none.frc")}, .batch_size = 4, .threads = 9});
  dataset.start(false);
  CHECK(dataset.readers() == 1);
  Batch batch;
  CHECK_FALSE(dataset.next(0, batch));
}

TEST_CASE("slots are chosen by name, in the order that is wanted") {
  TwoFiles two;
  const std::vector<Slot> wanted{columnar_slots()[4], columnar_slots()[1]};
  ColumnarDataset dataset({.slots = wanted, .files = two.files, .batch_size = 55});
  const Batch rows = all_rows(dataset);
  CHECK(rows.slots[0] == two.rows.slots[4]);
  CHECK(rows.slots[1] == two.rows.slots[1]);
}

TEST_CASE("a slot that the file does not have, or has otherwise, is refused by name") {
  TwoFiles two;
  CHECK(refusal({.slots = {{.name = "other"}}, .files = two.files}) == two.files[0] + " has no slot 'other'");
  CHECK(refusal({.slots = {{.name = "label"}}, .files = two.files}) ==
        "slot 'label' is int64 with any number of values, in " + two.files[0] +
            " it is int64 with 1 value in each row");
  CHECK(refusal({.slots = {{.name = "one", .type = SlotType::float32}}, .files = two.files})
            .starts_with("slot 'one' is float32"));
}

TEST_CASE("options that make no dataset are refused") {
  TwoFiles two;
  CHECK(refusal({.slots = {}, .files = {}}) == "a dataset without files");
  CHECK(refusal({.slots = {}, .files = two.files, .batch_size = 0}) == "a batch size of 0, less than 1");
  CHECK(refusal({.slots = {}, .files = two.files, .threads = 0}) == "a thread count of 0, less than 1");
}

TEST_CASE("a file that is cut while it is read ends the pass with its name, and no signal") {
  TwoFiles two;
  ColumnarDataset dataset({.slots = {}, .files = two.files, .batch_size = 8, .threads = 2});
  dataset.start(false);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  std::filesystem::resize_file(two.files[0], 100);
  CHECK_THROWS_WITH_AS(
      dataset.next(0, batch),
      (two.files[0] + ": block 1, slot 'one' is no longer in the file: it was truncated while it was read")
          .c_str(),
      Error);
  CHECK_THROWS_AS(dataset.next(1, batch), Error);  // the other readers stop, and know why
}

TEST_CASE("values that changed are found, unless nobody looks") {
  TwoFiles two;
  std::fstream(two.files[0], std::ios::in | std::ios::out | std::ios::binary).seekp(64) << "\xff\xff";
  CHECK(refusal({.slots = {}, .files = two.files}) ==
        two.files[0] + ": block 0, slot 'one' is damaged: its checksum differs");
  CHECK(refusal({.slots = {}, .files = two.files, .verify = false}) == "accepted");
}

TEST_CASE("a pass that was stopped gives nothing more, and the next one everything") {
  TwoFiles two;
  ColumnarDataset dataset({.slots = {}, .files = two.files, .batch_size = 7});
  dataset.start(false);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  dataset.stop();
  CHECK_FALSE(dataset.next(0, batch));
  CHECK(all_rows(dataset) == two.rows);
}
