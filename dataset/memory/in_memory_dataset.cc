// Loading: the source's readers parse, and for each of them a thread packs its batches into a store of its
// own; the stores are then put behind each other. An epoch: each reader has a contiguous part of the order.
#include "dataset/memory/in_memory_dataset.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "dataset/base/fingerprint.h"
#include "dataset/memory/line_merge.h"
#include "dataset/memory/redistribution.h"
#include "dataset/memory/shuffle.h"
#include "dataset/memory/trainer_exchange.h"
#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

// Paddle takes a float below it for a 0 in a sparse slot.
constexpr double kSmallest = 1e-6;  // a double: float32(1e-6) is below it

template <class T>
void drop_zeros(std::vector<T>& values, std::vector<std::size_t>& offsets) {
  std::size_t used = 0;
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const std::size_t begin = std::exchange(offsets[row], used);
    for (std::size_t i = begin; i < offsets[row + 1]; ++i) {
      const T value = values[i];
      if constexpr (std::is_floating_point_v<T>) {
        if (std::fabs(static_cast<double>(value)) < kSmallest) continue;
      } else {
        if (value == 0) continue;
      }
      values[used++] = value;
    }
    if (used == offsets[row]) values[used++] = 0;
  }
  offsets.back() = used;
  values.resize(used);
}

void drop_zeros(Batch& batch) {
  for (SlotValues& slot : batch.slots) {
    if (slot.offsets.empty()) continue;  // dense
    if (slot.floats.empty())
      drop_zeros(slot.ints, slot.offsets);
    else
      drop_zeros(slot.floats, slot.offsets);
  }
}

}  // namespace

InMemoryDataset::InMemoryDataset(std::uint32_t trainer) : trainer_(trainer) {}

InMemoryDataset::~InMemoryDataset() {
  stop_loading();
}

void InMemoryDataset::load(const Load& what) {
  begin_load(what);
  run_load(what);
}

void InMemoryDataset::preload(const Load& what) {
  begin_load(what);
  preload_error_ = nullptr;
  preloading_ = std::jthread([this, what] {
    try {
      run_load(what);
    } catch (...) {
      preload_error_ = std::current_exception();
    }
  });
}

void InMemoryDataset::wait_preload() {
  if (!preloading_.joinable())
    throw Error(ErrorKind::config, "wait_preload_done() without a load in progress",
                "call preload_into_memory() first");
  preloading_.join();
  if (preload_error_) std::rethrow_exception(std::exchange(preload_error_, nullptr));
}

void InMemoryDataset::begin_load(const Load& what) {
  if (preloading_.joinable())
    throw Error(ErrorKind::config, "another load is in progress", "call wait_preload_done() first");
  release();
  what.source->start(true);
  const std::lock_guard lock(loading_mutex_);
  loading_ = what.source;
}

void InMemoryDataset::run_load(const Load& what) {
  BatchSource& source = *what.source;
  const std::uint64_t fingerprint = source.fingerprint();
  std::vector<ExampleStore> parts;
  for (std::size_t r = 0; r < source.readers(); ++r) parts.emplace_back(source.slots(), what.prefixes);
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto fill = [&](std::size_t reader) {
    try {
      Batch batch;
      while (source.next(reader, batch)) {
        if (what.drop_zeros) drop_zeros(batch);
        parts[reader].add(batch);
      }
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      source.stop();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t r = 1; r < parts.size(); ++r) others.emplace_back(fill, r);
    fill(0);
  }
  source.stop();
  bool stopped;
  {
    const std::lock_guard lock(loading_mutex_);
    stopped = std::exchange(loading_, nullptr) == nullptr;
  }
  if (failure) std::rethrow_exception(failure);
  if (stopped) throw Error(ErrorKind::data, "loading into memory was stopped");
  for (std::size_t r = 1; r < parts.size(); ++r) parts[0].append(std::move(parts[r]));
  slots_ = source.slots();
  source_ = fingerprint;
  keep(std::make_unique<ExampleStore>(std::move(parts[0])));
}

void InMemoryDataset::keep(std::unique_ptr<ExampleStore> store) {
  order_ = store->numbers();
  slot_shuffle_ = {};
  store_ = std::move(store);
}

void InMemoryDataset::stop_loading() noexcept {
  std::shared_ptr<BatchSource> source;
  {
    const std::lock_guard lock(loading_mutex_);
    source = std::exchange(loading_, nullptr);
  }
  if (source) source->stop();
}

void InMemoryDataset::release() noexcept {
  stop_loading();
  if (preloading_.joinable()) preloading_.join();
  cursors_.clear();
  order_ = {};
  slot_shuffle_ = {};
  store_ = nullptr;
}

std::size_t InMemoryDataset::rows() const noexcept {
  return preloading_.joinable() ? 0 : order_.size();
}

std::size_t InMemoryDataset::bytes() const noexcept {
  if (preloading_.joinable()) return 0;
  return order_.size() * sizeof(ExampleNumber) + (store_ ? store_->bytes() : 0);
}

