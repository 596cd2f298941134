// Agents on the hosts of a Slurm allocation: one srun starts them all, and its pipes carry what is said to
// all of them. srun gives its standard input to every task, and each takes what is for its host
// (launcher/remote/srun_task).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/remote/fan_out.h"
#include "launcher/schedulers/slurm_allocation.h"

namespace fleetrun::launcher {

/// The srun command for an agent on each of the first `hosts` hosts of the allocation,
/// up to its program. Pure.
std::vector<std::string> srun_command(const SlurmAllocation& allocation, std::size_t hosts);

/// `settings.srun` is the command; destinations are numbered as Slurm numbers the hosts of a step, from 0.
/// There is one try, and either all hosts have an agent or none has.
std::unique_ptr<remote::FanOut> make_srun_fan_out(boost::asio::io_context& loop,
                                                  remote::FanOutSettings settings,
                                                  remote::FanOutListener& listener);

/// Why there are no agents, by what srun wrote and its exit status.
remote::LoginFailure explain_srun(int exit_status, std::string_view said);

}  // namespace fleetrun::launcher
