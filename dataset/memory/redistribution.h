// The examples of all trainers, dealt out again.
//
//   parcel    u32 rows │ u32 fields │ count[fields]: u32 │ the block's bytes (example_format.h)
//   last one  u32 0 │ u64 examples that were sent to this trainer │ u64 examples that the sender had
//
// Integers are little-endian.
#pragma once

#include <cstdint>

#include "dataset/memory/example_store.h"

namespace fleetrun::dataset {

class TrainerExchange;
enum class Destination;

/// What this trainer has afterwards: from trainer 0, then 1, …, in the order in which each had them. Which
/// example goes where is decided by its sender's number, `seed` and its place, or by the id of its line.
/// `store` is empty afterwards; of both together little more than the examples is in memory at any time.
/// Throws: Error(data) naming a trainer of which examples are missing; what `exchange` throws.
ExampleStore redistribute(ExampleStore& store, TrainerExchange& exchange, Destination destination,
                          std::uint64_t seed);

}  // namespace fleetrun::dataset
