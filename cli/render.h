// A plan as text or as a shell script. Pure.
#pragma once

#include <string>

#include "launcher/model/plan.h"

namespace fleetrun::cli {

/// For people: who is started, where it listens, its command, its variables.
std::string to_text(const launcher::Plan& plan);

/// "cpus 0-3, memory node 0": what a process is bound to.
std::string binding_line(const launcher::ProcessSpec& process);

/// A shell script that starts the same processes with the same variables and logs, and waits for them.
std::string to_shell(const launcher::Plan& plan);

}  // namespace fleetrun::cli
