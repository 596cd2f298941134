// Connects as FLEETRUN_PS_TRANSPORT says, so that one test runs over every transport.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/rpc/connect.h"
#include "runtime/base/environ.h"

namespace fleetrun::ps {

inline std::unique_ptr<Client> connect_as_told(const std::vector<std::string>& endpoints,
                                               const ClientOptions& client, ConnectOptions options = {}) {
  options.transport = transport_of(Environ::of_process());
  return connect(endpoints, client, options);
}

}  // namespace fleetrun::ps
