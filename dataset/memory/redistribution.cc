#include "dataset/memory/redistribution.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dataset/memory/in_memory_dataset.h"
#include "dataset/memory/shuffle.h"
#include "dataset/memory/trainer_exchange.h"
#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

using Parcel = TrainerExchange::Parcel;

/// Blocks that are dealt out at a time: for each trainer enough that parcels are not small.
constexpr std::size_t kMinBlocks = 16;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& bytes, std::uint32_t from) {
  T value;
  if (bytes.size() < sizeof value)
    throw Error(ErrorKind::data,
                "trainer " + std::to_string(from) + " sent a parcel of examples that ends early");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::string pack(const ExampleBlock& block) {
  std::string bytes;
  bytes.reserve(8 + 4 * block.shape->counts.size() + block.bytes);
  put(bytes, block.rows);
  put(bytes, static_cast<std::uint32_t>(block.shape->counts.size()));
  for (const std::uint32_t count : block.shape->counts) put(bytes, count);
  return bytes.append(reinterpret_cast<const char*>(block.memory.get()), block.bytes);
}

/// One trainer's side of it.
class Dealer {
 public:
  Dealer(ExampleStore& store, TrainerExchange& exchange, Destination destination, std::uint64_t seed)
      : store_(store),
        trainers_(exchange.trainers()),
        rank_(exchange.rank()),
        destination_(destination),
        words_(seed, exchange.rank()),
        had_(store.rows()),
        sent_(trainers_),
        announced_(trainers_) {
    for (std::uint32_t t = 0; t < trainers_; ++t) from_.emplace_back(store.slots(), store.prefixes());
  }

  std::vector<Parcel> next();
  void take_parcel(std::uint32_t from, std::string_view bytes);
  ExampleStore finish();

 private:
  std::uint32_t trainer_of(std::size_t index, const std::vector<std::string>& ids) {
    if (destination_ == Destination::random) return static_cast<std::uint32_t>(words_.below(trainers_));
    return static_cast<std::uint32_t>(xxh64(ids[index]) % trainers_);
  }
  std::vector<Parcel> last_parcels();
  void deal(const std::vector<ExampleNumber>& numbers, std::vector<Parcel>& parcels);

  ExampleStore& store_;
  const std::uint32_t trainers_, rank_;
  const Destination destination_;
  RandomWords words_;
  const std::size_t had_;
  std::size_t next_block_ = 0;
  bool said_goodbye_ = false;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> announced_;
  std::vector<ExampleStore> from_;
};

std::vector<Parcel> Dealer::next() {
  std::vector<Parcel> parcels;
  while (parcels.empty() && next_block_ < store_.blocks().size()) {
    const std::size_t end =
        std::min(store_.blocks().size(), next_block_ + std::max<std::size_t>(kMinBlocks, trainers_));
    std::vector<ExampleNumber> numbers;
    for (std::size_t b = next_block_; b < end; ++b)
      for (std::size_t row = 0; row < store_.blocks()[b].rows; ++row)
        numbers.push_back(static_cast<ExampleNumber>(b * kBlockRows + row));
    deal(numbers, parcels);
    store_.drop_blocks(next_block_, end);
    next_block_ = end;
  }
  if (parcels.empty() && !std::exchange(said_goodbye_, true)) return last_parcels();
  return parcels;
}

void Dealer::deal(const std::vector<ExampleNumber>& numbers, std::vector<Parcel>& parcels) {
  std::vector<std::string> ids;
  if (destination_ == Destination::line_id) store_.gather_ids(numbers, ids);
  std::vector<std::vector<ExampleNumber>> shares(trainers_);
  for (std::size_t i = 0; i < numbers.size(); ++i) shares[trainer_of(i, ids)].push_back(numbers[i]);
  Batch batch;
  ExampleStore packed(store_.slots(), store_.prefixes());
  for (std::uint32_t t = 0; t < trainers_; ++t) {
    sent_[t] += shares[t].size();
    if (shares[t].empty()) continue;
    store_.gather(shares[t], batch);
    if (t == rank_) {
      from_[t].add(batch);
      continue;
    }
    const std::size_t first = packed.blocks().size();
    packed.add(batch);
    for (const ExampleBlock& block : packed.blocks().subspan(first)) parcels.push_back({t, pack(block)});
  }
}

std::vector<Parcel> Dealer::last_parcels() {
  std::vector<Parcel> parcels;
  for (std::uint32_t t = 0; t < trainers_; ++t) {
    if (t == rank_) continue;
    Parcel& parcel = parcels.emplace_back(Parcel{t, {}});
    put(parcel.bytes, std::uint32_t{0});
    put(parcel.bytes, sent_[t]);
    put(parcel.bytes, static_cast<std::uint64_t>(had_));
  }
  return parcels;
}

void Dealer::take_parcel(std::uint32_t from, std::string_view bytes) {
  const auto rows = take<std::uint32_t>(bytes, from);
  if (rows == 0) {
    announced_[from] = take<std::uint64_t>(bytes, from);
    return;
  }
  const auto fields = take<std::uint32_t>(bytes, from);
  if (fields != store_.fields().size())
    throw Error(ErrorKind::config,
                "trainer " + std::to_string(from) + " has examples of " + std::to_string(fields) +
                    " fields, this one of " + std::to_string(store_.fields().size()),
                "give all trainers the same use_var and the same dataset settings");
  std::vector<std::uint32_t> counts(fields);
  for (std::uint32_t& count : counts) count = take<std::uint32_t>(bytes, from);
  from_[from].add_block(std::move(counts), rows, std::as_bytes(std::span(bytes)));
}

ExampleStore Dealer::finish() {
  announced_[rank_] = sent_[rank_];
  ExampleStore all(store_.slots(), store_.prefixes());
  for (std::uint32_t t = 0; t < trainers_; ++t) {
    if (from_[t].rows() != announced_[t])
      throw Error(ErrorKind::data, "global_shuffle: trainer " + std::to_string(t) + " sent " +
                                       std::to_string(announced_[t]) + " examples, " +
                                       std::to_string(from_[t].rows()) + " have come");
    all.append(std::move(from_[t]));
  }
  return all;
}

}  // namespace

ExampleStore redistribute(ExampleStore& store, TrainerExchange& exchange, Destination destination,
                          std::uint64_t seed) {
  Dealer dealer(store, exchange, destination, seed);
  exchange.exchange([&] { return dealer.next(); },
                    [&](std::uint32_t from, std::string_view bytes) { dealer.take_parcel(from, bytes); });
  return dealer.finish();
}

}  // namespace fleetrun::dataset
