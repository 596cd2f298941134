// Bytes that wait to be written to a socket: small ones are put together, long ones that many connections
// share are not copied. No I/O but write_some().
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace fleetrun::launcher {

class Outbox {
 public:
  void add(std::string_view bytes);
  void add(std::shared_ptr<const std::string> bytes);
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void clear();

  /// Writes what the socket takes at once. False with errno set when it takes nothing:
  /// EAGAIN until it does again.
  bool write_some(int socket);

 private:
  struct Piece {
    std::string own;
    std::shared_ptr<const std::string> shared;  // in place of `own`
    std::string_view bytes() const noexcept { return shared ? *shared : own; }
  };

  std::deque<Piece> pieces_;
  std::size_t written_ = 0;  // of the first piece
  std::size_t size_ = 0;
};

}  // namespace fleetrun::launcher
