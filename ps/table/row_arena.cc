#include "ps/table/row_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace fleetrun::ps {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

RowArena::RowArena(std::size_t slab_floats)
    : slab_floats_((slab_floats + 15) / 16 * 16),
      slabs_per_chunk_(std::max<std::size_t>(1, kHugePage / (slab_floats_ * sizeof(float)))) {}

float* RowArena::take_slab() {
  const std::lock_guard lock(mutex_);
  if (chunks_.empty() || taken_ == slabs_per_chunk_) {
    const std::size_t wanted = slabs_per_chunk_ * slab_floats_ * sizeof(float);
    const std::size_t bytes = (wanted + kHugePage - 1) / kHugePage * kHugePage;
    std::unique_ptr<float, Free> chunk(static_cast<float*>(std::aligned_alloc(kHugePage, bytes)));
    if (!chunk) throw std::bad_alloc();
    // Advice only: without transparent huge pages the chunk works all the same.
    static_cast<void>(::madvise(chunk.get(), bytes, MADV_HUGEPAGE));
    chunks_.push_back(std::move(chunk));
    taken_ = 0;
    bytes_ += bytes;
  }
  return chunks_.back().get() + slab_floats_ * taken_++;
}

std::size_t RowArena::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void RowArena::Free::operator()(float* memory) const noexcept {
  std::free(memory);
}

}  // namespace fleetrun::ps
