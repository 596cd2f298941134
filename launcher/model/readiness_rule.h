// When a role counts as ready, for the roles that wait for it: what launcher/run/readiness watches.
#pragma once

#include <string>

namespace fleetrun::launcher {

struct Readiness {
  enum class Kind { none, port, log_line, descriptor };

  Kind kind = Kind::none;
  std::string
      text;  // log_line: a regular expression; port: "HOST:PORT", or "" for each process's own endpoint
  bool operator==(const Readiness&) const = default;
};

/// What is wrong with a regular expression, or "".
std::string regex_fault(const std::string& text);

}  // namespace fleetrun::launcher
