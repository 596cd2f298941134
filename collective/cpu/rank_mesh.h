// Connections between all ranks of a group, over TCP: each pair has one,
// and both ends have proved the job's secret.
//
//   1  each rank listens at a free port of its address and tells the store: NAME/endpoint/RANK
//   2  each rank connects to all lower ones (runtime/connect/connector), and says who it is by a first frame,
//      which is answered by one
//   3  each rank lets in all higher ones (runtime/connect/authenticating_acceptor), and closes its port
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/store/store.h"
#include "runtime/connect/access.h"
#include "runtime/connect/connector.h"

namespace fleetrun::collective {

struct MeshOptions {
  std::string name;     // begins the names in the store
  std::string address;  // of this process, as the others reach it
  Access access = {};
  std::chrono::milliseconds meet_within{60'000};
};

/// By rank; this rank's own is empty.
/// Throws: Error(timeout) naming who did not come, Error(network) naming who cannot be reached,
/// Error(config) for another secret.
std::vector<SealedSocket> connect_mesh(const Place& place, Store& store, const MeshOptions& options);

}  // namespace fleetrun::collective
