// What a coordinator sees of its job, for people and records: the controller of a host list prints these, and
// so does a launcher that coordinates. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "launcher/model/job_notice.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

struct NodeJoined {
  std::string name, node;
};
/// `after`: without a word; 0 when its connection was closed or it said goodbye.
struct NodeLost {
  std::string name, node, why;
  std::chrono::milliseconds after{};
};
struct NodeRefused {
  std::string name, why;
};
struct NodeParked {
  std::string name, why;
};
/// One job, and files of other contents that are run for it.
struct ProgramsDiffer {
  std::string name, other;
};
/// "waiting for 1 of 4 hosts: no word from h7 for 41 s"
struct WaitingForNodes {
  std::string text;
};
struct ChangeBegun {
  std::uint64_t generation = 0;
  std::string why;
};
struct WorldFormed {
  std::shared_ptr<const World> world;
};
struct NodeFailed {
  std::string name;
  NodeFailure failure;
};
/// "restarting: crash, restart 1 of 3"
struct RestartDecided {
  std::string why;
  std::chrono::milliseconds backoff{};
};
/// Of the whole job, or (`left`) of one node's part in it.
struct JobEnded {
  JobEnd end;
};

using ClusterEvent =
    std::variant<NodeJoined, NodeLost, NodeRefused, NodeParked, ProgramsDiffer, WaitingForNodes, ChangeBegun,
                 WorldFormed, NodeFailed, RestartDecided, JobEnded>;

/// One line without its end: "h7 was lost: no word from it for 2.5 s".
std::string to_string(const ClusterEvent& event);

/// What --on_event tells of it.
std::optional<JobNotice> notice_of(const ClusterEvent& event);

}  // namespace fleetrun::launcher
