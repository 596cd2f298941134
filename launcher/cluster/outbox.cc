#include "launcher/cluster/outbox.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <utility>

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kPiecesAtOnce = 16;
constexpr std::size_t kLongPiece = 65'536;  // nothing is added to one that is longer

}  // namespace

void Outbox::add(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  const bool fits = !pieces_.empty() && !pieces_.back().shared && pieces_.back().own.size() < kLongPiece;
  if (!fits) pieces_.emplace_back();
  pieces_.back().own += bytes;
}

void Outbox::add(std::shared_ptr<const std::string> bytes) {
  if (bytes->size() < kLongPiece / 16) return add(std::string_view(*bytes));
  size_ += bytes->size();
  pieces_.push_back({"", std::move(bytes)});
}

void Outbox::clear() {
  pieces_.clear();
  written_ = size_ = 0;
}

bool Outbox::write_some(int socket) {
  iovec parts[kPiecesAtOnce];
  std::size_t count = 0;
  for (const Piece& piece : pieces_) {
    if (count == kPiecesAtOnce) break;
    std::string_view bytes = piece.bytes();
    if (count == 0) bytes.remove_prefix(written_);
    parts[count++] = {const_cast<char*>(bytes.data()), bytes.size()};  // which sendmsg() only reads
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return false;
  auto left = static_cast<std::size_t>(sent);
  size_ -= left;
  while (left > 0) {
    const std::size_t rest = pieces_.front().bytes().size() - written_;
    if (left < rest) {
      written_ += left;
      break;
    }
    left -= rest;
    written_ = 0;
    pieces_.pop_front();
  }
  return true;
}

}  // namespace fleetrun::launcher
