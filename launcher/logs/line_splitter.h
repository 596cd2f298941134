// Finds the lines of a growing file, as offsets: what they say stays in the file, so that a line may be as
// long as it likes. Pure; how the bytes are cut into calls makes no difference.
//
// A program that repaints its line with carriage returns writes many frames and one newline. Of such a line
// the last frame that is not empty counts: "10%\r20%\r\n" is the line "20%".
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace fleetrun::launcher {

struct LineSpan {
  off_t begin = 0, end = 0;  // without the newline
  bool operator==(const LineSpan&) const = default;
};

class LineSplitter {
 public:
  /// `start`: the offset of the first byte to come.
  explicit LineSplitter(off_t start = 0) noexcept;

  /// Takes `bytes`, which follow those taken before, up to and with the first newline, or all of them.
  /// Returns the line that ended there.
  std::optional<LineSpan> next(std::string_view& bytes) noexcept;

  /// Offset of the next byte to be taken.
  off_t position() const noexcept { return position_; }
  /// What the line that has not ended yet shows; nothing where no line was begun.
  std::optional<LineSpan> unfinished() const noexcept;
  /// The line that has not ended yet was repainted at least once.
  bool repainted() const noexcept { return repainted_; }

 private:
  void take(std::string_view part) noexcept;
  LineSpan newest_frame() const noexcept;

  off_t position_;
  off_t line_begin_;   // of the unfinished line
  off_t frame_begin_;  // of the frame that is being written
  LineSpan complete_;  // the last frame that a carriage return ended and that is not empty
  bool repainted_ = false;
};

}  // namespace fleetrun::launcher
