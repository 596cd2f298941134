// One database for a table: shard u8 | key u64, big endian (so that a shard's rows lie together, in key
// order) -> the row's floats as they are in memory.
//
//   no write-ahead log   the rows are worth nothing without this process;
//                        a crash recovers them from elsewhere
//   no compression       trained floats do not shrink: their low bits are noise.
//                        It would cost time for a few percent
//   Bloom filters        10 bits a key in files, and one in front of what is not in a file yet: most keys
//                        that memory does not have are new, and must not cost a read
//   one bound            blocks, indexes, filters and unwritten rows of all tables
//                        of a server count against one cache
//   buffered reads       so that the kernel's page cache, which gives way to others,
//                        serves rows that come and go
//
// A disk that is full stops RocksDB's background work, and every change fails from then on, while what is
// kept can be read. So each change first asks it to go on when the change before has failed:
// space that was made is used.
#include "ps/disk/rocksdb_rows.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstring>
#include <numeric>
#include <utility>

#include "ps/disk/row_directory.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kShards = 256;
constexpr std::size_t kKeyBytes = 9;
constexpr std::size_t kBatch = 1024;

using Key = std::array<char, kKeyBytes>;
using Counts = std::array<std::atomic<std::uint64_t>, kShards>;

Key key_of(std::size_t shard, std::uint64_t key) noexcept {
  Key out;
  out[0] = static_cast<char>(shard);
  const std::uint64_t swapped = __builtin_bswap64(key);
  std::memcpy(out.data() + 1, &swapped, sizeof swapped);
  return out;
}

std::uint64_t number_of(const rocksdb::Slice& key) noexcept {
  std::uint64_t swapped;
  std::memcpy(&swapped, key.data() + 1, sizeof swapped);
  return __builtin_bswap64(swapped);
}

rocksdb::Slice slice_of(const Key& key) noexcept {
  return {key.data(), key.size()};
}

// RocksDB's own log, which would lie beside the rows, ends the process when the disk is full: Debian's
// library has its assertions (tests/integration/ps/disk/disk_trouble_test.cc).
// What fails is told by statuses anyway.
class Quiet final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

// Going on after a full disk is asked for by the next change, not tried every few seconds.
class NotByItself final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* by_itself) override {
    *by_itself = false;
  }
};

struct Memory {
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::WriteBufferManager> unwritten;
  std::uint64_t write_buffer;
};

// Half of the cache for unwritten rows: the fewer files they make, the fewer a lookup has to ask.
Memory memory_of(std::uint64_t bytes) {
  auto cache = rocksdb::NewLRUCache(bytes);
  auto unwritten = std::make_shared<rocksdb::WriteBufferManager>(bytes / 2, cache);
  return {std::move(cache), std::move(unwritten), std::clamp(bytes / 8, kMiB, 64 * kMiB)};
}

rocksdb::BlockBasedTableOptions file_options(const Memory& memory) {
  rocksdb::BlockBasedTableOptions options;
  options.block_cache = memory.cache;
  options.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // In pieces that come and go with the blocks: an index of all rows would be the memory
  // that the rows should free.
  options.cache_index_and_filter_blocks = true;
  options.pin_l0_filter_and_index_blocks_in_cache = true;
  options.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  options.partition_filters = true;
  options.format_version = 5;
  return options;
}

rocksdb::Options options_for(const Memory& memory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(file_options(memory)));
  options.write_buffer_manager = memory.unwritten;
  options.write_buffer_size = memory.write_buffer;
  options.max_write_buffer_number = 3;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.memtable_whole_key_filtering = true;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_open_files = 256;
  options.max_background_jobs = 2;
  options.avoid_flush_during_shutdown = true;
  options.info_log = std::make_shared<Quiet>();
  options.listeners.push_back(std::make_shared<NotByItself>());
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

// A database and its directory: of the rows, and of the views of them, which may live longer.
class Database {
 public:
  Database(const std::string& base, const std::string& owner, const Memory& memory) : place_(base, owner) {
    rocksdb::DB* opened = nullptr;
    check(rocksdb::DB::Open(options_for(memory), place_.rows(), &opened), "opened");
    db_.reset(opened);
  }

  rocksdb::DB& operator*() const noexcept { return *db_; }
  rocksdb::DB* operator->() const noexcept { return db_.get(); }

  void check(const rocksdb::Status& status, const std::string& done) const {
    if (status.ok()) return;
    const bool is_full = status.IsNoSpace();
    throw Error(
        ErrorKind::host, "cold rows in " + place_.path() + " cannot be " + done + ": " + status.ToString(),
        is_full ? "make space there, or name another directory with FLEETRUN_PS_DISK; rows that could not "
                  "leave memory are still in it"
                : "");
  }

  void write(rocksdb::WriteBatch& changes, const std::string& done) {
    if (failed_.exchange(false)) static_cast<void>(db_->Resume());
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    const rocksdb::Status status = db_->Write(options, &changes);
    if (!status.ok()) failed_ = true;
    check(status, done);
  }

