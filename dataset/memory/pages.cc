// Pieces are mappings of their own, beginning at a multiple of 2 MiB, and ask for large pages: the first
// touch of a page costs as much as parsing it, and examples that are read in any order would miss the
// processor's table of small pages.
#include "dataset/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kPieceBytes = 8 * kLargePage;

std::shared_ptr<std::byte> map_piece(std::size_t bytes) {
  const std::size_t mapped = bytes + kLargePage;
  void* const begin = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t aligned = (first + kLargePage - 1) / kLargePage * kLargePage;
  static_cast<void>(::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE));  // a hint
  return {reinterpret_cast<std::byte*>(aligned), [begin, mapped](std::byte*) { ::munmap(begin, mapped); }};
}

}  // namespace

std::shared_ptr<std::byte> PageSource::take(std::size_t bytes) {
  constexpr std::size_t line = 64;
  const std::size_t wanted = (bytes + line - 1) / line * line;
  if (size_ - used_ < wanted) {
    size_ = std::max(kPieceBytes, (wanted + kLargePage - 1) / kLargePage * kLargePage);
    used_ = 0;
    piece_ = map_piece(size_);
  }
  std::shared_ptr<std::byte> out(piece_, piece_.get() + used_);
  used_ += wanted;
  return out;
}

}  // namespace fleetrun::dataset
