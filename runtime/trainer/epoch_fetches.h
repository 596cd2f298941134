// What one thread of an epoch over a dataset fetches after each batch:
// means over the examples, and lines to print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/engine/tensor.h"
#include "runtime/trainer/dataset_trainer.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class EpochFetches {
 public:
  /// `options` is borrowed. prints: whether this thread is the one that prints.
  /// skipped: batches that the lines count besides.
  EpochFetches(const EpochOptions& options, bool prints, std::uint64_t skipped);

  /// After a batch of so many examples. `tensor` gives a variable's value.
  void account(std::size_t rows, const std::function<const engine::Tensor&(const std::string&)>& tensor);

  /// After the last batch.
  void end();

  std::uint64_t examples() const noexcept { return examples_; }
  std::uint64_t batches() const noexcept { return batches_; }
  /// Sums over examples of the fetched values that are one number; NaN for the others.
  const std::vector<double>& sums() const noexcept { return sums_; }

 private:
  bool tells() const noexcept { return options_.events || options_.on_event; }
  void account_period(std::size_t rows, std::size_t fetch, const engine::Tensor& value);

  const EpochOptions& options_;
  bool prints_;
  std::uint64_t skipped_;
  std::uint64_t examples_ = 0;
  std::uint64_t batches_ = 0;
  std::vector<double> sums_;
  /// Of the batches since the last event.
  struct Period {
    std::uint64_t batches = 0;
    std::uint64_t examples = 0;
    std::vector<double> sums;
    std::vector<bool> has_one_value;
  } period_;
};

/// Adds what a thread did to the epoch's result, whose fetch_means are sums until finish_means().
void add_to(EpochResult& result, const EpochFetches& fetches);
void add_to(EpochResult& result, const EpochProfile& profile);
void finish_means(EpochResult& result);

}  // namespace fleetrun::runtime
