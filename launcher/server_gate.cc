// A listening socket does not announce itself, so this is the one place that asks again and again: every 5 ms
// at first, every 100 ms later.
#include "launcher/server_gate.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

class Gate final : public ServerGate {
 public:
  Gate(asio::io_context& loop, const std::vector<Endpoint>& servers, milliseconds timeout,
       std::function<void(bool)> on_done)
      : loop_(loop), deadline_(loop, timeout), on_done_(std::move(on_done)) {
    for (const Endpoint& server : servers) probes_.push_back(std::make_unique<Probe>(loop, server));
    deadline_.async_wait([this](const boost::system::error_code& error) {
      if (!error && !finished_) finish(false);
    });
    for (auto& probe : probes_) try_again(*probe);
  }

  void forget(const Endpoint& endpoint) override {
    for (auto& probe : probes_) {
      if (probe->endpoint == endpoint) settle(*probe);
    }
  }

  void stop() override {
    finished_ = true;
    for (auto& probe : probes_) {
      probe->settled = true;
      probe->timer.cancel();
    }
    deadline_.cancel();
  }

 private:
  struct Probe {
    Probe(asio::io_context& loop, Endpoint where)
        : endpoint(std::move(where)), socket(loop), timer(loop), resolver(loop) {}
    Endpoint endpoint;
    tcp::socket socket;
    asio::steady_timer timer;
    tcp::resolver resolver;
    milliseconds pause{5};
    bool settled = false;
  };

  void try_again(Probe& probe) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(probe.endpoint.host, error);
    tcp::endpoint target(address, probe.endpoint.port);
    if (error) {
      const auto found =
          probe.resolver.resolve(probe.endpoint.host, std::to_string(probe.endpoint.port), error);
      if (error || found.empty()) return wait(probe);
      target = found.begin()->endpoint();
    }
    probe.socket.async_connect(target, [this, &probe](const boost::system::error_code& failed) {
      if (failed == asio::error::operation_aborted || probe.settled) return;
      const bool accepted = !failed && !is_connected_to_itself(probe.socket);
      boost::system::error_code ignored;
      probe.socket.close(ignored);
      if (accepted)
        settle(probe);
      else
        wait(probe);
    });
  }

  /// TCP lets a socket connect to its own port when nobody listens there and the kernel happens to pick it.
  static bool is_connected_to_itself(const tcp::socket& socket) {
    boost::system::error_code error;
    return socket.local_endpoint(error) == socket.remote_endpoint(error);
  }

  void wait(Probe& probe) {
    probe.timer.expires_after(probe.pause);
    probe.pause = std::min(probe.pause * 3 / 2, milliseconds(100));
    probe.timer.async_wait([this, &probe](const boost::system::error_code& error) {
      if (!error && !probe.settled) try_again(probe);
    });
  }

  void settle(Probe& probe) {
    probe.settled = true;
    const bool all = std::all_of(probes_.begin(), probes_.end(), [](const auto& p) { return p->settled; });
    if (all) finish(true);
  }

  void finish(bool all) {
    if (finished_) return;
    stop();
    on_done_(all);
  }

  asio::io_context& loop_;
  asio::steady_timer deadline_;
  std::function<void(bool)> on_done_;
  std::vector<std::unique_ptr<Probe>> probes_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<ServerGate> watch_servers(asio::io_context& loop, const std::vector<Endpoint>& servers,
                                          milliseconds timeout, std::function<void(bool all)> on_done) {
  return std::make_unique<Gate>(loop, servers, timeout, std::move(on_done));
}

}  // namespace fleetrun::launcher
