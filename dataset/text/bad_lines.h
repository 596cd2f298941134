// Bad lines of an epoch: how many may be passed over, how many there were, and where the first ones are.
//
//   fail      the first one ends the epoch (the default)
//   skip:N    up to N of an epoch are passed over; one more ends it
//
// An epoch is what one process reads from its list of files; its reader threads share one count.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/text/multi_slot_parser.h"

namespace fleetrun::dataset {

struct BadLinePolicy {
  /// Lines that may be passed over; 0 is `fail`.
  std::uint64_t skip = 0;
  bool operator==(const BadLinePolicy&) const = default;
};

/// Reads "fail" or "skip:N" with N above 0. Throws: Error(config).
BadLinePolicy bad_line_policy_of(std::string_view text);
std::string to_string(const BadLinePolicy& policy);

/// The lines that were passed over.
struct BadLineReport {
  std::uint64_t count = 0;
  /// "FILE:LINE:COLUMN: slot 'NAME': WHAT" of the first ones.
  std::vector<std::string> places;
  bool operator==(const BadLineReport&) const = default;
};

/// "3 bad lines were skipped: PLACE; PLACE; …"
std::string to_string(const BadLineReport& report);

class BadLines {
 public:
  static constexpr std::size_t kPlaces = 10;

  explicit BadLines(BadLinePolicy policy) : policy_(policy) {}

  /// Counts a bad line of `file`, which is what the pipe command `command` printed unless that is empty.
  /// Throws: Error(data) naming the place when it is one too many.
  void add(const std::string& file, const std::string& command, const LineFault& fault);

  BadLineReport report() const;
  /// Forgets what was counted: a new epoch.
  void clear();

 private:
  const BadLinePolicy policy_;
  mutable std::mutex mutex_;
  BadLineReport report_;
};

}  // namespace fleetrun::dataset
