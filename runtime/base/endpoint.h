// An address that a process listens on: a host name or IP address, and a TCP port.
//
// Written "host:port"; an IPv6 address is written in brackets, "[::1]:8000". The text is kept as the user
// wrote it, because programs find themselves in a list of endpoints by comparing text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
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

/// Endpoints that many share: a copy copies none of them, and their text is written once. Each process of a
/// job knows all others, so a thousand processes would otherwise hold a million endpoints.
class EndpointList {
 public:
  EndpointList() : EndpointList(std::vector<Endpoint>()) {}
  EndpointList(std::vector<Endpoint> endpoints);  // not explicit: it is a vector to those who read it
  EndpointList(std::initializer_list<Endpoint> endpoints) : EndpointList(std::vector<Endpoint>(endpoints)) {}

  std::size_t size() const noexcept { return shared_->endpoints.size(); }
  bool empty() const noexcept { return shared_->endpoints.empty(); }
  const Endpoint* data() const noexcept { return shared_->endpoints.data(); }
  const Endpoint& operator[](std::size_t index) const noexcept { return shared_->endpoints[index]; }
  const Endpoint& front() const noexcept { return shared_->endpoints.front(); }
  const Endpoint& at(std::size_t index) const { return shared_->endpoints.at(index); }
  auto begin() const noexcept { return shared_->endpoints.begin(); }
  auto end() const noexcept { return shared_->endpoints.end(); }
  operator const std::vector<Endpoint>&() const noexcept { return shared_->endpoints; }

  /// "a:1,b:2"
  const std::string& text() const noexcept { return shared_->text; }

  bool operator==(const EndpointList& other) const {
    return shared_ == other.shared_ || shared_->endpoints == other.shared_->endpoints;
  }

 private:
  struct Shared {
    std::vector<Endpoint> endpoints;
    std::string text;
  };
  std::shared_ptr<const Shared> shared_;
};

/// Throws: Error(config) that says what is wrong with `text` (no port, a port out of 1..65535, a scheme, …).
Endpoint parse_endpoint(std::string_view text);

/// A comma-separated list; "" is an empty list.
/// Throws: Error(config) as parse_endpoint does, and when an endpoint is in the list twice.
std::vector<Endpoint> parse_endpoint_list(std::string_view text);

}  // namespace fleetrun
