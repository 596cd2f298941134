#include "dataset/tools/slot_summary.h"

#include <doctest/doctest.h>

#include "dataset/text/multi_slot_parser.h"

using namespace fleetrun::dataset;

namespace {

const std::vector<Slot> kSlots{{.name = "ids"},
                               {.name = "price", .type = SlotType::float32, .dense = true, .width = 2},
                               {.name = "label", .dense = true}};

std::vector<SlotSummary> summaries(const std::vector<std::string>& texts) {
  std::vector<SlotSummary> all(kSlots.size());
  for (const std::string& text : texts) {
    Batch batch;
    REQUIRE_FALSE(parse_multi_slot(kSlots, text, batch));
    for (std::size_t i = 0; i < kSlots.size(); ++i) all[i].add(kSlots[i], batch.slots[i], batch.rows);
  }
  return all;
}

}  // namespace

TEST_CASE("a summary says how many, the range, and what is missing") {
  const auto all = summaries({"2 5 -7 2 0.5 nan 1 1\n1 0 2 -1.5 2 1 0\n", "3 0 0 5 2 inf 1 1 1\n"});
  const SlotSummary &ids = all[0], &price = all[1], &label = all[2];
  CHECK(ids.rows == 3);
  CHECK(ids.values == 6);
  CHECK(ids.fewest == 1);
  CHECK(ids.most == 3);
  CHECK(ids.missing == 1);  // "1 0"; zeros among others are values
  CHECK(ids.min_int == -7);
  CHECK(ids.max_int == 5);
  CHECK(ids.distinct.value() == 3);
  CHECK(price.values == 6);
  CHECK(price.missing == 1);
  CHECK(price.min == -1.5F);
  CHECK(price.max == std::numeric_limits<float>::infinity());
  CHECK(price.finite == 4);
  CHECK(price.sum == doctest::Approx(2));
  CHECK(price.distinct.value() == 6);
  CHECK(price.fewest == 2);
  CHECK(price.most == 2);
  CHECK(label.missing == 0);  // 0 is a label
  CHECK(label.distinct.value() == 2);
}

TEST_CASE("summaries of parts add up to that of the whole") {
  const std::string first = "2 5 -7 2 0.5 nan 1 1\n", second = "1 0 2 -1.5 2 1 0\n3 0 0 5 2 -0 0 1 1\n";
  auto parts = summaries({first});
  const auto rest = summaries({second}), whole = summaries({first + second});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].add(rest[i]);
    parts[i].add(SlotSummary());
    CHECK(parts[i].rows == whole[i].rows);
    CHECK(parts[i].values == whole[i].values);
    CHECK(parts[i].fewest == whole[i].fewest);
    CHECK(parts[i].max == whole[i].max);
    CHECK(parts[i].missing == whole[i].missing);
    CHECK(parts[i].min_int == whole[i].min_int);
    CHECK(parts[i].max_int == whole[i].max_int);
    CHECK(parts[i].min == whole[i].min);
    CHECK(parts[i].max == whole[i].max);
    CHECK(parts[i].sum == whole[i].sum);
    CHECK(parts[i].finite == whole[i].finite);
    CHECK(parts[i].distinct.value() == whole[i].distinct.value());
  }
}
