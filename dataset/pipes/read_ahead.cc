#include "dataset/pipes/read_ahead.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/quiet_thread.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
// The thread is woken when so few blocks are full, and fills them all:
// waking it for each would cost more than it saves.
constexpr std::size_t kFewBlocks = 2;

void watch(const UniqueFd& events, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  check_errno(::epoll_ctl(events.value(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl", "cannot read ahead",
              ErrorKind::spawn);
}

}  // namespace

ReadAhead::ReadAhead(const std::function<std::unique_ptr<ByteSource>(int)>& open, int stop_fd)
    : leave_event_(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "cannot read ahead",
                               ErrorKind::spawn)),
      stops_(check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1", "cannot read ahead",
                         ErrorKind::spawn)) {
  watch(stops_, leave_event_.value());
  if (stop_fd != -1) watch(stops_, stop_fd);
  source_ = open(stops_.value());
}

ReadAhead::~ReadAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  emptied_.notify_one();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(leave_event_.value(), &one, sizeof one);
  thread_.join();
}

std::size_t ReadAhead::read(std::span<char> room) {
  if (!thread_.joinable()) thread_ = quiet_thread([this] { fetch(); });
  {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return full_ > 0 || ended_; });
    if (full_ == 0) {
      if (failure_) std::rethrow_exception(failure_);
      return 0;
    }
  }
  const Block& block = blocks_[first_];
  const std::size_t bytes = std::min(room.size(), block.filled - taken_);
  std::memcpy(room.data(), block.bytes.data() + taken_, bytes);
  taken_ += bytes;
  if (taken_ < block.filled) return bytes;
  taken_ = 0;
  std::unique_lock lock(mutex_);
  first_ = (first_ + 1) % kBlocks;
  const bool few = --full_ <= kFewBlocks;
  lock.unlock();
  if (few) emptied_.notify_one();
  return bytes;
}

void ReadAhead::fetch() noexcept {
  std::exception_ptr failure;
  try {
    while (fetch_block()) {
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  ended_ = true;
  filled_.notify_one();
}

/// False at the end, and when this object goes.
bool ReadAhead::fetch_block() {
  std::unique_lock lock(mutex_);
  if (full_ == kBlocks) emptied_.wait(lock, [this] { return leaving_ || full_ <= kFewBlocks; });
  if (leaving_) return false;
  Block& block = blocks_[(first_ + full_) % kBlocks];
  lock.unlock();
  block.bytes.resize(kBlockBytes);
  block.filled = source_->read(block.bytes);
  if (block.filled == 0) return false;
  lock.lock();
  ++full_;
  lock.unlock();
  filled_.notify_one();
  return true;
}

}  // namespace fleetrun::dataset
