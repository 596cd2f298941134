#include "launcher/ui/listener.h"

#include <cerrno>
#include <cstring>

#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {

UiListener listen_for_ui(const Endpoint& asked, const std::string& flag) {
  const auto found = look_up_now(asked);
  if (found.addresses.empty())
    throw Error(ErrorKind::host, flag + " is " + printable(asked.host) + ": " + found.failure,
                "name an address of this host");
  const SocketAddress& address = found.addresses.front();
  if (is_any(address))
    throw Error(ErrorKind::usage,
                flag + "=" + printable(asked.host) + " is every address, and no browser can ask for it",
                "name the address of this host that browsers are to use");
  UiListener listener;
  listener.socket = listening_socket(address);
  if (!listener.socket)
    throw Error(ErrorKind::host,
                "the page cannot listen at " + to_string(asked) + ": " + std::strerror(errno),
                errno == EADDRINUSE ? "choose another port" : "name an address of this host");
  const Endpoint own = to_endpoint(local_address(listener.socket.value()).value_or(address));
  listener.port = own.port;
  const auto shown = [](const std::string& name) {
    return name.find(':') == name.npos ? name : "[" + name + "]";
  };
  listener.hosts = {shown(asked.host)};
  if (own.host != asked.host) listener.hosts.push_back(shown(own.host));
  listener.is_local = is_loopback(address);
  if (listener.is_local) listener.hosts.push_back("localhost");
  return listener;
}

}  // namespace fleetrun::launcher
