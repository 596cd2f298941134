// Memory for table rows: slabs cut from 2 MiB chunks, which the kernel may back with huge pages (random
// access to rows is bound by address translation otherwise). Slabs are returned all at once, when the arena
// goes.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace fleetrun::ps {

/// Threads: take_slab() may be called from several at once.
class RowArena {
 public:
  explicit RowArena(std::size_t slab_floats);

  /// Uninitialised, aligned to 64 bytes. Throws: std::bad_alloc.
  float* take_slab();
  std::size_t slab_floats() const noexcept { return slab_floats_; }
  /// Of all chunks.
  std::size_t bytes() const;

 private:
  struct Free {
    void operator()(float* memory) const noexcept;
  };

  std::size_t slab_floats_;
  std::size_t slabs_per_chunk_;
  mutable std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::size_t taken_ = 0;  // slabs of the last chunk that are in use
  std::vector<std::unique_ptr<float, Free>> chunks_;
};

}  // namespace fleetrun::ps
