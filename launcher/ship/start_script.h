// The one command that a host runs to have fleetrun there: a shell's words, since a shell is all that is
// known to be there. It starts fleetrun where it is, or else says so and takes it from standard input.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fleetrun::launcher::ship {

/// The program that travels: what a host asks for with kWish.
struct Launcher {
  std::uint64_t digest = 0, size = 0;
  std::string machine;  // uname -m
  bool operator==(const Launcher&) const = default;
};

/// What the script prints where there is no such launcher: its bytes are to follow on standard input.
constexpr std::string_view kWish = "\nfleetrun is to be sent\n";

/// "launcher-0123456789abcdef", below the store's root.
std::string launcher_folder(const Launcher& launcher);

/// Throws: Error(usage) unless `root` (empty: the user's cache) is a plain absolute path or one that begins
/// with "~/", and `words` are plain.
std::string start_script(const std::string& root, const Launcher& launcher, std::string_view words);

constexpr int kNoPlace = 97, kDoesNotRun = 98;  // exit statuses of the script

struct StartFailure {
  std::string reason, hint;
};
/// What such a status means. `last`: the last line on standard error.
StartFailure explain_start(int exit_status, std::string_view said, const std::string& last);

}  // namespace fleetrun::launcher::ship
