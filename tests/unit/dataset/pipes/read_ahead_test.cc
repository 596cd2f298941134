#include "dataset/pipes/read_ahead.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

enum class End { done, error, wait };

/// A text in pieces, and what comes then: its end, an error, or a wait until the descriptor is readable.
class Pieces : public ByteSource {
 public:
  Pieces(std::string text, std::size_t piece, End end, int stop_fd)
      : text_(std::move(text)), piece_(piece), end_(end), stop_fd_(stop_fd) {}
  std::size_t read(std::span<char> room) override {
    const std::size_t bytes = std::min({piece_, room.size(), text_.size() - at_});
    std::memcpy(room.data(), text_.data() + at_, bytes);
    at_ += bytes;
    if (bytes > 0 || end_ == End::done) return bytes;
    if (end_ == End::error) throw Error(ErrorKind::data, "part-0: it broke", "mend it");
    pollfd watched{stop_fd_, POLLIN, 0};
    while (::poll(&watched, 1, -1) != 1) {
    }
    throw StopRequested();
  }

 private:
  const std::string text_;
  const std::size_t piece_;
  const End end_;
  const int stop_fd_;
  std::size_t at_ = 0;
};

std::unique_ptr<ByteSource> ahead(const std::string& text, std::size_t piece, End end = End::done,
                                  int stop_fd = -1) {
  return std::make_unique<ReadAhead>(
      [&](int stops) { return std::make_unique<Pieces>(text, piece, end, stops); }, stop_fd);
}

std::string text_of(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  return text;
}

/// What read() gives, until it gives `bytes` of it or its end.
std::string read_some(ByteSource& source, std::size_t bytes, std::size_t room_size) {
  std::vector<char> room(room_size);
  std::string text;
  while (text.size() < bytes) {
    const std::size_t count = source.read(room);
    if (count == 0) break;
    text.append(room.data(), count);
  }
  return text;
}

}  // namespace

TEST_CASE("the bytes are the source's, whatever the pieces and the room") {
  const std::string text = text_of(std::size_t{3} << 20);
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{64} << 10, std::size_t{8} << 20})
    for (const std::size_t room : {std::size_t{777}, std::size_t{100} << 10, std::size_t{1} << 20}) {
      const auto source = ahead(text, piece);
      CHECK(read_some(*source, text.size() + 1, room) == text);
      char more[1];
      CHECK(source->read(more) == 0);
    }
  CHECK(read_some(*ahead("", 1), 1, 1).empty());
}

TEST_CASE("an error comes behind the bytes before it, each time it is asked for") {
  const std::string text = text_of(100'000);
  const auto source = ahead(text, 999, End::error);
  CHECK(read_some(*source, text.size(), 1000) == text);
  char more[1];
  for (int i = 0; i < 2; ++i) {
    try {
      source->read(more);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "part-0: it broke");
      CHECK(error.hint() == "mend it");
    }
  }
}

TEST_CASE("what cannot be opened is the caller's error") {
  CHECK_THROWS_AS(
      ReadAhead(
          [](int) -> std::unique_ptr<ByteSource> { throw Error(ErrorKind::data, "part-0: is not there"); },
          -1),
      Error);
}

TEST_CASE("nothing is read before it is asked for") {
  struct Counting : ByteSource {
    explicit Counting(std::atomic<int>& reads) : reads_(reads) {}
    std::size_t read(std::span<char>) override {
      ++reads_;
      return 0;
    }
    std::atomic<int>& reads_;
  };
  std::atomic<int> reads = 0;
  {
    const ReadAhead unread([&](int) { return std::make_unique<Counting>(reads); }, -1);
  }
  CHECK(reads == 0);
}

TEST_CASE("it goes while its thread waits: for bytes, and for room") {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{4} << 20}) {
    const auto source = ahead(text_of(bytes), 64 << 10, End::wait);
    CHECK_FALSE(read_some(*source, 1, 10).empty());
  }
}

TEST_CASE("the owner's request to stop ends a wait") {
  const UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  const auto source = ahead("1\n", 10, End::wait, stop.value());
  CHECK(read_some(*source, 2, 10) == "1\n");
  const std::uint64_t one = 1;
  REQUIRE(::write(stop.value(), &one, sizeof one) == sizeof one);
  char more[1];
  CHECK_THROWS_AS(source->read(more), StopRequested);
}
