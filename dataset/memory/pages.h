// Memory for many examples: taken from the system in large pieces,
// which go back to it when nothing in them is used any more.
//
// Threads: one per PageSource. What it hands out may be used, and let go, by any thread.
#pragma once

#include <cstddef>
#include <memory>

namespace fleetrun::dataset {

class PageSource {
 public:
  /// `bytes` (at least 1) of memory, zeros at first, valid as long as the result or a copy of it lives.
  /// Throws: std::bad_alloc.
  std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  std::shared_ptr<std::byte> piece_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace fleetrun::dataset
