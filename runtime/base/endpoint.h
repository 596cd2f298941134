// An address that a process listens on: a host name or IP address, and a TCP port.
//
// Written "host:port"; an IPv6 address is written in brackets, "[::1]:8000". The text is kept as the user
// wrote it, because programs find themselves in a list of endpoints by comparing text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

struct Endpoint {
  std::string host;  // without brackets
  std::uint16_t port = 0;

  auto operator<=>(const Endpoint&) const = default;
};

std::string to_string(const Endpoint& endpoint);

/// "a:1,b:2"; "" for an empty list.
std::string to_string(std::span<const Endpoint> endpoints);

/// Throws: Error(config) that says what is wrong with `text` (no port, a port out of 1..65535, a scheme, …).
Endpoint parse_endpoint(std::string_view text);

/// A comma-separated list; "" is an empty list.
/// Throws: Error(config) as parse_endpoint does, and when an endpoint is in the list twice.
std::vector<Endpoint> parse_endpoint_list(std::string_view text);

}  // namespace fleetrun
