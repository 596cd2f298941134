#include "launcher/net/etcd_address.h"

#include <algorithm>
#include <optional>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::string_view kStandardPort = "2379";
constexpr std::size_t kMaxEndpoints = 64;

/// `shown` is the address without its login.
[[noreturn]] void refuse(std::string_view shown, const std::string& reason) {
  throw Error(
      ErrorKind::config, "'etcd://" + printable(shown) + "' is not the address of an etcd: " + reason,
      "write it as etcd://HOST:2379, with several members as etcd://H1:2379,H2:2379, and with a login as "
      "etcd://USER:PASSWORD@HOST:2379");
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded.push_back(text[at]);
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = hex_digit(text[at + 1]), low = hex_digit(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return decoded;
}

/// "h" → "h:2379", "[::1]" → "[::1]:2379"
std::string with_port(const std::string& text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t colon = text.find(':', bracketed ? std::min(text.find(']'), text.size()) : 0);
  return colon == text.npos ? text + ":" + std::string(kStandardPort) : text;
}

void read_login(std::string_view login, std::string_view shown, EtcdAddress& address) {
  const std::size_t colon = login.find(':');
  if (colon == login.npos) refuse(shown, "its user has no password");
  const auto user = percent_decoded(login.substr(0, colon));
  const auto password = percent_decoded(login.substr(colon + 1));
  if (!user || !password) refuse(shown, "a % in its login is not followed by two hexadecimal digits");
  if (user->empty()) refuse(shown, "its login has no user");
  if (password->empty()) refuse(shown, "its user has no password");
  address.user = *user;
  address.password = *password;
}

}  // namespace

EtcdAddress parse_etcd_address(std::string_view text) {
  EtcdAddress address;
  const std::size_t at = text.rfind('@');
  const std::string_view hosts = at == text.npos ? text : text.substr(at + 1);
  if (at != text.npos) read_login(text.substr(0, at), hosts, address);
  if (hosts.empty()) refuse(hosts, "it has no host");
  if (hosts.find('/') != hosts.npos)
    refuse(hosts, hosts.find("://") != hosts.npos ? "it has a second scheme" : "it has a path");
  if (hosts.find_first_of("?#") != hosts.npos) refuse(hosts, "it has options");
  for (const std::string& part : split(hosts, ',')) {
    if (part.empty()) refuse(hosts, "one of its members is empty");
    try {
      Endpoint endpoint = parse_endpoint(with_port(part));
      if (std::find(address.endpoints.begin(), address.endpoints.end(), endpoint) != address.endpoints.end())
        refuse(hosts, to_string(endpoint) + " is in it twice");
      address.endpoints.push_back(std::move(endpoint));
    } catch (const Error& error) {
      const std::string_view what = error.what();
      const std::size_t reason = what.find("is not an endpoint: ");
      if (reason == what.npos) throw;
      refuse(hosts, std::string(what.substr(reason + std::string_view("is not an endpoint: ").size())));
    }
  }
  if (address.endpoints.size() > kMaxEndpoints)
    refuse(hosts, "it has more than " + std::to_string(kMaxEndpoints) + " members");
  return address;
}

std::string to_string(const EtcdAddress& address) {
  return "etcd://" + to_string(std::span<const Endpoint>(address.endpoints));
}

std::string without_login(std::string_view address) {
  const std::size_t at = address.rfind('@');
  if (at == address.npos) return std::string(address);
  const std::size_t scheme = address.find("://");
  const std::string_view begin = scheme < at ? address.substr(0, scheme + 3) : std::string_view();
  return std::string(begin).append(address.substr(at + 1));
}

}  // namespace fleetrun::launcher