ExampleStore& InMemoryDataset::need(const char* what) const {
  if (preloading_.joinable())
    throw Error(ErrorKind::config, std::string(what) + ": a load is in progress",
                "call wait_preload_done() first");
  if (!store_)
    throw Error(ErrorKind::config, std::string(what) + ": no examples are in memory",
                "call load_into_memory() first");
  return *store_;
}

void InMemoryDataset::set_seed(std::uint64_t seed) noexcept {
  seed_ = seed;
  random_calls_ = 0;
}

std::uint64_t InMemoryDataset::next_seed() noexcept {
  return RandomWords(RandomWords(seed_, trainer_).next(), random_calls_++).next();
}

void InMemoryDataset::local_shuffle(std::size_t threads) {
  need("local_shuffle");
  shuffle(order_, next_seed(), threads);
}

void InMemoryDataset::global_shuffle(TrainerExchange& exchange, Destination destination,
                                     std::size_t threads) {
  ExampleStore& store = need("global_shuffle");
  if (destination == Destination::line_id && !store.prefixes().id && !store.prefixes().log_key)
    throw Error(ErrorKind::config, "global_shuffle by line ids of examples that were loaded without them",
                "call set_parse_ins_id(True) before load_into_memory()");
  trainer_ = exchange.rank();
  cursors_.clear();
  order_ = {};
  const std::unique_ptr<ExampleStore> old = std::move(store_);
  keep(std::make_unique<ExampleStore>(redistribute(*old, exchange, destination, next_seed())));
  shuffle(order_, next_seed(), threads);
}

void InMemoryDataset::shuffle_slots(const std::vector<std::string>& slots, std::size_t candidates) {
  need("slots_shuffle");
  SlotShuffle wanted;
  for (const std::string& name : slots) {
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.name == name; });
    if (slot == slots_.end())
      throw Error(ErrorKind::config, "slots_shuffle: '" + name + "' is not a slot of the dataset");
    if (slot->dense)
      throw Error(ErrorKind::config, "slots_shuffle: '" + name + "' is a dense slot",
                  "name slots with lod_level=1");
    wanted.slots.push_back(static_cast<std::size_t>(slot - slots_.begin()));
  }
  wanted.seed = next_seed();
  wanted.candidates = store_->numbers();
  if (candidates < wanted.candidates.size()) {
    shuffle(wanted.candidates, wanted.seed, 1);
    wanted.candidates.resize(std::max<std::size_t>(candidates, 1));
    wanted.candidates.shrink_to_fit();
  }
  slot_shuffle_ = std::move(wanted);
}

MergeCounts InMemoryDataset::merge_by_line_id(std::size_t merge_size) {
  ExampleStore& store = need("merge_by_lineid");
  if (!store.prefixes().id && !store.prefixes().log_key)
    throw Error(ErrorKind::config, "merge_by_lineid of examples that were loaded without their line ids",
                "call set_merge_by_lineid() before load_into_memory()");
  cursors_.clear();
  MergeCounts counts;
  auto merged = std::make_unique<ExampleStore>(merge_lines(store, order_, merge_size, counts));
  keep(std::move(merged));
  return counts;
}

void InMemoryDataset::set_reading(Reading reading) {
  if (reading.batch_size < 1) throw Error(ErrorKind::config, "a batch size of 0, less than 1");
  if (reading.threads < 1) throw Error(ErrorKind::config, "a thread count of 0, less than 1");
  reading_ = reading;
}

void InMemoryDataset::start(bool) {
  need("a pass over an InMemoryDataset");
  stopped_ = false;
  const std::size_t readers = std::clamp<std::size_t>(order_.size(), 1, reading_.threads);
  cursors_.assign(readers, {});
  const std::size_t size = order_.size() / readers, extra = order_.size() % readers;
  std::size_t at = 0;
  for (std::size_t r = 0; r < readers; ++r) {
    cursors_[r].at = at;
    at += size + (r < extra);
    cursors_[r].end = at;
  }
}

// How often chance was asked since, and what it decided: the order, and who had which example.
std::uint64_t InMemoryDataset::fingerprint() const {
  if (source_ == 0) return 0;
  return Fingerprint()
      .add(source_)
      .add(seed_)
      .add(random_calls_)
      .add(order_.size())
      .add_batches(reading_.batch_size, readers(), reading_.drop_last)
      .value();
}

bool InMemoryDataset::next(std::size_t reader, Batch& batch) {
  Cursor& cursor = cursors_.at(reader);
  const std::size_t rows = std::min(reading_.batch_size, cursor.end - cursor.at);
  if (stopped_ || rows == 0 || (reading_.drop_last && rows < reading_.batch_size)) return false;
  const std::span<const ExampleNumber> numbers(order_.data() + cursor.at, rows);
  store_->gather(numbers, batch);
  if (!slot_shuffle_.slots.empty()) {
    std::vector<ExampleNumber> donors;
    for (const ExampleNumber number : numbers) {
      RandomWords words(slot_shuffle_.seed, number);
      donors.push_back(slot_shuffle_.candidates[words.below(slot_shuffle_.candidates.size())]);
    }
    store_->gather_slots(donors, slot_shuffle_.slots, batch);
  }
  cursor.at += rows;
  return true;
}

}  // namespace fleetrun::dataset
