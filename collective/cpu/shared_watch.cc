#include "collective/cpu/shared_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace fleetrun::collective {
namespace {

constexpr char kGoodbye = 'b';

}  // namespace

SharedWatch::SharedWatch(SharedGroup& group, std::vector<SharedPeer> peers) : group_(&group) {
  for (SharedPeer& peer : peers) {
    UniqueFd process;
    if (peer.process > 0 && peer.process != ::getpid())
      process.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.process, 0)));  // closed on exec
    watched_.push_back({std::move(peer), std::move(process)});
  }
  stop_.reset(check_errno(::eventfd(0, EFD_CLOEXEC), "eventfd", "watch the ranks of this host"));
  thread_ = std::thread([this] { work(); });
}

SharedWatch::~SharedWatch() {
  for (const Watched& watched : watched_)
    static_cast<void>(::send(watched.peer.socket.value(), &kGoodbye, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
  const std::uint64_t one = 1;
  static_cast<void>(!::write(stop_.value(), &one, sizeof one));
  thread_.join();
}

void SharedWatch::work() noexcept {
  std::vector<pollfd> files;
  for (;;) {
    files.assign(1, {stop_.value(), POLLIN, 0});
    for (const Watched& watched : watched_) {
      files.push_back({watched.is_gone ? -1 : watched.peer.socket.value(), POLLIN, 0});
      files.push_back({watched.is_gone ? -1 : watched.process.value(), POLLIN, 0});
    }
    if (::poll(files.data(), files.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    for (std::size_t i = 0; i < watched_.size(); ++i)
      if (files[1 + 2 * i].revents != 0 || files[2 + 2 * i].revents != 0) see_end(watched_[i]);
    if (files[0].revents != 0) return;
  }
}

void SharedWatch::see_end(Watched& watched) noexcept {
  char word = 0;
  const ssize_t size = ::recv(watched.peer.socket.value(), &word, 1, MSG_DONTWAIT);
  if (size < 0 && errno == EINTR) return;
  watched.is_gone = true;
  if (size == 1 && word == kGoodbye) return;
  try {
    const std::string process =
        watched.peer.process > 0 ? " (process " + std::to_string(watched.peer.process) + ")" : "";
    group_->fail(Error(ErrorKind::network, group_->prefix() + "rank " + std::to_string(watched.peer.rank) +
                                               process + " has died"));
  } catch (...) {
    group_->fail(Error(ErrorKind::network, "a rank has died"));
  }
}

}  // namespace fleetrun::collective
