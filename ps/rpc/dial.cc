#include "ps/rpc/dial.h"

#include <netdb.h>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

Connector begin(const std::string& endpoint, ConnectorSettings settings, std::size_t attempt,
                TransportKind transport_kind) {
  if (transport_kind == TransportKind::tcp) return Connector(endpoint, std::move(settings), attempt);
  std::string why_not;
  const Addresses found = look_up(endpoint, why_not);
  if (!found) return Connector(why_not, std::move(settings));
  const addrinfo& address = pick(found, attempt);
  const LocalAddress local = local_address(address.ai_addr, address.ai_addrlen, transport_kind);
  return Connector(reinterpret_cast<const sockaddr*>(&local.address), local.size, std::move(settings));
}

}  // namespace

Dial::Dial(const std::string& endpoint, const std::string& name, const Access& access, std::size_t attempt,
           TransportKind transport_kind)
    : transport_kind_(transport_kind),
      connector_(
          begin(endpoint,
                {.name = name,
                 .access = access,
                 .purpose = purpose_of(transport_kind),
                 .secret_hint = std::string("let one fleetrun start servers and trainers; ") + kSecretHint},
                attempt, transport_kind)) {}

void Dial::advance() {
  if (is_connected() || has_failed()) return;
  if (!connector_.is_connected()) return connector_.advance();
  pollfd ready = wanted();
  if (::poll(&ready, 1, 0) > 0) return receive_segment();
  if (std::chrono::steady_clock::now() >= deadline())
    connector_.fail("it does not answer as a server of fleetrun's");
}

void Dial::receive_segment() {
  try {
    if (auto files = receive_files(connector_.connection()))
      segment_.emplace(ShmSegment::attach(std::move(*files)));
  } catch (const Error& error) {
    connector_.fail(error.what());
  }
}

}  // namespace fleetrun::ps
