#include "dataset/queue/queue_dataset.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::dataset {
namespace {

QueueDatasetOptions options_for(std::vector<std::string> files) {
  return {.slots = {{.name = "s", .type = SlotType::int64, .dense = false, .width = 1}},
          .batch_size = 2,
          .files = std::move(files)};
}

/// All ids of one reader, batch by batch.
std::vector<std::vector<std::int64_t>> drain(QueueDataset& dataset, std::size_t reader) {
  std::vector<std::vector<std::int64_t>> batches;
  Batch batch;
  while (dataset.next(reader, batch)) batches.push_back(batch.slots[0].ints);
  return batches;
}

void check_config_error(const QueueDatasetOptions& options, const std::string& what,
                        const std::string& hint) {
  try {
    QueueDataset dataset(options);
    dataset.start(false);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.what() == what);
    CHECK(error.hint() == hint);
  }
}

using Batches = std::vector<std::vector<std::int64_t>>;

TEST_CASE("one reader takes the files in order; batches go on over files and the last may be short") {
  const tests::TempDir directory;
  QueueDataset dataset(options_for(
      {directory.write("a", "1 1\n1 2\n1 3\n"), directory.write("b", ""), directory.write("c", "1 4\n1 5")}));
  dataset.start(false);
  CHECK(dataset.readers() == 1);
  CHECK(drain(dataset, 0) == Batches{{1, 2}, {3, 4}, {5}});
}

TEST_CASE("delimited text goes through a schema, by the slots' names and in their order") {
  const tests::TempDir directory;
  QueueDatasetOptions options =
      options_for({directory.write("a", "7,1\n8,2\n9,3\n"), directory.write("b", "9,4")});
  options.schema = directory.write("s.json", R"({"delimiter": ",", "columns": 2, "slots": [
      {"name": "other", "type": "int64", "columns": ["1"]}, {"name": "s", "type": "int64", "columns": ["2"]}]})");
  QueueDataset dataset(options);
  dataset.start(false);
  CHECK(drain(dataset, 0) == Batches{{1, 2}, {3, 4}});
  options.files = {directory.write("c", "7,1\n8,x\n9,3\n")};
  options.bad_lines.skip = 1;
  QueueDataset skipping(options);
  skipping.start(false);
  CHECK(drain(skipping, 0) == Batches{{1, 3}});
}

TEST_CASE("a schema that does not have the slots is refused") {
  const tests::TempDir directory;
  QueueDatasetOptions options = options_for({});
  options.schema =
      directory.write("s.json", R"({"columns": 1, "slots": [{"each": ["1"], "type": "int64"}]})");
  check_config_error(options, "slot 's' is not in the schema " + options.schema,
                     "name it there as the input variable is named");
  options.prefixes.id = true;
  check_config_error(
      options, "delimited text, which a schema describes, has no ids, contents or log keys before its slots",
      "");
}

TEST_CASE("drop_last leaves a reader's short batch out, and only that") {
  const tests::TempDir directory;
  QueueDatasetOptions options =
      options_for({directory.write("a", "1 1\n1 2\n1 3\n"), directory.write("c", "1 4\n1 5")});
  options.drop_last = true;
  QueueDataset dataset(options);
  dataset.start(false);
  CHECK(drain(dataset, 0) == Batches{{1, 2}, {3, 4}});
  options.files.pop_back();
  options.files.push_back(directory.write("d", "1 4"));
  QueueDataset whole(options);
  whole.start(false);
  CHECK(drain(whole, 0) == Batches{{1, 2}, {3, 4}});
}

TEST_CASE("skip:N: the good lines around the bad ones all come, the bad ones are counted in each pass") {
  const tests::TempDir directory;
  const std::string first = directory.write("a", "1 1\nx\n1 2\n\n1 3\n");
  const std::string second = directory.write("b", "0\n1 4\n1 5 5\n1 6\n1");
  QueueDatasetOptions options = options_for({first, second});
  options.bad_lines.skip = 5;
  QueueDataset dataset(options);
  for (int pass = 0; pass < 2; ++pass) {
    dataset.start(false);
    CHECK(drain(dataset, 0) == Batches{{1, 2}, {3, 4}, {6}});
    CHECK(dataset.bad_lines().count == 5);
    CHECK(dataset.bad_lines().places ==
          std::vector<std::string>{
              first + ":2:1: slot 's': 'x' is not a count of values", first + ":4:1: the line is empty",
              second + ":1:1: slot 's': a count of 0; an example needs at least 1 value in each slot",
              second + ":3:5: the line goes on with '5' after the last slot, 's'",
              second + ":5:2: slot 's': 1 value announced, the line ends after 0"});
  }
  options.bad_lines.skip = 4;
  QueueDataset strict(options);
  strict.start(false);
  try {
    drain(strict, 0);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.what() == second + ":5:2: slot 's': 1 value announced, the line ends after 0");
    REQUIRE(error.context().size() == 1);
    CHECK(error.context()[0].starts_with("reading on, as skip:4 says, after 4 bad lines were skipped: " +
                                         first));
  }
}

TEST_CASE("a dataset can be read again, also after it was stopped halfway") {
  const tests::TempDir directory;
  std::string text;
  for (int i = 0; i < 1000; ++i) text.append("1 7\n");
  QueueDataset dataset(options_for({directory.write("a", text)}));
  for (int epoch = 0; epoch < 3; ++epoch) {
    dataset.start(false);
    CHECK(drain(dataset, 0).size() == 500);
  }
  dataset.start(false);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  dataset.stop();
  dataset.stop();
  CHECK_FALSE(dataset.next(0, batch));
  dataset.start(false);
  CHECK(drain(dataset, 0).size() == 500);
}

