// What one host is sent over its link before it joins (--ship): fleetrun itself where it asks for it, then
// the files that it lacks. As much at a time as the link takes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launcher/remote/agent_channel.h"
#include "launcher/remote/link.h"
#include "launcher/ship/read_tree.h"
#include "launcher/ship/sender.h"
#include "launcher/ship/start_script.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::remote {

class Shipment {
 public:
  Shipment(std::shared_ptr<const ship::Cargo> cargo, std::uint32_t host)
      : cargo_(std::move(cargo)), host_(host) {}

  /// The host wants fleetrun. Throws: Error(host).
  void begin_launcher(Link& link);
  /// An agent is there.
  void offer(Link& link);
  void begin_files(Link& link, const Wanted& wanted);
  /// The link has room. Throws: Error(host) for a file that cannot be read.
  void go_on(Link& link);

  Progress progress() const;

 private:
  std::shared_ptr<const ship::Cargo> cargo_;
  std::uint32_t host_;
  UniqueFd launcher_;
  std::uint64_t launcher_sent_ = 0;
  std::optional<ship::Sender> files_;
};

/// The program that `cargo` begins with, looked at. Throws: Error(host).
ship::Launcher launcher_of(const ship::Cargo& cargo);

}  // namespace fleetrun::launcher::remote
