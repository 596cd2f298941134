// Where logs are shown: a terminal, pipe, file or socket that is shared with others and never waited for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class LogOutput {
 public:
  /// `output` is borrowed for this call only. What cannot be opened counts as gone.
  explicit LogOutput(int output);

  /// Writes what goes without waiting. Returns how much; 0: it has to become writable first, or is gone.
  std::size_t write(std::string_view bytes) noexcept;

  bool gone() const noexcept { return gone_; }
  /// The errno by which a write failed, once it is gone for that; 0: none did. EPIPE: its reader has left.
  int problem() const noexcept { return problem_; }
  void give_up() noexcept { gone_ = true; }
  bool is_terminal() const noexcept { return is_terminal_; }
  /// To poll for writability.
  int descriptor() const noexcept { return fd_.value(); }
  /// Columns of the terminal; 80 where it does not say.
  std::size_t columns() const noexcept;

 private:
  UniqueFd fd_;
  bool is_socket_ = false, is_terminal_ = false, is_file_ = false, gone_ = false;
  int problem_ = 0;
};

}  // namespace fleetrun::launcher
