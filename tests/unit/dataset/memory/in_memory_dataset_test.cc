#include "dataset/memory/in_memory_dataset.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "runtime/base/error.h"
#include "tests/unit/dataset/memory/examples.h"

namespace fleetrun::dataset {
namespace {

using namespace tests;
using Labels = std::vector<std::int64_t>;

void load(InMemoryDataset& dataset, std::vector<std::string> parts, bool drop_zeros = false) {
  dataset.load(
      {.source = std::make_shared<TextSource>(mixed_slots(), std::move(parts), 7), .drop_zeros = drop_zeros});
}

std::vector<Labels> drain(InMemoryDataset& dataset, std::size_t reader) {
  std::vector<Labels> batches;
  Batch batch;
  while (dataset.next(reader, batch)) batches.push_back(labels(batch));
  return batches;
}

Labels pass(InMemoryDataset& dataset, InMemoryDataset::Reading reading = {.batch_size = 4, .threads = 2}) {
  dataset.set_reading(reading);
  dataset.start(true);
  Labels all;
  for (std::size_t r = 0; r < dataset.readers(); ++r)
    for (const Labels& batch : drain(dataset, r)) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

Labels up_to(std::int64_t count) {
  Labels values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

template <class Call>
void check_config_error(Call call, const std::string& what, const std::string& hint) {
  try {
    call();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.what() == what);
    CHECK(error.hint() == hint);
  }
}

TEST_CASE(
    "readers' parts come one after the other, each reader of a pass has a contiguous share, the last batch "
    "is short") {
  InMemoryDataset dataset;
  load(dataset, {mixed_lines(0, 10, 3), mixed_lines(10, 11, 3)});
  CHECK(dataset.rows() == 11);
  dataset.set_reading({.batch_size = 4, .threads = 2});
  for (int epoch = 0; epoch < 2; ++epoch) {
    dataset.start(false);
    REQUIRE(dataset.readers() == 2);
    CHECK(drain(dataset, 0) == std::vector<Labels>{{0, 1, 2, 3}, {4, 5}});
    CHECK(drain(dataset, 1) == std::vector<Labels>{{6, 7, 8, 9}, {10}});
  }
  dataset.set_reading({.batch_size = 4, .threads = 2, .drop_last = true});
  dataset.start(false);
  CHECK(drain(dataset, 0) == std::vector<Labels>{{0, 1, 2, 3}});
  CHECK(drain(dataset, 1) == std::vector<Labels>{{6, 7, 8, 9}});
}

TEST_CASE("no more readers than examples, and one where there are none") {
  InMemoryDataset dataset;
  load(dataset, {mixed_lines(0, 2, 1)});
  CHECK(pass(dataset, {.batch_size = 4, .threads = 5}) == up_to(2));
  CHECK(dataset.readers() == 2);
  load(dataset, {""});
  CHECK(pass(dataset).empty());
  CHECK(dataset.readers() == 1);
}

TEST_CASE("a pass that is stopped ends, and the next one is whole") {
  InMemoryDataset dataset;
  load(dataset, {mixed_lines(0, 20, 1)});
  dataset.set_reading({.batch_size = 4, .threads = 1});
  dataset.start(false);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  dataset.stop();
  CHECK_FALSE(dataset.next(0, batch));
  CHECK(pass(dataset) == up_to(20));
}

TEST_CASE("the seed decides all shuffles") {
  const auto orders = [](std::uint64_t seed) {
    InMemoryDataset dataset;
    dataset.set_seed(seed);
    load(dataset, {mixed_lines(0, 300, 2)});
    std::vector<Labels> all;
    for (int i = 0; i < 2; ++i) {
      dataset.local_shuffle(2);
      all.push_back(pass(dataset));
    }
    return all;
  };
  const std::vector<Labels> first = orders(1);
  CHECK(orders(1) == first);
  CHECK(orders(2) != first);
  CHECK(first[0] != first[1]);
  CHECK(std::set<std::int64_t>(first[1].begin(), first[1].end()).size() == 300);
}

TEST_CASE("trainers of one seed have orders that have nothing to do with each other") {
  constexpr std::size_t kRows = 4000;
  const auto order = [](std::uint32_t trainer) {
    InMemoryDataset dataset(trainer);
    dataset.set_seed(5);
    load(dataset, {mixed_lines(0, kRows, 2)});
    dataset.local_shuffle(2);
    return pass(dataset);
  };
  const std::vector<Labels> orders{order(0), order(1), order(2)};
  CHECK(order(1) == orders[1]);
  for (std::size_t one = 0; one < orders.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      double sum = 0.0;
      const double mean = (kRows - 1) / 2.0;
      for (std::size_t i = 0; i < kRows; ++i)
        sum += (static_cast<double>(orders[one][i]) - mean) * (static_cast<double>(orders[other][i]) - mean);
      // Of independent orders the correlation has a deviation of 1 / sqrt(kRows), 0.016.
      CHECK(std::abs(sum / (kRows * (1.0 * kRows * kRows - 1) / 12.0)) < 0.06);
    }
  }
}

TEST_CASE("zeros of sparse slots are kept, or left out as Paddle does") {
  const std::string text = "3 0 4 0 2 0 0 2 0 1.5 1 0\n2 0 0 2 0 0 1 1e-6 1 1\n";
  for (const bool drops : {false, true}) {
    CAPTURE(drops);
    InMemoryDataset dataset;
    load(dataset, {text}, drops);
    dataset.set_reading({.batch_size = 2});
    dataset.start(true);
    Batch batch;
    REQUIRE(dataset.next(0, batch));
    CHECK(batch.slots[0].ints == (drops ? Labels{4, 0} : Labels{0, 4, 0, 0, 0}));
    CHECK(batch.slots[2].floats ==
          (drops ? std::vector<float>{1.5F, 0} : std::vector<float>{0, 1.5F, 1e-6F}));
    CHECK(batch.slots[1].floats == std::vector<float>{0, 0, 0, 0});  // dense
    CHECK(labels(batch) == Labels{0, 1});
  }
}

TEST_CASE("slots that are shuffled have values of other examples, and get their own back") {
  InMemoryDataset dataset;
  load(dataset, {mixed_lines(0, 200, 1)});
  const auto ids = [&] {
    dataset.set_reading({.batch_size = 200});
    dataset.start(true);
    Batch batch;
    REQUIRE(dataset.next(0, batch));
    CHECK(labels(batch) == up_to(200));
    return batch.slots[0].ints;
  };
  const Labels own = ids();
  dataset.shuffle_slots({"ids"}, 1000);
  const Labels other = ids();
  CHECK(other != own);
  for (const std::int64_t id : other) CHECK(id % 1000 == 0);
  CHECK(ids() == other);
  dataset.shuffle_slots({"ids"}, 3);
  const Labels few = ids();
  CHECK(std::set<std::int64_t>(few.begin(), few.end()).size() == 3);
  dataset.shuffle_slots({}, 1000);
  CHECK(ids() == own);
  check_config_error([&] { dataset.shuffle_slots({"idz"}, 9); },
                     "slots_shuffle: 'idz' is not a slot of the dataset", "");
  check_config_error([&] { dataset.shuffle_slots({"label"}, 9); }, "slots_shuffle: 'label' is a dense slot",
                     "name slots with lod_level=1");
}

TEST_CASE(
    "examples of one id become one; groups of another size, and of two values for one slot, are dropped") {
  InMemoryDataset dataset;
  const std::string text =
      "1 b 1 0 2 0 0 1 0.5 1 3\n"
      "1 a 1 5 2 1 2 1 0 1 0\n"
      "1 b 2 7 8 2 4 5 1 0 1 0\n"
      "1 c 1 1 2 0 0 1 1 1 1\n"
      "1 d 1 1 2 0 0 1 1 1 1\n"
      "1 d 1 2 2 0 0 1 0 1 2\n"
      "1 a 1 0 2 0 0 1 0 1 9\n";
  dataset.load(
      {.source = std::make_shared<TextSource>(mixed_slots(), std::vector{text}, 3, LinePrefixes{.id = true}),
       .prefixes = {.id = true}});
  const MergeCounts counts = dataset.merge_by_line_id(2);
  CHECK(counts.merged == 2);
  CHECK(counts.wrong_size == 1);
  CHECK(counts.conflicts == 2);
  dataset.set_reading({.batch_size = 9});
  dataset.start(true);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  CHECK(batch.prefixes.ids == std::vector<std::string>{"a", "b"});
  CHECK(batch.slots[0].ints == Labels{5, 7, 8});
  CHECK(batch.slots[1].floats == std::vector<float>{1, 2, 4, 5});
  CHECK(batch.slots[2].floats == std::vector<float>{0, 0.5F});
  CHECK(labels(batch) == Labels{9, 3});
}

TEST_CASE("what needs examples, or their ids, says so") {
  InMemoryDataset dataset;
  check_config_error([&] { dataset.local_shuffle(1); }, "local_shuffle: no examples are in memory",
                     "call load_into_memory() first");
  check_config_error([&] { dataset.start(true); },
                     "a pass over an InMemoryDataset: no examples are in memory",
                     "call load_into_memory() first");
  check_config_error([&] { dataset.wait_preload(); }, "wait_preload_done() without a load in progress",
                     "call preload_into_memory() first");
  load(dataset, {mixed_lines(0, 2, 1)});
  check_config_error([&] { dataset.merge_by_line_id(2); },
                     "merge_by_lineid of examples that were loaded without their line ids",
                     "call set_merge_by_lineid() before load_into_memory()");
  dataset.release();
  CHECK(dataset.rows() == 0);
  CHECK(dataset.bytes() == 0);
  check_config_error([&] { dataset.start(true); },
                     "a pass over an InMemoryDataset: no examples are in memory",
                     "call load_into_memory() first");
}

TEST_CASE("a load in the background ends with its error when it is waited for") {
  class Failing : public TextSource {
   public:
    Failing() : TextSource(mixed_slots(), {mixed_lines(0, 5, 1), mixed_lines(5, 9, 1)}, 2) {}
    bool next(std::size_t reader, Batch& batch) override {
      if (reader == 1) throw Error(ErrorKind::data, "part 1 is bad");
      return TextSource::next(reader, batch);
    }
  };
  InMemoryDataset dataset;
  dataset.preload({.source = std::make_shared<Failing>()});
  try {
    dataset.wait_preload();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "part 1 is bad");
  }
  CHECK_FALSE(dataset.is_loaded());
  const auto preload = [&] {
    dataset.preload(
        {.source = std::make_shared<TextSource>(mixed_slots(), std::vector{mixed_lines(0, 9, 1)}, 2)});
  };
  preload();
  check_config_error([&] { dataset.local_shuffle(1); }, "local_shuffle: a load is in progress",
                     "call wait_preload_done() first");
  CHECK(dataset.rows() == 0);
  dataset.release();
  CHECK_FALSE(dataset.is_loaded());
  preload();
  dataset.wait_preload();
  CHECK(pass(dataset) == up_to(9));
}

}  // namespace
}  // namespace fleetrun::dataset
