// The command lines of fleetrun-init as an init for one command, also as a container's pid 1. Pure.
//
//   fleetrun-init [OPTION]… -- COMMAND…       tini's options, and orphans come to it wherever it is started
//   tini, tini-static [OPTION]… [--] COMMAND…   by the name that it is called by:
//                                               -s -g -w -v -p SIGNAL -e CODE;
//                                             TINI_SUBREAPER, TINI_KILL_PROCESS_GROUP, TINI_VERBOSITY
//   dumb-init [OPTION]… COMMAND…              -c -v -r FROM:TO; DUMB_INIT_SETSID=0, DUMB_INIT_DEBUG=1
//
// Options end at the first word that is none.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::launcher {

enum class InitDialect { tini, dumb_init };

constexpr int kAsItCame = -1;
constexpr int kLastPlainSignal = 31;  // those after it are real-time signals

struct InitOptions {
  InitDialect dialect = InitDialect::tini;
  std::vector<std::string> command;
  bool subreaper = false;
  bool signal_group = false;  // signals go to the command's whole group; dumb-init: also a session of its own
  bool warn_reaped = false;
  int verbosity = 1;  // tini: 0 errors, 1 warnings, 2 and 3 more; dumb-init: 2 when asked to be verbose
  int parent_death_signal = 0;  // 0: none
  std::array<int, kLastPlainSignal + 1> rewrite =
      {};                    // number → what is sent instead; 0: nothing; or kAsItCame
  std::bitset<256> success;  // exit statuses that count as 0

  bool operator==(const InitOptions&) const = default;
};

/// Nothing is run: help was asked for, or the command line is wrong.
struct InitAnswer {
  std::string text;
  int status = 0;
  bool operator==(const InitAnswer&) const = default;
};

/// How the program is to behave: by its name, or because it is given a command. nullopt: it is to hold a pod.
std::optional<InitDialect> init_dialect(const std::vector<std::string>& argv);

std::variant<InitOptions, InitAnswer> parse_init_options(InitDialect dialect,
                                                         const std::vector<std::string>& argv,
                                                         const Environ& environment);

}  // namespace fleetrun::launcher
