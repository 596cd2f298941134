#include "runtime/connect/sealed_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace fleetrun {
namespace {

constexpr std::size_t kPiece = 65'536;    // received, or sealed, at once
constexpr std::size_t kSealedAtOnce = 4;  // pieces
constexpr std::size_t kKept = 16'384;     // of memory, by a connection on which nothing waits

std::span<const std::byte> bytes_of(const iovec& part) {
  return {static_cast<const std::byte*>(part.iov_base), part.iov_len};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void empty(std::string& bytes, std::size_t& at) {
  at = 0;
  if (bytes.capacity() > kKept)
    std::string().swap(bytes);
  else
    bytes.clear();
}

}  // namespace

SealedSocket::SealedSocket(UniqueFd connection, std::optional<RecordLayer> records, std::string early)
    : connection_(std::move(connection)), records_(std::move(records)), input_(std::move(early)) {}

std::string SealedSocket::peer_host() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "";
  if (::getpeername(fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0)
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST);
  return host;
}

void SealedSocket::end_when_silent() noexcept {
  const auto set = [this](int level, int option, int value) {
    ::setsockopt(fd(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 15000);  // ms
}

ssize_t SealedSocket::send(std::span<const iovec> parts) {
  if (!flush()) return -1;
  if (has_output()) {
    errno = EAGAIN;
    return -1;
  }
  if (!records_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Of the thread, not of each connection: most of the time nothing waits on most of them.
  static thread_local std::string sealed;
  sealed.clear();
  std::size_t taken = 0;
  for (const iovec& part : parts) {
    const std::span<const std::byte> bytes = bytes_of(part);
    const std::span<const std::byte> fitting =
        bytes.first(std::min(bytes.size(), kSealedAtOnce * kPiece - taken));
    records_->seal(fitting, sealed);
    taken += fitting.size();
  }
  const ssize_t sent = ::send(fd(), sealed.data(), sealed.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return -1;
  output_.append(sealed, static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  return static_cast<ssize_t>(taken);
}

void SealedSocket::queue(std::string_view bytes) {
  if (output_at_ > 0) output_.erase(0, std::exchange(output_at_, 0));
  if (records_)
    records_->seal(bytes_of(bytes), output_);
  else
    output_.append(bytes);
}

bool SealedSocket::flush() {
  while (has_output()) {
    const ssize_t count = ::send(fd(), output_.data() + output_at_, queued(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    output_at_ += static_cast<std::size_t>(count);
  }
  empty(output_, output_at_);
  return true;
}

ssize_t SealedSocket::receive(std::span<std::byte> into) {
  if (!records_) {
    if (input_.empty()) return ::recv(fd(), into.data(), into.size(), MSG_DONTWAIT);
    const std::size_t count = std::min(into.size(), input_.size() - input_at_);
    std::memcpy(into.data(), input_.data() + input_at_, count);
    input_at_ += count;
    if (input_at_ == input_.size()) empty(input_, input_at_);
    return static_cast<ssize_t>(count);
  }
  if (has_input()) {
    std::string_view rest = std::string_view(input_).substr(input_at_);
    const std::size_t opened = records_->open(rest, into);
    input_at_ = input_.size() - rest.size();
    if (rest.empty()) empty(input_, input_at_);
    if (opened > 0) return static_cast<ssize_t>(opened);
  }
  static thread_local std::array<char, kPiece> piece;
  for (;;) {
    const ssize_t count = ::recv(fd(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count <= 0) return count;
    std::string_view rest(piece.data(), static_cast<std::size_t>(count));
    const std::size_t opened = records_->open(rest, into);
    input_ = rest;
    if (opened > 0) return static_cast<ssize_t>(opened);
  }
}

UniqueFd SealedSocket::take_plain(std::string& early) {
  early = input_.substr(input_at_);
  return std::move(connection_);
}

}  // namespace fleetrun
