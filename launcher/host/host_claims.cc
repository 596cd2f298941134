#include "launcher/host/host_claims.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "launcher/host/run_directory.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::string_view kClaimSuffix = ".claims";
constexpr std::size_t kMaxClaimBytes = 1 << 20;
constexpr auto kChoosingPatience = std::chrono::seconds(2);  // with one that was stopped while it chose

std::string claims_text(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || static_cast<std::size_t>(info.st_size) > kMaxClaimBytes) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(size > 0 ? size : 0));
  return text;
}

/// The lock of those who choose; without it after kChoosingPatience: what others hold is still known.
UniqueFd lock_of_choosing(int directory) {
  UniqueFd fd(open_own_at(directory, ".claims.lock", O_RDWR | O_CREAT, Readers::owner));
  const auto deadline = std::chrono::steady_clock::now() + kChoosingPatience;
  while (fd && ::flock(fd.value(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > deadline) return {};
    constexpr timespec kPause = {0, 5'000'000};
    ::nanosleep(&kPause, nullptr);
  }
  return fd;
}

}  // namespace

HostClaims::HostClaims(const std::vector<std::string>& directories) {
  std::string why;
  auto found = first_private_directory(directories, why);
  if (!found) return;
  directory_ = std::move(found->opened);
  choosing_ = lock_of_choosing(directory_.value());
  read();
}

HostClaims& HostClaims::operator=(HostClaims&& other) noexcept {
  if (this == &other) return *this;
  remove();
  directory_ = std::move(other.directory_);
  choosing_ = std::move(other.choosing_);
  own_ = std::move(other.own_);
  name_ = std::exchange(other.name_, {});
  held_ = std::move(other.held_);
  return *this;
}

void HostClaims::read() {
  const int copy = ::openat(directory_.value(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(copy), ::closedir);
  if (!names) return;
  while (const dirent* item = ::readdir(names.get())) {
    const std::string file = item->d_name;
    if (!file.ends_with(kClaimSuffix) || file.starts_with(".")) continue;
    const UniqueFd fd(open_own_at(directory_.value(), file, O_RDONLY, Readers::owner));
    if (!fd) continue;
    if (::flock(fd.value(), LOCK_SH | LOCK_NB) == 0) {
      if (choosing_) ::unlinkat(directory_.value(), file.c_str(), 0);
      continue;
    }
    for (const std::string& what : split(claims_text(fd.value()), '\n')) {
      if (!what.empty()) held_.emplace(what, file.substr(0, file.find('.')));
    }
  }
}

void HostClaims::hold(const std::string& pod, const std::set<std::string>& what) noexcept {
  if (directory_ && !what.empty()) {
    name_ = pod + "." + std::to_string(::getpid()) + std::string(kClaimSuffix);
    own_ = UniqueFd(open_own_at(directory_.value(), name_, O_RDWR | O_CREAT | O_TRUNC, Readers::owner));
    std::string text;
    for (const std::string& one : what) text += one + "\n";
    if (own_ && (::flock(own_.value(), LOCK_EX | LOCK_NB) != 0 ||
                 ::write(own_.value(), text.data(), text.size()) != static_cast<ssize_t>(text.size())))
      remove();
  }
  let_choose();
}

void HostClaims::remove() noexcept {
  if (own_) ::unlinkat(directory_.value(), name_.c_str(), 0);
  own_.reset();
}

}  // namespace fleetrun::launcher
