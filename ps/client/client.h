// A trainer's view of all servers together: pull values, push gradients, meet the other trainers.
//
// Made by ps/rpc/connect.h (over gRPC) or ps/memory/in_process.h (servers in this process, for one-process
// runs and tests); this header knows neither. Duplicate keys are fine everywhere: a pull fills each position,
// a push adds the gradients of equal keys up before the one update.
//
// Nothing is silent: a gradient that is NaN or infinite is Error(data) and nothing of that push is sent; a
// dense table that nobody has set or loaded is Error(config) on pull and push, not zeros; a trainer that goes
// without goodbye() (its client is destroyed, its process dies) fails every barrier, sum, epoch and
// synchronous step that waits for it, with Error(network) naming it; in a job where trainers come and go,
// these go on without it as soon as the servers hear of the world without it.
//
// Threads: all calls may be made from several threads at once. Spans given to an *_async call must stay valid
// until its Pending was waited for or destroyed (the destructor waits). Throws: Error(network) naming the
// server ("server 0 at 127.0.0.1:40001 is gone …") within seconds when a server dies; Error(config) when a
// server refuses because the two sides disagree (it names both).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ps/base/encoding.h"
#include "ps/base/table_config.h"
#include "ps/client/group_client.h"
#include "ps/client/step_client.h"
#include "ps/client/table_client.h"

namespace fleetrun::ps {

/// How long a call may take before it fails with Error(timeout) naming the server that has not answered; 0:
/// for ever. What waits for other trainers (barriers, sums, epochs, pushes in sync mode) has no deadline.
struct Deadlines {
  /// Pulls, and pushes that do not wait for others.
  std::chrono::milliseconds data{0};
  /// Saving and loading: each of the requests of which they are made.
  std::chrono::milliseconds saving{0};
};

struct ClientOptions {
  std::uint32_t trainer = 0;
  std::uint32_t trainers = 1;
  Mode mode = Mode::async;
  std::vector<TableConfig> tables;
  /// Of the world that this trainer knows (launcher/run/world_feed), and the launcher that it belongs to.
  std::uint64_t generation = 0;
  std::string launcher = {};
  /// Not 0: a trainer that is started again with the same number, unlike that of any other, is the same to
  /// the servers as before, and goes on at next_change(). 0: it is another one each time.
  std::uint64_t identity = 0;
  /// Whatever a trainer of this rank did before is not this client's: it was the same process, which has said
  /// goodbye since.
  bool begins_anew = false;
  /// For a script that begins anew when its process does: the servers keep what its epochs are over, and
  /// StepClient::counts_epochs(), in all modes but sync.
  bool counts_epochs = false;
  /// How rows and gradients travel; what shortening cuts off gradients is added to later ones
  /// (ps/client/error_feedback.h).
  Encodings encodings = {};
  Deadlines deadlines = {};
  /// Called once, with who waits where, when for so long nobody has gone on of the trainers that wait for
  /// each other: one makes other calls than the others. 0, or without warn: never.
  std::chrono::milliseconds tell_waits{std::chrono::minutes(1)};
  std::function<void(const std::string&)> warn = {};
};

/// All of it. Who needs one side takes that one.
class Client : public StepClient, public TableClient, public GroupClient {};

}  // namespace fleetrun::ps
