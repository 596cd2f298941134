#include "launcher/logs/line_splitter.h"

#include <cstring>

namespace fleetrun::launcher {

LineSplitter::LineSplitter(off_t start) noexcept
    : position_(start), line_begin_(start), frame_begin_(start), complete_{start, start} {}

std::optional<LineSpan> LineSplitter::next(std::string_view& bytes) noexcept {
  if (bytes.empty()) return std::nullopt;
  const void* newline = std::memchr(bytes.data(), '\n', bytes.size());
  if (!newline) {
    take(bytes);
    bytes = {};
    return std::nullopt;
  }
  const auto length = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data());
  take(bytes.substr(0, length));
  bytes.remove_prefix(length + 1);
  const LineSpan line = newest_frame();
  *this = LineSplitter(position_ + 1);
  return line;
}

std::optional<LineSpan> LineSplitter::unfinished() const noexcept {
  if (position_ == line_begin_) return std::nullopt;
  return newest_frame();
}

void LineSplitter::take(std::string_view part) noexcept {
  const off_t begin = position_;
  position_ += static_cast<off_t>(part.size());
  // Most lines have none, and std::string_view would look byte by byte.
  const void* found = part.empty() ? nullptr : memrchr(part.data(), '\r', part.size());
  if (!found) return;
  const auto last = static_cast<std::size_t>(static_cast<const char*>(found) - part.data());
  repainted_ = true;
  const std::string_view ended = part.substr(0, part.find_last_not_of('\r', last) + 1);
  const off_t next_frame = begin + static_cast<off_t>(last) + 1;
  if (!ended.empty()) {
    const std::size_t before = ended.rfind('\r');
    const bool within = before != std::string_view::npos;
    complete_ = {within ? begin + static_cast<off_t>(before) + 1 : frame_begin_,
                 begin + static_cast<off_t>(ended.size())};
  } else if (frame_begin_ < begin) {
    complete_ = {frame_begin_, begin};
  }
  frame_begin_ = next_frame;
}

LineSpan LineSplitter::newest_frame() const noexcept {
  return frame_begin_ < position_ ? LineSpan{frame_begin_, position_} : complete_;
}

}  // namespace fleetrun::launcher
