// fleetrun-log: the writer between the processes of a pod and their logs (--log_through). fleetrun starts it;
// it reads the processes' output from pipes and writes it with launcher/log_writer/log_writer.
// Single-threaded, without Boost.
//
// It is in a session of its own and ignores the signals of terminals, so that it outlives the processes by
// their last words; it ends when all pipes have, or kLinger after fleetrun has gone or has no processes left.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "launcher/log_writer/log_writer_protocol.h"
#include "runtime/base/passed_files.h"

namespace fleetrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLinger{5};
constexpr std::size_t kBlock = 256 * 1024;
constexpr int kMaxBlocksToSettle = 16;

struct Stream {
  std::uint32_t index = 0;
  UniqueFd pipe;
  LogWriter writer;
  std::uint64_t told = 0;  // of dropped and removed bytes together
};

class LogPump {
 public:
  LogPump() : block_(kBlock), events_(::epoll_create1(EPOLL_CLOEXEC)) { watch(kLogWriterSocket, nullptr); }

  int run() {
    while (control_open_ || !streams_.empty()) {
      const int timeout = control_open_ ? -1 : static_cast<int>(left_to_linger().count());
      if (timeout == 0) break;
      epoll_event ready[64];
      const int count = ::epoll_wait(events_.value(), ready, 64, timeout);
      if (count < 0 && errno != EINTR) return 1;
      for (int i = 0; i < count; ++i) {
        if (ready[i].data.ptr)
          pump(*static_cast<Stream*>(ready[i].data.ptr));
        else
          receive();
      }
      std::erase_if(streams_, [](const auto& stream) { return !stream->pipe; });
    }
    for (auto& stream : streams_) end(*stream);
    return 0;
  }

 private:
  std::chrono::milliseconds left_to_linger() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(linger_until_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }

  bool watch(int fd, Stream* stream) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = stream;
    return ::epoll_ctl(events_.value(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  /// Writes one block. False: there is nothing more now.
  bool pump(Stream& stream) {
    const ssize_t count = stream.pipe ? ::read(stream.pipe.value(), block_.data(), block_.size()) : -1;
    if (count > 0) {
      stream.writer.write({block_.data(), static_cast<std::size_t>(count)}, Clock::now());
      tell(stream);
      return true;
    }
    if (count == 0) end(stream);
    return false;
  }

  void end(Stream& stream) {
    if (!stream.pipe) return;
    stream.writer.finish(Clock::now());
    tell(stream);
    send_lost(stream);
    // fleetrun has the pipe open too: closing it alone would not end its events.
    ::epoll_ctl(events_.value(), EPOLL_CTL_DEL, stream.pipe.value(), nullptr);
    stream.pipe.reset();
  }

  void tell(Stream& stream) {
    const std::uint64_t lost = stream.writer.dropped() + stream.writer.removed();
    if (lost == stream.told) return;
    stream.told = lost;
    LogNews news;
    news.index = stream.index;
    news.dropped = stream.writer.dropped();
    news.removed = stream.writer.removed();
    news.error = stream.writer.error();
    send(&news, sizeof news);
  }

  /// The last words for which the file had no room.
  void send_lost(const Stream& stream) {
    if (stream.writer.lost().empty()) return;
    LogNews head;
    head.kind = LogMessage::lost;
    head.index = stream.index;
    std::string message(reinterpret_cast<const char*>(&head), sizeof head);
    message += stream.writer.lost();
    send(message.data(), message.size());
  }

  void send(const void* message, std::size_t size) {
    (void)!::send(kLogWriterSocket, message, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void receive() {
    std::vector<char> bytes(kLongestLogMessage);
    auto [count, files] =
        receive_with_files(kLogWriterSocket, std::as_writable_bytes(std::span(bytes)), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      control_open_ = false;
      linger_until_ = Clock::now() + kLinger;
      ::epoll_ctl(events_.value(), EPOLL_CTL_DEL, kLogWriterSocket, nullptr);
      return;
    }
    const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
    if (kind_of(text) == LogMessage::settle) return settle();
    if (auto opened = decode_open(text); opened && files.size() == 1)
      open(std::move(*opened), std::move(files.front()));
  }

  void open(OpenedLog opened, UniqueFd pipe) {
    ::fcntl(pipe.value(), F_SETFL, O_NONBLOCK);
    streams_.push_back(std::make_unique<Stream>(
        Stream{opened.index, std::move(pipe), LogWriter(std::move(opened.place), opened.limits)}));
    watch(streams_.back()->pipe.value(), streams_.back().get());
  }

  void settle() {
    for (auto& stream : streams_) {
      for (int blocks = 0; blocks < kMaxBlocksToSettle && pump(*stream); ++blocks) {
      }
      send_lost(*stream);
    }
    LogNews settled;
    settled.kind = LogMessage::settled;
    send(&settled, sizeof settled);
  }

  std::vector<char> block_;
  UniqueFd events_;
  std::vector<std::unique_ptr<Stream>> streams_;
  bool control_open_ = true;
  Clock::time_point linger_until_{};
};

}  // namespace
}  // namespace fleetrun::launcher

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fleetrun::launcher::kLogWriterSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    constexpr char kMine[] = "fleetrun-log: fleetrun starts this, with --log_through\n";
    (void)!::write(STDERR_FILENO, kMine, sizeof kMine - 1);
    return 125;
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGTSTP})
    ::signal(number, SIG_IGN);
  return fleetrun::launcher::LogPump().run();
}
