#include "ps/modes/row_cache.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "ps/base/row_copy.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/mix.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kWays = 4;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

/// Threads: any.
class RowCache::Table {
 public:
  Table(std::size_t width, std::size_t bytes) : width_(width) {
    const std::size_t one = width * sizeof(float) + sizeof(Entry);
    const std::size_t sets = std::bit_floor(std::max<std::size_t>(bytes / (one * kWays), 1));
    entries_.resize(sets * kWays);
    rows_.resize(sets * kWays * width);
  }

  std::size_t width() const noexcept { return width_; }

  /// Copies what is here and not older than `since` to its positions; those of the others go to `missing`.
  /// Returns what put() has to be told.
  std::uint64_t take(const SparsePull& pull, std::uint64_t since, std::vector<std::size_t>& missing) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pull.keys.size(); ++i) {
      const Entry* entry = find(pull.keys[i]);
      if (entry == nullptr || entry->fetched < since) {
        missing.push_back(i);
      } else {
        copy_row(pull.rows.data() + i * width_, row_of(*entry), width_);
      }
    }
    return emptied_;
  }

  void put(std::span<const std::uint64_t> keys, const float* rows, std::uint64_t fetched,
           std::uint64_t emptied) {
    const std::lock_guard lock(mutex_);
    if (emptied != emptied_) return;  // they are of before
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Entry* entry = find(keys[i]);
      if (entry != nullptr && entry->fetched > fetched) continue;
      if (entry == nullptr) entry = &oldest(keys[i]);
      *entry = {keys[i], fetched};
      copy_row(row_of(*entry), rows + i * width_, width_);
    }
  }

  void empty() {
    const std::lock_guard lock(mutex_);
    ++emptied_;
    std::ranges::fill(entries_, Entry{});
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t fetched = kNever;  // nothing is here
  };

  Entry* set_of(std::uint64_t key) noexcept {
    return &entries_[(mix(key) & (entries_.size() / kWays - 1)) * kWays];
  }
  Entry* find(std::uint64_t key) noexcept {
    Entry* set = set_of(key);
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set[way].key == key && set[way].fetched != kNever) return &set[way];
    }
    return nullptr;
  }
  // A place that is free, else the one that was fetched longest ago.
  Entry& oldest(std::uint64_t key) noexcept {
    Entry* set = set_of(key);
    return *std::min_element(set, set + kWays,
                             [](const Entry& a, const Entry& b) { return a.fetched + 1 < b.fetched + 1; });
  }
  float* row_of(const Entry& entry) noexcept {
    return rows_.data() + static_cast<std::size_t>(&entry - entries_.data()) * width_;
  }

  std::size_t width_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<float> rows_;
  std::uint64_t emptied_ = 0;
};

/// Puts what the servers answered to where it was asked for, and into the cache.
class RowCache::PendingPull final : public Pending {
 public:
  struct Part {
    Table* table;  // borrowed from the cache
    std::span<float> rows;
    std::vector<std::size_t> positions;
    std::vector<std::uint64_t> keys;
    std::vector<float> fetched;
    std::uint64_t emptied;
  };
  std::vector<Part> parts;
  std::uint64_t clock = 0;
  std::unique_ptr<Pending> pending;  // after the parts: it ends before the buffers that it fills

  void wait() override {
    if (pending) pending->wait();
    for (const Part& part : parts) {
      const std::size_t width = part.table->width();
      for (std::size_t i = 0; i < part.positions.size(); ++i)
        copy_row(part.rows.data() + part.positions[i] * width, part.fetched.data() + i * width, width);
      part.table->put(part.keys, part.fetched.data(), clock, part.emptied);
    }
  }
};

RowCacheOptions row_cache_of(const Environ& environ) {
  RowCacheOptions out;
  const std::string text = environ.value_or("FLEETRUN_PS_CACHE", "0");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.steps);
  if (error == std::errc() && end == text.data() + text.size()) return out;
  throw Error(ErrorKind::config, "FLEETRUN_PS_CACHE=" + printable(text) + " is not a number of steps",
              "set it to how many steps old a row may be, or to 0");
}

RowCache::RowCache(std::unique_ptr<Client> to, const std::vector<TableConfig>& tables,
                   const RowCacheOptions& options)
    : ForwardingClient(std::move(to)), steps_(options.steps) {
  const auto is_sparse = [](const TableConfig& table) { return table.kind == TableConfig::Kind::sparse; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(tables, is_sparse));
  for (const TableConfig& table : tables) {
    if (is_sparse(table))
      tables_[table.id] = std::make_unique<Table>(pulled_width(table), options.bytes / count);
  }
}

RowCache::~RowCache() = default;

std::unique_ptr<Pending> RowCache::pull_async(const Pull& request) {
  auto pull = std::make_unique<PendingPull>();
  pull->clock = clock_;
  const std::uint64_t since = pull->clock > steps_ ? pull->clock - steps_ : 0;
  Pull rest = request;
  rest.sparse.clear();
  pull->parts.reserve(request.sparse.size());
  for (const SparsePull& section : request.sparse) {
    const auto table = tables_.find(section.table);
    const bool fits =
        table != tables_.end() && section.rows.size() == section.keys.size() * table->second->width();
    if (!fits) {
      rest.sparse.push_back(section);  // the client says what is wrong
      continue;
    }
    PendingPull::Part& part = pull->parts.emplace_back();
    part.table = table->second.get();
    part.rows = section.rows;
    part.emptied = part.table->take(section, since, part.positions);
    rows_ += section.keys.size();
    hits_ += section.keys.size() - part.positions.size();
    for (const std::size_t position : part.positions) part.keys.push_back(section.keys[position]);
    part.fetched.resize(part.keys.size() * part.table->width());
    if (!part.keys.empty()) rest.sparse.push_back({section.table, part.keys, part.fetched});
  }
  if (!rest.sparse.empty() || !rest.dense.empty()) pull->pending = to().pull_async(rest);
  return pull;
}

std::unique_ptr<Pending> RowCache::push_async(const Push& request) {
  ++clock_;
  return to().push_async(request);
}

void RowCache::empty() {
  for (const auto& [id, table] : tables_) table->empty();
}

std::string RowCache::load(const std::string& directory) {
  std::string said = to().load(directory);
  empty();
  return said;
}

void RowCache::assign(std::uint32_t table, std::span<const std::uint64_t> keys, std::span<const float> rows) {
  to().assign(table, keys, rows);
  empty();
}

std::uint64_t RowCache::shrink(std::uint32_t table) {
  const std::uint64_t erased = to().shrink(table);
  empty();
  return erased;
}

std::unique_ptr<Client> with_row_cache(std::unique_ptr<Client> client, Mode mode,
                                       const std::vector<TableConfig>& tables,
                                       const RowCacheOptions& options) {
  if (options.steps == 0) return client;
  if (mode == Mode::sync || mode == Mode::geo) {
    throw Error(ErrorKind::config,
                "rows that are " + std::to_string(options.steps) + " steps old, and the mode is " +
                    std::string(to_string(mode)),
                "leave FLEETRUN_PS_CACHE out, or train asynchronously");
  }
  return std::make_unique<RowCache>(std::move(client), tables, options);
}

}  // namespace fleetrun::ps
