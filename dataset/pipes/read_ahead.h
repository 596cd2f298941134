// A source whose next bytes a thread of its own fetches, while the reader of the ones before parses them:
// what a pipe costs, a copy in the kernel and the return of its pages, is not the parser's time then.
//
//   source ──→ thread ──→ up to kBlocks blocks ──→ read()
//
// The thread starts with the first read(): what is opened ahead of time does nothing before.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dataset/pipes/byte_source.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {

class ReadAhead : public ByteSource {
 public:
  /// `open` makes the source, which is to end its waits when the descriptor becomes readable that it is
  /// given: it does when `stop_fd` (borrowed; -1: none) does, and when this object goes.
  /// Throws: Error(spawn) when there are no descriptors left; what `open` throws.
  ReadAhead(const std::function<std::unique_ptr<ByteSource>(int stop_fd)>& open, int stop_fd);
  /// Ends a wait of the source.
  ~ReadAhead() override;
  /// What the source throws comes after the bytes before it.
  std::size_t read(std::span<char> room) override;

 private:
  static constexpr std::size_t kBlocks = 4;
  struct Block {
    std::vector<char> bytes;
    std::size_t filled = 0;
  };
  void fetch() noexcept;
  bool fetch_block();

  UniqueFd leave_event_;
  UniqueFd stops_;  // an epoll of it and the owner's
  std::unique_ptr<ByteSource> source_;
  std::thread thread_;
  std::size_t taken_ = 0;  // of the first block, by read()

  std::mutex mutex_;
  std::condition_variable filled_, emptied_;
  // Blocks [first_, first_ + full_) are read()'s, the others the thread's.
  std::array<Block, kBlocks> blocks_;
  std::size_t first_ = 0;
  std::size_t full_ = 0;
  bool leaving_ = false;
  bool ended_ = false;  // no block comes any more; failure_ says why, if not because of the end
  std::exception_ptr failure_;
};

}  // namespace fleetrun::dataset
