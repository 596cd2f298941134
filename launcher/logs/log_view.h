// Shows the logs of processes on a terminal, pipe or file while they grow, whole lines with the process's
// name before them, or one process's bytes as they are. On a terminal they are TerminalText.
//
// The processes write to their files and know nothing of this: a reader that is slow or gone costs them
// nothing. What cannot be shown yet stays in the files;
// a few hundred kilobytes are held, whatever is written.
//
// A progress bar, which repaints its line with carriage returns, is shown by its last frame; on a terminal it
// is also repainted below the other lines, a few times per second.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// When a process is shown.
enum class Showing { never, always, after_failure };

struct ViewedProcess {
  std::string name;  // "trainer 3"; empty: its lines have nothing before them
  Showing showing = Showing::always;
  bool operator==(const ViewedProcess&) const = default;
};

struct ViewSettings {
  int output = 1;               // borrowed while the view is made
  bool raw = false;             // bytes as they are, but on a terminal: for one process
  bool colour = false;          // of the names
  bool bare = false;            // the names are prefixes as they are: neither padded nor separated
  bool waits_for_ever = false;  // for a reader that takes nothing, also when nothing is written any more
};

class LogView {
 public:
  virtual ~LogView() = default;
  /// Process `index` writes to `path` now; what counts begins at `start`. To be called at each attempt.
  virtual void attach(std::size_t index, const std::string& path, off_t start) = 0;
  /// The process ended; the end of its last line will not come. `failed`: its last lines are of interest.
  virtual void ended(std::size_t index, bool failed) = 0;
  /// Nothing is written any more: calls `on_done` once all of it has been shown, or the reader is gone, or
  /// has taken nothing for a while. Not from within this call.
  virtual void drain(std::function<void()> on_done) = 0;
  /// The errno by which the output could not be written, such as that of a full disk; 0: it could.
  virtual int problem() const noexcept { return 0; }
};

/// `processes` by their index. Threads: those of `loop`.
std::unique_ptr<LogView> view_logs(boost::asio::io_context& loop, std::vector<ViewedProcess> processes,
                                   const ViewSettings& settings);

}  // namespace fleetrun::launcher
