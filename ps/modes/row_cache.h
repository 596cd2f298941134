// Rows of hot keys, kept by the trainer: a pull asks the servers only for those
// that it has not seen for some steps.
//
// A row that comes from the cache is at most `steps` of this client's pushes old (its own among what it
// lacks); with 0 nothing is kept. Memory is bounded: a key has one of four places, and the one that was
// fetched longest ago gives way. Loading, assigning and shrinking empty it. For asynchronous modes: in sync
// mode every step has to see the one before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ps/client/forwarding_client.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

struct RowCacheOptions {
  std::uint64_t steps = 0;
  std::size_t bytes = std::size_t{256} << 20;  // of all tables together
};

/// FLEETRUN_PS_CACHE: the number of steps. Throws: Error(config) for anything else.
RowCacheOptions row_cache_of(const Environ& environ);

class RowCache final : public ForwardingClient {
 public:
  struct Metrics {
    std::uint64_t rows = 0;  // that pulls asked for
    std::uint64_t hits = 0;  // of them, those that were here
  };

  RowCache(std::unique_ptr<Client> to, const std::vector<TableConfig>& tables,
           const RowCacheOptions& options);
  ~RowCache() override;

  std::unique_ptr<Pending> pull_async(const Pull& request) override;
  std::unique_ptr<Pending> push_async(const Push& request) override;
  std::string load(const std::string& directory) override;
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys, std::span<const float> rows) override;
  std::uint64_t shrink(std::uint32_t table) override;

  Metrics metrics() const noexcept { return {rows_, hits_}; }

 private:
  class Table;
  class PendingPull;
  void empty();

  std::uint64_t steps_;
  std::map<std::uint32_t, std::unique_ptr<Table>> tables_;
  std::atomic<std::uint64_t> clock_{0};  // pushes so far
  std::atomic<std::uint64_t> rows_{0}, hits_{0};
};

/// `client` itself with 0 steps. Throws: Error(config) for steps in a mode that knows no staleness.
std::unique_ptr<Client> with_row_cache(std::unique_ptr<Client> client, Mode mode,
                                       const std::vector<TableConfig>& tables,
                                       const RowCacheOptions& options);

}  // namespace fleetrun::ps