 private:
  RowDirectory place_;  // goes last
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> failed_ = false;
};

class RocksdbView final : public ColdView {
 public:
  RocksdbView(std::shared_ptr<Database> database, const Counts& counts, std::size_t row_bytes)
      : database_(std::move(database)), row_bytes_(row_bytes) {
    for (std::size_t shard = 0; shard < kShards; ++shard) counts_[shard] = counts[shard].load();
    snapshot_ = (*database_)->GetSnapshot();
  }
  ~RocksdbView() override { (*database_)->ReleaseSnapshot(snapshot_); }
  RocksdbView(const RocksdbView&) = delete;
  RocksdbView& operator=(const RocksdbView&) = delete;

  std::uint64_t count(std::size_t shard) const noexcept override { return counts_[shard]; }

  ColdBlock read(std::size_t shard, std::uint64_t from, std::size_t max) const override;

 private:
  std::shared_ptr<Database> database_;
  const rocksdb::Snapshot* snapshot_;
  std::array<std::uint64_t, kShards> counts_;
  std::size_t row_bytes_;
};

// Walks the rows of a shard from a key on.
class Walk {
 public:
  Walk(const Database& database, std::size_t shard, std::uint64_t from, const rocksdb::Snapshot* snapshot)
      : database_(database), end_(key_of(shard + 1, 0)), end_slice_(slice_of(end_)) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.fill_cache = false;
    if (shard + 1 < kShards) options.iterate_upper_bound = &end_slice_;
    at_.reset(database->NewIterator(options));
    at_->Seek(slice_of(key_of(shard, from)));
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// False at the end.
  bool has_row(std::size_t row_bytes) const {
    if (!at_->Valid()) {
      database_.check(at_->status(), "read");
      return false;
    }
    if (at_->value().size() == row_bytes) return true;
    database_.check(rocksdb::Status::Corruption("a row of another length"), "read");
    return false;
  }
  std::uint64_t key() const { return number_of(at_->key()); }
  const char* row() const { return at_->value().data(); }
  void next() { at_->Next(); }

 private:
  const Database& database_;
  Key end_;
  rocksdb::Slice end_slice_;
  std::unique_ptr<rocksdb::Iterator> at_;
};

ColdBlock RocksdbView::read(std::size_t shard, std::uint64_t from, std::size_t max) const {
  ColdBlock block;
  const std::size_t expected = static_cast<std::size_t>(std::min<std::uint64_t>(max, counts_[shard]));
  block.keys.reserve(expected);
  block.rows.reserve(expected * row_bytes_ / sizeof(float));
  for (Walk walk(*database_, shard, from, snapshot_); block.keys.size() < max && walk.has_row(row_bytes_);
       walk.next()) {
    block.keys.push_back(walk.key());
    const std::size_t begin = block.rows.size();
    block.rows.resize(begin + row_bytes_ / sizeof(float));
    std::memcpy(block.rows.data() + begin, walk.row(), row_bytes_);
  }
  return block;
}

class RocksdbRows final : public ColdRows {
 public:
  RocksdbRows(std::shared_ptr<Database> database, std::size_t row_floats)
      : database_(std::move(database)), row_bytes_(row_floats * sizeof(float)) {}

  std::size_t row_floats() const noexcept override { return row_bytes_ / sizeof(float); }

  std::vector<std::uint32_t> take(std::size_t shard, std::span<const std::uint64_t> keys,
                                  std::span<float> rows) override;
  void put(std::size_t shard, std::span<const std::uint64_t> keys, std::span<const float> rows) override;
  void erase(std::size_t shard, std::span<const std::uint64_t> keys) override;
  void rewrite(std::size_t shard,
               const std::function<Fate(std::uint64_t key, std::span<float> row)>& decide) override;

  std::uint64_t count(std::size_t shard) const noexcept override { return counts_[shard]; }
  std::uint64_t bytes_on_disk() const noexcept override;

  std::unique_ptr<ColdView> view() const override {
    return std::make_unique<RocksdbView>(database_, counts_, row_bytes_);
  }

 private:
  std::vector<std::uint32_t> find(std::size_t shard, std::span<const std::uint64_t> keys, char* rows) const;
  void forget(std::size_t shard, std::span<const std::uint64_t> keys, std::span<const std::uint32_t> found);

  std::shared_ptr<Database> database_;
  std::size_t row_bytes_;
  Counts counts_{};
};

