// Real etcd servers for tests, on ports and in directories of their own, and a bad network before them.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/etcd/etcd_client.h"
#include "launcher/host/port_lease.h"
#include "runtime/base/environ.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::tests {

inline constexpr std::chrono::seconds kLong{20};  // for what takes a moment on an idle machine

inline bool has_etcd() {
  return ::access("/usr/bin/etcd", X_OK) == 0;
}

/// Runs the loop until `done` or the deadline; returns whether it is done.
inline bool run_until(boost::asio::io_context& loop, const std::function<bool()>& done,
                      std::chrono::milliseconds patience = kLong) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  loop.restart();
  while (!done()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    loop.run_one_for(std::min<std::chrono::steady_clock::duration>(left, std::chrono::milliseconds(50)));
    if (loop.stopped()) loop.restart();
  }
  return true;
}

/// Asks one question, and returns its answer.
inline launcher::EtcdReply ask(const launcher::EtcdAddress& address, const launcher::EtcdRequest& request,
                               std::chrono::milliseconds patience = kLong) {
  boost::asio::io_context loop;
  const auto client = launcher::make_etcd_client(loop, address);
  std::optional<launcher::EtcdReply> reply;
  const auto question = client->ask(request, patience, [&](const auto& answer) { reply = answer; });
  run_until(
      loop, [&] { return reply.has_value(); }, patience + kLong);
  return reply.value();
}

/// A cluster of `size` members.
class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t size = 1) {
    for (std::size_t i = 0; i < size; ++i) {
      clients_.push_back(leases_.lease_free("127.0.0.1"));
      peers_.push_back(leases_.lease_free("127.0.0.1"));
    }
    servers_.resize(size);
    for (std::size_t i = 0; i < size; ++i) start(i);
    for (std::size_t i = 0; i < size; ++i) ask(address(i), launcher::read_key("ready"));
  }

  void start(std::size_t member) {
    leases_.release(clients_[member]);
    leases_.release(peers_[member]);
    const auto url = [](const Endpoint& endpoint) { return "http://" + to_string(endpoint); };
    std::string all;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      all += (i == 0 ? "" : ",") + std::string("m") + std::to_string(i) + "=" + url(peers_[i]);
    const std::string name = "m" + std::to_string(member);
    servers_[member] = std::make_unique<ChildProcess>(
        std::vector<std::string>{"/usr/bin/etcd", "--name", name, "--data-dir", directory_.file(name),
                                 "--listen-client-urls", url(clients_[member]), "--advertise-client-urls",
                                 url(clients_[member]), "--listen-peer-urls", url(peers_[member]),
                                 "--initial-advertise-peer-urls", url(peers_[member]), "--initial-cluster",
                                 all},
        directory_.file(name + ".log"));
  }
  void kill(std::size_t member) { servers_[member].reset(); }
  ChildProcess& server(std::size_t member) { return *servers_[member]; }

  launcher::EtcdAddress address() const { return {.endpoints = clients_}; }
  launcher::EtcdAddress address(std::size_t member) const { return {.endpoints = {clients_[member]}}; }
  const TempDir& directory() const noexcept { return directory_; }

 private:
  TempDir directory_;
  launcher::PortLeases leases_;
  std::vector<Endpoint> clients_, peers_;
  std::vector<std::unique_ptr<ChildProcess>> servers_;
};

/// tests/support/fxproxy.py before one endpoint.
class BadNetwork {
 public:
  BadNetwork(const Endpoint& to, const TempDir& directory)
      : proxy_({"/usr/bin/python3", Environ::of_process().value_or("FXPROXY", ""), "--listen", "127.0.0.1:0",
                "--to", to_string(to)},
               directory.file("proxy.log")) {
    const std::string line = proxy_.line(kLong).value();
    endpoint_ = parse_endpoint(line.substr(line.rfind(' ') + 1));
  }

  launcher::EtcdAddress address() const { return {.endpoints = {endpoint_}}; }
  std::string obey(const std::string& command) {
    proxy_.say(command);
    return proxy_.line(kLong).value();
  }

 private:
  ChildProcess proxy_;
  Endpoint endpoint_;
};

}  // namespace fleetrun::tests
