// Where the page listens, and under which names a browser may ask for it.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

struct UiListener {
  UniqueFd socket;
  int port = 0;
  std::vector<std::string> hosts;  // as UiGate wants them
  bool is_local = false;           // for this host alone
};

/// Port 0: any free one. `flag`: by which the user named the address.
/// Throws: Error(host|usage) for an address that is not this host's, is every address, or is taken.
UiListener listen_for_ui(const Endpoint& address, const std::string& flag);

}  // namespace fleetrun::launcher
