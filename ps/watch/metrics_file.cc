#include "ps/watch/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/own_file.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {
namespace {

constexpr const char* kUnfinished = ".new";

/// Why it could not be written; empty: it was.
std::string replace_file(const std::string& path, const std::string& text) {
  const std::string unfinished = path + kUnfinished;
  const UniqueFd file(open_own(unfinished, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
  if (!file) return std::strerror(errno);
  const ssize_t written = ::write(file.value(), text.data(), text.size());
  if (written < 0) return std::strerror(errno);
  if (static_cast<std::size_t>(written) != text.size()) return "only a part of it could be written";
  return std::rename(unfinished.c_str(), path.c_str()) == 0 ? "" : std::strerror(errno);
}

}  // namespace

MetricsFile::MetricsFile(std::string path, std::function<std::string()> text,
                         std::function<void(std::string)> warn, std::chrono::milliseconds period)
    : path_(std::move(path)),
      text_(std::move(text)),
      warn_(std::move(warn)),
      period_(period),
      thread_([this] { run(); }) {}

MetricsFile::~MetricsFile() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::unlink(path_.c_str());
  ::unlink((path_ + kUnfinished).c_str());
}

void MetricsFile::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const std::string why = replace_file(path_, text_() + "\n");
    if (!why.empty()) return warn_("fleetrun cannot read this server's metrics: " + path_ + ": " + why);
    lock.lock();
    changed_.wait_for(lock, period_, [this] { return ending_; });
  }
}

}  // namespace fleetrun::ps
