// Rows for columnar files, and all rows of a source as one batch.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dataset/base/batch_source.h"
#include "dataset/columnar/columnar_dataset.h"
#include "dataset/columnar/columnar_writer.h"

namespace fleetrun::tests {

/// One slot of each kind that the format tells apart.
inline std::vector<dataset::Slot> columnar_slots() {
  using dataset::SlotType;
  return {{.name = "one"},  // sparse, a value in each row
          {.name = "many"},
          {.name = "pairs", .type = SlotType::float32},
          {.name = "dense", .type = SlotType::float32, .dense = true, .width = 3},
          {.name = "label", .dense = true}};
}

inline dataset::Batch batch_of(std::size_t rows, std::vector<dataset::SlotValues> slots) {
  dataset::Batch batch;
  batch.rows = rows;
  batch.slots = std::move(slots);
  return batch;
}

/// Ids of `bits` bits around a base, drawn from `seed`.
inline dataset::Batch columnar_rows(std::size_t rows, unsigned bits, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto id = [&] {
    return static_cast<std::int64_t>((random() >> (64 - bits)) - (std::uint64_t{1} << (bits - 1)));
  };
  const auto real = [&] { return static_cast<float>(static_cast<double>(random() % 2001) - 1000) / 8; };
  dataset::Batch batch = batch_of(rows, std::vector<dataset::SlotValues>(5));
  dataset::SlotValues &one = batch.slots[0], &many = batch.slots[1], &pairs = batch.slots[2];
  dataset::SlotValues &dense = batch.slots[3], &label = batch.slots[4];
  for (dataset::SlotValues* sparse : {&one, &many, &pairs}) sparse->offsets.push_back(0);
  for (std::size_t row = 0; row < rows; ++row) {
    one.ints.push_back(id());
    for (std::uint64_t i = 0; i <= random() % 5; ++i) many.ints.push_back(id());
    for (int i = 0; i < 2; ++i) pairs.floats.push_back(real());
    for (int i = 0; i < 3; ++i) dense.floats.push_back(real());
    label.ints.push_back(static_cast<std::int64_t>(random() & 1));
    one.offsets.push_back(one.ints.size());
    many.offsets.push_back(many.ints.size());
    pairs.offsets.push_back(pairs.floats.size());
  }
  return batch;
}

inline dataset::ColumnarWritten write_columnar(const std::string& file, const dataset::Batch& rows,
                                               std::uint32_t block_rows) {
  dataset::ColumnarWriter writer(file, columnar_slots(), block_rows);
  writer.add(rows);
  return writer.finish();
}

inline void append(dataset::SlotValues& to, const dataset::SlotValues& from) {
  const std::size_t before = to.floats.size() + to.ints.size();
  to.floats.insert(to.floats.end(), from.floats.begin(), from.floats.end());
  to.ints.insert(to.ints.end(), from.ints.begin(), from.ints.end());
  if (to.offsets.empty() && !from.offsets.empty()) to.offsets.push_back(0);
  for (std::size_t i = 1; i < from.offsets.size(); ++i) to.offsets.push_back(before + from.offsets[i]);
}

/// What the readers give, one reader after the other.
inline dataset::Batch all_rows(dataset::BatchSource& source, bool in_turn = false) {
  dataset::Batch all = batch_of(0, std::vector<dataset::SlotValues>(source.slots().size()));
  source.start(in_turn);
  for (std::size_t reader = 0; reader < source.readers(); ++reader) {
    for (dataset::Batch batch; source.next(reader, batch);) {
      all.rows += batch.rows;
      for (std::size_t i = 0; i < batch.slots.size(); ++i) append(all.slots[i], batch.slots[i]);
    }
  }
  for (std::size_t i = 0; i < all.slots.size(); ++i)
    if (!source.slots()[i].dense && all.slots[i].offsets.empty()) all.slots[i].offsets.push_back(0);
  return all;
}

}  // namespace fleetrun::tests
