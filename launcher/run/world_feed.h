// Tells the processes of a job of several hosts about its world,
// and about every world that follows while they run.
//
// A process that finds FLEETRUN_WORLD_FD reads that descriptor, a pipe that does not block;
// one JSON object a line, the last one counts:
//
//   {"epoch":5,"attempt":0,"run":"<32 hex>","hash":"<16 hex>","in_place":true,"node":"<32 hex>",
//    "node_rank":1,
//    "nodes":["h1","h2"],
//    "trainers":[{"rank":0,"endpoint":"10.0.0.1:6170","node":"h1","id":"<32 hex>"},…],"servers":[…]}
//
// in_place: worlds change while the processes go on; a rank that is not in `trainers` is free. id: the
// launcher that the process belongs to; a rank whose id has changed is another process than before. The
// descriptor ends when fleetrun does.
//
// Nobody waits for a process that does not read: beside what its pipe holds, one line that is half written
// and the newest one are kept for it. The Python package reads all this (fleetrun.elastic),
// and so do parameter servers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/model/world.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// The line, with its newline. Pure.
std::string world_line(const World& world, std::size_t node_rank, bool in_place);

/// Threads: everything, the part included, on the loop of the job.
class WorldFeed {
 public:
  virtual ~WorldFeed() = default;
  /// Tells every process that runs, and those that will be started, until the next world.
  virtual void publish(const World& world, std::size_t node_rank) = 0;
  /// Gives each process its pipe. One part at a time; it shares the feed, which may end before it.
  virtual MakeJobPart part() = 0;
};

/// `in_place`: what is said under that name above. The owners are who publishes and the part.
std::shared_ptr<WorldFeed> make_world_feed(bool in_place);

}  // namespace fleetrun::launcher
