#include "ps/durable/log_feed.h"

#include <array>
#include <span>

namespace fleetrun::ps {
namespace {

struct Head {
  std::uint32_t kind = 0;
  std::uint32_t unused = 0;
  std::uint64_t length = 0;
};

std::uint64_t filling(std::uint64_t length) {
  return (8 - length % 8) % 8;
}

}  // namespace

void read_batch(Reader in, std::uint64_t records, const std::function<void(LogRecord&)>& take) {
  for (; records > 0; --records) {
    const auto head = in.value<Head>();
    Message copy, unused;
    LogRecord record{head.kind, Reader(in.array<std::byte>(head.length, copy))};
    in.array<std::byte>(filling(head.length), unused);
    take(record);
  }
  if (in.remaining() != 0) throw Error(ErrorKind::data, "bytes follow the records of a server's log");
}

// With the lock held.
void LogFeed::fresh() {
  next_ = {};
  reached_ = 0;
  is_followed_ = false;
}

void LogFeed::open() {
  const std::lock_guard lock(mutex_);
  fresh();
  state_ = State::open;
}

void LogFeed::guard() {
  const std::lock_guard lock(mutex_);
  state_ = State::guarded;
}

void LogFeed::close() {
  std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::closed;
    fresh();
    waiting.swap(waiting_);
  }
  for (const auto& [number, then] : waiting) then();
}

bool LogFeed::is_guarded() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::guarded;
}

void LogFeed::append(std::uint32_t kind, const BytePieces& payload) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::closed) return;
  Head head{kind};
  for (const auto& piece : payload) head.length += piece.size();
  next_.bytes.value(head);
  for (const auto& piece : payload) next_.bytes.array(piece);
  constexpr std::array<std::byte, 8> kZeros = {};
  next_.bytes.array(std::span(kZeros).first(filling(head.length)));
  ++next_.records;
  changed_.notify_all();
}

bool LogFeed::is_followed() const {
  const std::lock_guard lock(mutex_);
  return is_followed_;
}

LogBatch LogFeed::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return woken_ || next_.records > 0; });
  woken_ = false;
  LogBatch out = std::exchange(next_, {});
  next_.first = out.first + out.records;
  return out;
}

void LogFeed::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void LogFeed::reached(std::uint64_t record) {
  std::deque<std::pair<std::uint64_t, std::function<void()>>> safe;
  {
    const std::lock_guard lock(mutex_);
    reached_ = record;
    is_followed_ = state_ == State::guarded;
    while (!waiting_.empty() && waiting_.front().first <= record) {
      safe.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  for (const auto& [number, then] : safe) then();
}

}  // namespace fleetrun::ps
