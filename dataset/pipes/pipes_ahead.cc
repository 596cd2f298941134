#include "dataset/pipes/pipes_ahead.h"

#include <sys/stat.h>

#include <exception>
#include <utility>

namespace fleetrun::dataset {

void PipesAhead::start(std::size_t index, const ByteSourceOptions& options) noexcept {
  try {
    if (command_text(options.pipe).empty() && !is_remote(options.file)) return;
    const Look look = look_at(options.file);
    auto source = open_byte_source(options);
    const std::lock_guard lock(mutex_);
    pipes_[index] = {look, std::move(source)};
  } catch (const std::exception&) {
    // The next epoch meets it again, and says so.
  }
}

std::unique_ptr<ByteSource> PipesAhead::take(std::size_t index, const std::string& file) {
  Pipe pipe;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pipes_.find(index);
    if (found == pipes_.end()) return nullptr;
    pipe = std::move(found->second);
    pipes_.erase(found);
  }
  if (pipe.look == look_at(file)) return std::move(pipe.source);
  return nullptr;
}

void PipesAhead::clear() noexcept {
  const std::lock_guard lock(mutex_);
  pipes_.clear();
}

PipesAhead::Look PipesAhead::look_at(const std::string& file) {
  struct stat status {};
  if (is_remote(file) || ::stat(file.c_str(), &status) == -1) return {};
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace fleetrun::dataset
