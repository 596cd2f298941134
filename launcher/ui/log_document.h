// The logs of chosen processes as one document, one process after the other as `fleetrun logs` shows them:
// read by line numbers, searched, and followed in the order in which lines arrive. Every call does a limited
// amount of work and says where to go on, so that nobody waits for whoever reads a terabyte.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/logs/log_show.h"
#include "launcher/ui/log_lines.h"

namespace fleetrun::launcher {

/// What one process has written.
struct LogPart {
  std::string role;
  int rank = 0, attempt = 0;
  std::size_t first = 0, lines = 0;  // in the document
};

class LogDocument {
 public:
  using Cache = std::map<std::string, LogLines>;  // by path; kept from call to call

  /// Looks at what is new in the logs that `spec` is about.
  LogDocument(const LogSpec& spec, Cache& cache);

  const std::vector<LogPart>& parts() const noexcept { return parts_; }
  std::size_t count() const noexcept { return count_; }
  /// False: there are lines that were not looked at yet; they count next time.
  bool is_whole() const noexcept { return is_whole_; }

  /// As a terminal would show them.
  std::vector<std::string> lines(std::size_t first, std::size_t count) const;

  /// The first line from `from` on that has `text`, or going back the last one before it.
  struct Found {
    std::optional<std::size_t> line;
    std::optional<std::size_t> go_on;  // nothing so far: ask again from here
  };
  Found find(const std::string& text, std::size_t from, bool back) const;

 private:
  struct File {
    const LogLines* lines;
    std::size_t first;
  };
  std::vector<LogPart> parts_;
  std::vector<File> files_;
  std::size_t count_ = 0;
  bool is_whole_ = true;
};

/// What the logs have got since `cursor`, which is "" at first: then it begins with their last lines. Goes
/// through rotated logs and later attempts.
struct ArrivedLines {
  std::vector<std::pair<std::string, int>> processes;      // role and rank
  std::vector<std::pair<std::size_t, std::string>> lines;  // of processes[first]
  std::string cursor;
};
ArrivedLines arrived_lines(LogSpec spec, const std::string& cursor);

}  // namespace fleetrun::launcher