// The positions in `keys` of those that are here, rising,
// and when `rows` is not null their rows, in that order.
std::vector<std::uint32_t> RocksdbRows::find(std::size_t shard, std::span<const std::uint64_t> keys,
                                             char* rows) const {
  std::vector<std::uint32_t> found;
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&keys](auto a, auto b) { return keys[a] < keys[b]; });
  std::vector<Key> names(keys.size());
  std::vector<rocksdb::Slice> slices(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names[i] = key_of(shard, keys[order[i]]);
    slices[i] = slice_of(names[i]);
  }
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  rocksdb::DB& db = **database_;
  db.MultiGet(rocksdb::ReadOptions(), db.DefaultColumnFamily(), keys.size(), slices.data(), values.data(),
              statuses.data(), true);
  std::vector<std::uint32_t> place(keys.size());  // of the i-th key in the sorted order
  for (std::uint32_t i = 0; i < keys.size(); ++i) place[order[i]] = i;
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    const rocksdb::Status& status = statuses[place[i]];
    if (status.IsNotFound()) continue;
    database_->check(status, "read");
    const rocksdb::PinnableSlice& value = values[place[i]];
    if (value.size() != row_bytes_) {
      database_->check(rocksdb::Status::Corruption("a row of another length"), "read");
    }
    if (rows != nullptr) std::memcpy(rows + found.size() * row_bytes_, value.data(), row_bytes_);
    found.push_back(i);
  }
  return found;
}

void RocksdbRows::forget(std::size_t shard, std::span<const std::uint64_t> keys,
                         std::span<const std::uint32_t> found) {
  if (found.empty()) return;
  rocksdb::WriteBatch changes;
  for (const std::uint32_t at : found) changes.Delete(slice_of(key_of(shard, keys[at])));
  database_->write(changes, "taken back");
  counts_[shard] -= found.size();
}

std::vector<std::uint32_t> RocksdbRows::take(std::size_t shard, std::span<const std::uint64_t> keys,
                                             std::span<float> rows) {
  if (counts_[shard] == 0) return {};
  std::vector<std::uint32_t> found = find(shard, keys, reinterpret_cast<char*>(rows.data()));
  forget(shard, keys, found);
  return found;
}

void RocksdbRows::put(std::size_t shard, std::span<const std::uint64_t> keys, std::span<const float> rows) {
  rocksdb::WriteBatch changes(keys.size() * (kKeyBytes + row_bytes_ + 4));
  const char* row = reinterpret_cast<const char*>(rows.data());
  for (const std::uint64_t key : keys) {
    changes.Put(slice_of(key_of(shard, key)), rocksdb::Slice(row, row_bytes_));
    row += row_bytes_;
  }
  database_->write(changes, "written");
  counts_[shard] += keys.size();
}

void RocksdbRows::erase(std::size_t shard, std::span<const std::uint64_t> keys) {
  if (counts_[shard] != 0) forget(shard, keys, find(shard, keys, nullptr));
}

void RocksdbRows::rewrite(std::size_t shard,
                          const std::function<Fate(std::uint64_t key, std::span<float> row)>& decide) {
  if (counts_[shard] == 0) return;
  rocksdb::WriteBatch changes;
  std::uint64_t erased = 0;
  const auto flush = [&] {
    if (changes.Count() == 0) return;
    database_->write(changes, "changed");
    counts_[shard] -= std::exchange(erased, 0);
    changes.Clear();
  };
  std::vector<float> row(row_floats());
  for (Walk walk(*database_, shard, 0, nullptr); walk.has_row(row_bytes_); walk.next()) {
    std::memcpy(row.data(), walk.row(), row_bytes_);
    const Key name = key_of(shard, walk.key());
    const Fate fate = decide(walk.key(), row);
    if (fate == Fate::keep) continue;
    if (fate == Fate::change) {
      changes.Put(slice_of(name), rocksdb::Slice(reinterpret_cast<const char*>(row.data()), row_bytes_));
    } else {
      changes.Delete(slice_of(name));
      ++erased;
    }
    if (changes.Count() >= static_cast<int>(kBatch)) flush();
  }
  flush();
}

std::uint64_t RocksdbRows::bytes_on_disk() const noexcept {
  std::uint64_t bytes = 0;
  return (*database_)->GetIntProperty("rocksdb.total-sst-files-size", &bytes) ? bytes : 0;
}

class RocksdbStore final : public ColdStore {
 public:
  explicit RocksdbStore(RocksdbStoreOptions options)
      : options_(std::move(options)), memory_(memory_of(options_.cache_bytes)) {
    static_cast<void>(remove_leftover_rows(options_.directory));
  }

  std::unique_ptr<ColdRows> open(const TableConfig& table, std::size_t row_floats) override {
    const std::string owner =
        options_.owner + ", table " + std::to_string(table.id) + " '" + table.name + "'";
    return std::make_unique<RocksdbRows>(std::make_shared<Database>(options_.directory, owner, memory_),
                                         row_floats);
  }

 private:
  RocksdbStoreOptions options_;
  Memory memory_;
};

}  // namespace

std::shared_ptr<ColdStore> open_rocksdb_store(RocksdbStoreOptions options) {
  return std::make_shared<RocksdbStore>(std::move(options));
}

}  // namespace fleetrun::ps