TEST_CASE("several threads may stop a dataset at once") {
  const tests::TempDir directory;
  std::string text;
  for (int i = 0; i < 1000; ++i) text.append("1 7\n");
  const std::string file = directory.write("a", text);
  for (int round = 0; round < 50; ++round) {
    QueueDataset dataset(options_for({file}));
    dataset.start(false);
    std::thread other([&] { dataset.stop(); });
    dataset.stop();
    other.join();
    Batch batch;
    CHECK_FALSE(dataset.next(0, batch));
  }
}

TEST_CASE("several readers share the files: every example once") {
  const tests::TempDir directory;
  std::vector<std::string> files;
  for (int file = 0; file < 7; ++file) {
    std::string text;
    for (int line = 0; line < 101; ++line)
      text.append("1 ").append(std::to_string(file * 1000 + line)).append("\n");
    files.push_back(directory.write("part-" + std::to_string(file), text));
  }
  QueueDatasetOptions options = options_for(files);
  options.threads = 3;
  options.queue_batches = 1;
  QueueDataset dataset(options);
  dataset.start(false);
  REQUIRE(dataset.readers() == 3);
  std::vector<Batches> seen(3);
  {
    std::vector<std::jthread> consumers;
    for (std::size_t reader = 0; reader < 3; ++reader)
      consumers.emplace_back([&, reader] { seen[reader] = drain(dataset, reader); });
  }
  std::multiset<std::int64_t> ids;
  for (const Batches& batches : seen)
    for (const auto& batch : batches) ids.insert(batch.begin(), batch.end());
  CHECK(ids.size() == 707);
  for (int file = 0; file < 7; ++file)
    for (int line = 0; line < 101; ++line) REQUIRE(ids.count(file * 1000 + line) == 1);
}

TEST_CASE("in turn, each reader takes the same files in every run, however fast the others are") {
  const tests::TempDir directory;
  std::vector<std::string> files;
  for (int file = 0; file < 5; ++file)
    files.push_back(directory.write("part-" + std::to_string(file), "1 " + std::to_string(file) + "\n"));
  QueueDatasetOptions options = options_for(files);
  options.threads = 2;
  QueueDataset dataset(options);
  for (int run = 0; run < 3; ++run) {
    dataset.start(true);
    // One after the other: a reader that is not waited for reads no file of this one's.
    CHECK(drain(dataset, 1) == Batches{{1, 3}});
    CHECK(drain(dataset, 0) == Batches{{0, 2}, {4}});
  }
}

TEST_CASE("there are never more readers than files") {
  const tests::TempDir directory;
  QueueDatasetOptions options = options_for({directory.write("a", "1 1\n"), directory.write("b", "1 2\n")});
  options.threads = 16;
  QueueDataset dataset(options);
  dataset.start(false);
  CHECK(dataset.readers() == 2);
}

TEST_CASE("a bad line ends the pass with file, line, column and slot, for every reader and every call") {
  const tests::TempDir directory;
  std::string endless;
  for (int i = 0; i < 100000; ++i) endless.append("1 7\n");
  const std::string bad = directory.write("bad", "1 1\n1 2\n1 x\n");
  QueueDatasetOptions options = options_for({directory.write("endless", endless), bad});
  options.threads = 2;
  QueueDataset dataset(options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    dataset.start(false);
    for (const std::size_t reader : {1, 0, 1}) {
      try {
        drain(dataset, reader);
        FAIL("no error");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
        CHECK(error.what() == bad + ":3:3: slot 's': 'x' is not a whole number");
        CHECK(error.hint() ==
              "mend the data or what prints it; --bad_line=skip:N passes over up to N such lines");
        CHECK(error.context().empty());
      }
    }
  }
}

TEST_CASE("missing files are refused before anything starts") {
  const tests::TempDir directory;
  QueueDataset dataset(options_for({directory.write("a", "1 1\n"), directory.file("gone")}));
  try {
    dataset.start(false);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).starts_with("1 of 2 files cannot be read: " + directory.file("gone")));
  }
  CHECK(dataset.readers() == 0);
}

TEST_CASE("options that make no sense") {
  const tests::TempDir directory;
  const QueueDatasetOptions good = options_for({directory.write("a", "1 1\n")});
  QueueDatasetOptions options = good;
  options.slots.clear();
  check_config_error(options, "a dataset without slots", "give the input variables as use_var");
  options = good;
  options.slots[0].name.clear();
  check_config_error(options, "a slot without a name", "");
  options = good;
  options.slots[0].width = 0;
  check_config_error(options, "slot 's' has a width of 0, less than 1", "");
  options = good;
  options.batch_size = 0;
  check_config_error(options, "a batch size of 0, less than 1", "");
  options = good;
  options.threads = 0;
  check_config_error(options, "a thread count of 0, less than 1", "");
  options = good;
  options.queue_batches = 0;
  check_config_error(options, "a queue of 0 batches, less than 1", "");
  options = good;
  options.files.clear();
  check_config_error(options, "a dataset without files", "call set_filelist() with the data files");
  options.allows_no_files = true;
  options.threads = 3;
  options.starts_next_epoch = true;
  for (const bool in_turn : {false, true}) {
    QueueDataset dataset(options);
    dataset.start(in_turn);
    Batch batch;
    CHECK(dataset.readers() == 1);
    CHECK_FALSE(dataset.next(0, batch));
  }
}

}  // namespace
}  // namespace fleetrun::dataset
