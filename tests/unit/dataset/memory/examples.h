// Examples for tests of dataset/memory: parsed from text, and told apart by their numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dataset/base/batch_source.h"
#include "dataset/memory/example_store.h"
#include "dataset/text/multi_slot_parser.h"

namespace fleetrun::dataset::tests {

/// ids (sparse), price (dense, 2 floats), tags (sparse floats), label (dense id).
inline std::vector<Slot> mixed_slots() {
  return {{.name = "ids", .type = SlotType::int64, .dense = false, .width = 1},
          {.name = "price", .type = SlotType::float32, .dense = true, .width = 2},
          {.name = "tags", .type = SlotType::float32, .dense = false, .width = 1},
          {.name = "label", .type = SlotType::int64, .dense = true, .width = 1}};
}

/// Line i: 1 + i % `max_ids` ids of 1000 i and up, one tag, and i as its label.
inline std::string mixed_lines(int first, int last, int max_ids) {
  std::string text;
  for (int i = first; i < last; ++i) {
    const int count = 1 + i % max_ids;
    text += std::to_string(count);
    for (int k = 0; k < count; ++k) text += " " + std::to_string(1000 * i + k);
    text += " 2 " + std::to_string(i) + " 0.5 1 " + std::to_string(i) + ".25 1 " + std::to_string(i) + "\n";
  }
  return text;
}

inline Batch parsed(const std::vector<Slot>& slots, const std::string& text, LinePrefixes prefixes = {}) {
  Batch batch;
  const auto fault = parse_multi_slot(slots, text, batch, prefixes);
  REQUIRE_MESSAGE(!fault, (fault ? to_string(*fault) : ""));
  return batch;
}

inline Batch gathered(const ExampleStore& store, const std::vector<ExampleNumber>& numbers) {
  Batch batch;
  store.gather(numbers, batch);
  return batch;
}

/// What the dense slot at `slot`, of one id, says.
inline std::vector<std::int64_t> labels(const Batch& batch, std::size_t slot = 3) {
  return batch.slots[slot].ints;
}

/// A source of what was parsed, in batches of `rows`, one part of it for each reader.
class TextSource : public BatchSource {
 public:
  TextSource(std::vector<Slot> slots, std::vector<std::string> parts, std::size_t rows,
             LinePrefixes prefixes = {})
      : slots_(std::move(slots)), parts_(std::move(parts)), rows_(rows), prefixes_(prefixes) {}
  const std::vector<Slot>& slots() const noexcept override { return slots_; }
  void start(bool) override { at_.assign(parts_.size(), 0); }
  std::size_t readers() const noexcept override { return parts_.size(); }
  bool next(std::size_t reader, Batch& batch) override {
    std::string text;
    std::size_t rows = 0;
    for (; rows < rows_ && at_[reader] < parts_[reader].size(); ++rows) {
      const std::size_t end = parts_[reader].find('\n', at_[reader]) + 1;
      text += parts_[reader].substr(at_[reader], end - at_[reader]);
      at_[reader] = end;
    }
    if (rows > 0) batch = parsed(slots_, text, prefixes_);
    return rows > 0;
  }
  void stop() noexcept override {}

 private:
  std::vector<Slot> slots_;
  std::vector<std::string> parts_;
  std::size_t rows_;
  LinePrefixes prefixes_;
  std::vector<std::size_t> at_;
};

}  // namespace fleetrun::dataset::tests
