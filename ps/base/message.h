// Bytes between a client and a server, whatever carries them: Message owns what is sent, Reader walks through
// what arrived, which may lie in several pieces.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fleetrun::ps {

/// Gives the bytes of a message back: to the heap, or to whom they are from.
struct GiveBackBytes {
  std::function<void(std::byte*)> to = {};
  void operator()(std::byte* bytes) const {
    if (to)
      to(bytes);
    else
      delete[] bytes;
  }
};

/// Contiguous, uninitialised bytes, aligned for any scalar. They come from the heap, or from whom a transport
/// has them from (shared memory), with how to give them back.
class Message {
 public:
  Message() = default;
  explicit Message(std::size_t size) : bytes_(size == 0 ? nullptr : new std::byte[size]), size_(size) {}
  Message(std::byte* bytes, std::size_t size, std::function<void(std::byte*)> give_back)
      : bytes_(bytes, GiveBackBytes{std::move(give_back)}), size_(size) {}

  std::byte* data() noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }
  bool is_from_heap() const noexcept { return !bytes_.get_deleter().to; }
  /// Hands memory from the heap over; it is freed with delete[].
  std::byte* release() noexcept {
    size_ = 0;
    return bytes_.release();
  }

 private:
  std::unique_ptr<std::byte[], GiveBackBytes> bytes_;
  std::size_t size_ = 0;
};

/// Where messages of a size come from; empty for the heap.
using MessageSource = std::function<Message(std::size_t)>;

/// Reads from front to back. The pieces must outlive the reader.
/// Throws: Error(data) when more is asked for than is left.
class Reader {
 public:
  Reader() = default;
  explicit Reader(std::span<const std::byte> bytes) : Reader(std::vector{bytes}) {}
  explicit Reader(std::vector<std::span<const std::byte>> pieces);

  std::size_t remaining() const noexcept { return remaining_; }
  /// All that is left, as it lies.
  std::vector<std::span<const std::byte>> pieces() const;

  void read(void* out, std::size_t size) {
    if (size > piece_.size()) return read_across(static_cast<std::byte*>(out), size);
    if (size != 0) std::memcpy(out, piece_.data(), size);
    piece_ = piece_.subspan(size);
    remaining_ -= size;
  }

  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    read(&out, sizeof out);
    return out;
  }

  /// The next `count` values in one piece: where they lie, if they do so in one piece and aligned, otherwise
  /// copied to `copy`, which must live as long as the result.
  template <class T>
  std::span<const T> array(std::size_t count, Message& copy) {
    static_assert(std::is_trivially_copyable_v<T>);
    require(count, sizeof(T));
    const auto bytes = view(count * sizeof(T), alignof(T), copy);
    return {reinterpret_cast<const T*>(bytes.data()), count};
  }

 private:
  void require(std::size_t count, std::size_t size) const;
  void read_across(std::byte* out, std::size_t size);
  std::span<const std::byte> view(std::size_t size, std::size_t alignment, Message& copy);

  std::vector<std::span<const std::byte>> pieces_;
  std::size_t next_ = 0;              // the piece after piece_
  std::span<const std::byte> piece_;  // what is left of the current one
  std::size_t remaining_ = 0;
};

/// Fills a Message from front to back; the message was made with the size that is written.
class Writer {
 public:
  explicit Writer(Message& message) : at_(message.data()), end_(message.data() + message.size()) {}

  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(take(sizeof value), &value, sizeof value);
  }
  template <class T>
  void array(std::span<const T> values) {
    if (!values.empty()) std::memcpy(take(values.size_bytes()), values.data(), values.size_bytes());
  }
  /// Room for `count` values, to be filled by the caller.
  template <class T>
  std::span<T> room(std::size_t count) {
    return {reinterpret_cast<T*>(take(count * sizeof(T))), count};
  }

 private:
  std::byte* take(std::size_t size) noexcept;

  std::byte* at_;
  std::byte* end_;
};

}  // namespace fleetrun::ps
