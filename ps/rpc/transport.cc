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

std::vector<Way> ways_of(Transport transport) {
  switch (transport) {
    case Transport::shared_memory:
      return {Way::shared_memory};
    case Transport::unix_socket:
      return {Way::unix_socket};
    case Transport::tcp:
      return {Way::tcp};
    default:
      return {Way::shared_memory, Way::unix_socket, Way::tcp};
  }
}

bool offers(Transport transport, Way way) noexcept {
  switch (transport) {
    case Transport::tcp:
      return way == Way::tcp;
    case Transport::unix_socket:
      return way != Way::shared_memory;
    default:
      return true;
  }
}

const char* purpose_of(Way way) noexcept {
  return way == Way::shared_memory ? "parameter server, shared memory" : "parameter server";
}

LocalAddress local_address(const sockaddr* address, socklen_t size, Way way) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const std::string name = std::string("fleetrun parameter server ") + host + " " + port +
                           (way == Way::shared_memory ? " memory" : " calls");
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof local.sun_path - 1);
  std::memcpy(local.sun_path + 1, name.data(), length);  // the zero before it makes it abstract
  LocalAddress out;
  std::memcpy(&out.address, &local, sizeof local);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return out;
}

UniqueFd listen_beside(int socket, Way way) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  const LocalAddress local = local_address(reinterpret_cast<const sockaddr*>(&address), size, way);
  UniqueFd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out || ::bind(out.value(), reinterpret_cast<const sockaddr*>(&local.address), local.size) != 0 ||
      ::listen(out.value(), 1024) != 0)
    return {};
  return out;
}

}  // namespace fleetrun::ps
