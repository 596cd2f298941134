#include "ps/rpc/transport.h"

#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

Transport transport_of(const Environ& environ) {
  const std::string wanted = environ.value_or("FLEETRUN_PS_TRANSPORT", "auto");
  if (wanted == "auto" || wanted.empty()) return Transport::automatic;
  if (wanted == "shm") return Transport::shared_memory;
  if (wanted == "unix") return Transport::unix_socket;
  if (wanted == "tcp") return Transport::tcp;
  throw Error(ErrorKind::config,
              "FLEETRUN_PS_TRANSPORT=" + wanted + " is not a transport to a parameter server",
              "set it to auto, shm, unix or tcp");
}

std::vector<TransportKind> transport_kinds_of(Transport transport) {
  switch (transport) {
    case Transport::shared_memory:
      return {TransportKind::shared_memory};
    case Transport::unix_socket:
      return {TransportKind::unix_socket};
    case Transport::tcp:
      return {TransportKind::tcp};
    default:
      return {TransportKind::shared_memory, TransportKind::unix_socket, TransportKind::tcp};
  }
}

bool offers(Transport transport, TransportKind transport_kind) noexcept {
  switch (transport) {
    case Transport::tcp:
      return transport_kind == TransportKind::tcp;
    case Transport::unix_socket:
      return transport_kind != TransportKind::shared_memory;
    default:
      return true;
  }
}

const char* purpose_of(TransportKind transport_kind) noexcept {
  return transport_kind == TransportKind::shared_memory ? "parameter server, shared memory"
                                                        : "parameter server";
}

LocalAddress local_address(const sockaddr* address, socklen_t size, TransportKind transport_kind) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const std::string name = std::string("fleetrun parameter server ") + host + " " + port +
                           (transport_kind == TransportKind::shared_memory ? " memory" : " calls");
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof local.sun_path - 1);
  std::memcpy(local.sun_path + 1, name.data(), length);  // the zero before it makes it abstract
  LocalAddress out;
  std::memcpy(&out.address, &local, sizeof local);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return out;
}

UniqueFd listen_beside(int socket, TransportKind transport_kind) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  const LocalAddress local = local_address(reinterpret_cast<const sockaddr*>(&address), size, transport_kind);
  UniqueFd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out || ::bind(out.value(), reinterpret_cast<const sockaddr*>(&local.address), local.size) != 0 ||
      ::listen(out.value(), 1024) != 0)
    return {};
  return out;
}

}  // namespace fleetrun::ps
