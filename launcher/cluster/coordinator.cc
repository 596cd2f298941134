#include "launcher/cluster/coordinator.h"

#include <errno.h>
#include <string.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <utility>

#include "launcher/cluster/coordinator_driver.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/random_bytes.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;

UniqueFd listen_at(const Endpoint& endpoint) {
  const auto address = numeric_address(endpoint);
  if (!address)
    throw Error(ErrorKind::host, endpoint.host + " is not an address in digits",
                "give one of this host's addresses");
  UniqueFd socket = listening_socket(*address);
  if (!socket) refuse_to_listen(endpoint, errno);
  return socket;
}

class ControllerCoordinator final : public Coordinator, private ChannelServerListener {
 public:
  ControllerCoordinator(asio::io_context& loop, CoordinatorSettings settings, const CoordinatorPlace& place,
                        CoordinatorObserver& observer)
      : observer_(observer) {
    std::vector<UniqueFd> sockets;
    for (const Endpoint& endpoint : place.listen) sockets.push_back(listen_at(endpoint));
    server_ = serve(loop, std::move(sockets), place.channel, place.limits, *this);
    if (!server_->endpoints().empty()) settings.own = server_->endpoints().front();
    if (settings.run.empty()) settings.run = draw_run();
    driver_ = drive(loop, settings, std::nullopt, place.channel, hooks());
  }

  const std::vector<Endpoint>& endpoints() const noexcept override { return server_->endpoints(); }
  void stop(int signal) override { driver_->stop(signal); }
  void end(const JobEnd& end) override { driver_->end(end); }
  std::vector<std::string> missing() const override { return driver_->core().missing(); }
  std::shared_ptr<const World> world() const noexcept override { return driver_->core().world(); }

 private:
  CoordinatorHooks hooks() {
    CoordinatorHooks hooks;
    hooks.send = [this](const std::vector<ConnectionId>& to, const SharedMessage& message) {
      for (const ConnectionId id : to) server_->send(id, message.share());
    };
    hooks.close = [this](ConnectionId id) { server_->close(id); };
    hooks.publish = [](const Journal&) {};  // there is nowhere to: only this coordinator ever is
    hooks.event = [this](const ClusterEvent& event) { observer_.on_event(event); };
    hooks.stepped_down = [this](const std::string& why) {
      server_->close_all();
      observer_.on_over({.exit_status = 1, .why = why, .node = "", .failure = std::nullopt});
    };
    hooks.over = [this](const JobEnd& end) {
      over_ = true;
      server_->close_all();
      observer_.on_over(end);
    };
    return hooks;
  }

  void on_open(ConnectionId, const std::string&) override {}
  void on_message(ConnectionId id, std::string_view bytes) override {
    try {
      driver_->on_message(id, decode(bytes));
    } catch (const Error& error) {  // who has the secret speaks our language, or is broken
      observer_.on_warning(std::string("a message of a launcher cannot be read: ") + error.what(),
                           error.hint());
      server_->close(id);
      driver_->on_closed(id, Closing::broken);
    }
  }
  void on_closed(ConnectionId id, const ChannelClosed& closed) override {
    driver_->on_closed(id, closed.end == ChannelEnd::goodbye ? Closing::closed : Closing::broken);
  }
  void on_refused(const ChannelClosed& closed) override { observer_.on_warning(closed.why, closed.hint); }
  /// At the end, launchers that were still on their way break off.
  void on_strangers(const StrangerCount& count) override {
    if (!over_) observer_.on_warning(to_string(count), "");
  }

  CoordinatorObserver& observer_;
  std::unique_ptr<ChannelServer> server_;
  std::unique_ptr<CoordinatorDriver> driver_;
  bool over_ = false;
};

}  // namespace

std::unique_ptr<Coordinator> start_coordinator(asio::io_context& loop, CoordinatorSettings settings,
                                               const CoordinatorPlace& place, CoordinatorObserver& observer) {
  hmac_sha256("", "");  // should libcrypto be missing, it is said here, not in the middle of a handshake
  return std::make_unique<ControllerCoordinator>(loop, std::move(settings), place, observer);
}

std::string draw_id() {
  return hex(random_bytes(16));
}

std::string draw_run() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  char began[17];
  std::snprintf(began, sizeof began, "%016llx", static_cast<unsigned long long>(now.count()));
  return began + hex(random_bytes(8));
}

void refuse_to_listen(const Endpoint& endpoint, int problem) {
  const std::string what = "cannot listen at " + to_string(endpoint) + ": ";
  if (problem == EADDRINUSE)
    throw Error(ErrorKind::host, what + "another program does", "choose another port, or end that program");
  if (problem == EADDRNOTAVAIL)
    throw Error(ErrorKind::host, what + "it is not an address of this host", "check it with: ip address");
  if (problem == EACCES)
    throw Error(ErrorKind::host, what + "ports below 1024 are root's", "choose a port from 1024 on");
  throw Error(ErrorKind::host, what + ::strerror(problem));
}

}  // namespace fleetrun::launcher
