// Examples of one line id become one. Source: Paddle 2.6.2, MultiSlotDataset::MergeByInsId.
#pragma once

#include <cstddef>
#include <span>

#include "dataset/memory/example_store.h"

namespace fleetrun::dataset {

struct MergeCounts;

/// The merged examples, by id (InMemoryDataset::merge_by_line_id says the rules); `counts` says what became
/// of the others. Among the examples of an id `order` decides which is first.
ExampleStore merge_lines(const ExampleStore& store, std::span<const ExampleNumber> order,
                         std::size_t merge_size, MergeCounts& counts);

}  // namespace fleetrun::dataset
