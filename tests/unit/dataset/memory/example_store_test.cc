#include "dataset/memory/example_store.h"

#include <doctest/doctest.h>

#include <numeric>

#include "runtime/base/error.h"
#include "tests/unit/dataset/memory/examples.h"

namespace fleetrun::dataset {
namespace {

using namespace tests;

void check_same(const Batch& batch, const Batch& expected) {
  CHECK(batch.rows == expected.rows);
  REQUIRE(batch.slots.size() == expected.slots.size());
  for (std::size_t s = 0; s < batch.slots.size(); ++s) {
    CAPTURE(s);
    CHECK(batch.slots[s] == expected.slots[s]);
  }
  CHECK(batch.prefixes == expected.prefixes);
}

TEST_CASE("what goes in comes out: one count everywhere, different counts, counts above 254") {
  for (const int max_ids : {1, 3, 700}) {
    CAPTURE(max_ids);
    const Batch batch = parsed(mixed_slots(), mixed_lines(0, 2500, max_ids));
    ExampleStore store(mixed_slots(), {});
    store.add(batch);
    CHECK(store.rows() == 2500);
    CHECK(store.blocks().size() == 3);
    check_same(gathered(store, store.numbers()), batch);
  }
}

TEST_CASE("examples come out in any order, the same one more than once") {
  ExampleStore store(mixed_slots(), {});
  store.add(parsed(mixed_slots(), mixed_lines(0, 1500, 1)));
  store.add(parsed(mixed_slots(), mixed_lines(1500, 3000, 4)));
  const std::vector<ExampleNumber> all = store.numbers();
  std::vector<ExampleNumber> numbers;
  std::string text;
  for (int i = 0; i < 500; ++i) {
    const int wanted = (i * 977) % 3000;
    numbers.push_back(all[static_cast<std::size_t>(wanted)]);
    text += mixed_lines(wanted, wanted + 1, wanted < 1500 ? 1 : 4);
  }
  check_same(gathered(store, numbers), parsed(mixed_slots(), text));
}

TEST_CASE("a batch whose memory is used again holds nothing of what was there") {
  ExampleStore store(mixed_slots(), {});
  store.add(parsed(mixed_slots(), mixed_lines(0, 100, 5)));
  const std::vector<ExampleNumber> all = store.numbers();
  Batch batch;
  store.gather(all, batch);
  store.gather(std::span(all).first(3), batch);
  check_same(batch, parsed(mixed_slots(), mixed_lines(0, 3, 5)));
}

TEST_CASE("slots with one count take their values and nothing else; others take a byte and a start") {
  ExampleStore same(mixed_slots(), {});
  same.add(parsed(mixed_slots(), mixed_lines(0, 2048, 1)));
  CHECK(same.bytes() == 2048 * (8 + 8 + 4 + 8));

  ExampleStore different(mixed_slots(), {});
  different.add(parsed(mixed_slots(), mixed_lines(0, 1024, 2)));
  CHECK(different.bytes() == 1024 * (8 + 4 + 8 + 4 + 1) + (512 + 2 * 512) * 8);
}

TEST_CASE("ids, contents and log keys are kept with their examples") {
  const std::vector<Slot> slots = {{.name = "label", .type = SlotType::int64, .dense = true, .width = 1}};
  const LinePrefixes prefixes{.id = true, .content = true, .log_key = true};
  const std::string text =
      "1 first 1 a 1 300007524000000000000000000000001f 1 7\n"
      "1 second 1 " +
      std::string(300, 'x') + " 1 30000752400000000000000000000020 1 8\n";
  const Batch batch = parsed(slots, text, prefixes);
  ExampleStore store(slots, prefixes);
  store.add(batch);
  check_same(gathered(store, store.numbers()), batch);
  std::vector<std::string> ids;
  const std::vector<ExampleNumber> numbers = store.numbers();
  store.gather_ids(numbers, ids);
  CHECK(ids == batch.prefixes.ids);
}

TEST_CASE("the values of some slots can be those of other examples") {
  ExampleStore store(mixed_slots(), {});
  store.add(parsed(mixed_slots(), mixed_lines(0, 10, 3)));
  const std::vector<ExampleNumber> numbers = {1, 2}, donors = {8, 4};
  const std::vector<std::size_t> slots = {0};
  Batch batch;
  store.gather(numbers, batch);
  store.gather_slots(donors, slots, batch);
  CHECK(batch.slots[0].ints == std::vector<std::int64_t>{8000, 8001, 8002, 4000, 4001});
  CHECK(batch.slots[0].offsets == std::vector<std::size_t>{0, 3, 5});
  CHECK(labels(batch) == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("stores are put behind each other; blocks that are dropped are gone") {
  ExampleStore store(mixed_slots(), {}), other(mixed_slots(), {});
  store.add(parsed(mixed_slots(), mixed_lines(0, 3, 2)));
  other.add(parsed(mixed_slots(), mixed_lines(3, 5, 2)));
  store.append(std::move(other));
  CHECK(labels(gathered(store, store.numbers())) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  store.drop_blocks(0, 1);
  CHECK(store.rows() == 2);
  CHECK(labels(gathered(store, store.numbers())) == std::vector<std::int64_t>{3, 4});
}

TEST_CASE("a block from elsewhere is taken when it is whole, and refused when it is not") {
  ExampleStore from(mixed_slots(), {});
  from.add(parsed(mixed_slots(), mixed_lines(0, 40, 3)));
  const ExampleBlock& block = from.blocks()[0];
  const std::span<const std::byte> bytes(block.memory.get(), block.bytes);
  ExampleStore to(mixed_slots(), {});
  to.add_block(block.shape->counts, block.rows, bytes);
  check_same(gathered(to, to.numbers()), gathered(from, from.numbers()));

  const auto refused = [&](std::vector<std::uint32_t> counts, std::uint32_t rows,
                           std::span<const std::byte> some) {
    CHECK_THROWS_AS(to.add_block(std::move(counts), rows, some), Error);
  };
  refused(block.shape->counts, block.rows, bytes.first(bytes.size() - 1));
  refused(block.shape->counts, block.rows - 1, bytes);
  refused(block.shape->counts, block.rows + 1, bytes);
  refused(block.shape->counts, 0, bytes);
  refused({}, block.rows, bytes);
  std::vector<std::uint32_t> counts = block.shape->counts;
  counts[1] = 3;  // the dense slot has 2
  refused(counts, block.rows, bytes);
  // No byte that is changed makes it read outside of the block: it is refused, or holds other values.
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    changed[i] ^= std::byte{0xFF};
    ExampleStore third(mixed_slots(), {});
    try {
      third.add_block(block.shape->counts, block.rows, changed);
      CHECK(gathered(third, third.numbers()).rows == block.rows);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
    }
  }
  CHECK(to.rows() == 40);
}

}  // namespace
}  // namespace fleetrun::dataset
