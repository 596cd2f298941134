// What processes are bound to (--bind): what is asked for, and what became of it. By launcher/host/affinity.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

enum class Bind { automatic, none, core, numa };

/// "auto", "none", "core", "numa": as the flag spells it.
constexpr std::string_view to_string(Bind bind) noexcept {
  constexpr std::string_view kNames[] = {"auto", "none", "core", "numa"};
  return kNames[static_cast<int>(bind)];
}

struct Binding {
  std::vector<int> cpus, memory_nodes;  // ascending; empty: as fleetrun itself
  bool operator==(const Binding&) const = default;
};

struct Bindings {
  std::vector<Binding> processes;  // in the order of the processes
  std::vector<std::string> notes;  // what the user should know
  bool operator==(const Bindings&) const = default;
};

}  // namespace fleetrun::launcher
