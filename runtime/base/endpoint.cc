#include "runtime/base/endpoint.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr std::size_t kLongestHostName = 253;  // RFC 1035, without the final dot

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error(ErrorKind::config, "'" + printable(text) + "' is not an endpoint: " + reason,
              "write it as HOST:PORT, for example 127.0.0.1:8000, or [::1]:8000");
}

bool is_host_name_byte(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

bool is_ipv6_byte(char c) noexcept {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.' ||
         c == '%';
}

void check_host(std::string_view text, std::string_view host, bool bracketed) {
  if (host.empty()) refuse(text, "it has no host");
  if (bracketed) {
    const std::string_view address = host.substr(0, host.find('%'));  // what follows % names an interface
    if (!std::all_of(address.begin(), address.end(), is_ipv6_byte) ||
        address.find(':') == std::string_view::npos)
      refuse(text, "'" + printable(host) + "' is not an IPv6 address");
    return;
  }
  if (host.find(':') != std::string_view::npos) refuse(text, "an IPv6 address needs brackets");
  if (!std::all_of(host.begin(), host.end(), is_host_name_byte) || host.front() == '-')
    refuse(text, "'" + printable(host) + "' is not a host name");
  if (host.size() > kLongestHostName) refuse(text, "its host name is too long");
}

std::uint16_t parse_port(std::string_view text, std::string_view port) {
  if (port.empty()) refuse(text, "it has no port");
  const auto number = parse_integer(port);
  if (!number || *number < 1 || *number > 65535)
    refuse(text, "its port '" + printable(port) + "' is not a number from 1 to 65535");
  return static_cast<std::uint16_t>(*number);
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool ipv6 = endpoint.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::string to_string(std::span<const Endpoint> endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    if (!text.empty()) text.push_back(',');
    text.append(to_string(endpoint));
  }
  return text;
}

Endpoint parse_endpoint(std::string_view text) {
  if (text.empty()) refuse(text, "it is empty");
  if (text.find("://") != std::string_view::npos) refuse(text, "it has a scheme");
  std::string_view host, port;
  const bool bracketed = text.front() == '[';
  if (bracketed) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) refuse(text, "its bracket is not closed");
    host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.starts_with(':')) refuse(text, "it has no port");
    port = rest.substr(1);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) refuse(text, "it has no port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  check_host(text, host, bracketed);
  return Endpoint{.host = std::string(host), .port = parse_port(text, port)};
}

EndpointList::EndpointList(std::vector<Endpoint> endpoints) {
  std::string text = to_string(std::span<const Endpoint>(endpoints));
  shared_ = std::make_shared<const Shared>(Shared{std::move(endpoints), std::move(text)});
}

std::vector<Endpoint> parse_endpoint_list(std::string_view text) {
  std::vector<Endpoint> endpoints;
  for (const std::string& part : split(text, ',')) {
    Endpoint endpoint = parse_endpoint(part);
    if (std::find(endpoints.begin(), endpoints.end(), endpoint) != endpoints.end())
      throw Error(ErrorKind::config, "endpoint " + to_string(endpoint) + " is in the list twice",
                  "give every process an endpoint of its own");
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace fleetrun
