// Somebody who sits between a client and its server, and changes what passes.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/connect/authenticating_acceptor.h"

namespace fleetrun::tests {

inline UniqueFd connect_socket(const std::string& endpoint) {
  UniqueFd file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(file.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("nobody listens at " + endpoint);
  return file;
}

class Meddler {
 public:
  /// What it does to bytes on their way; `before`: how many have passed that way. False: it hangs up then.
  using Change = std::function<bool(std::string& bytes, std::size_t before)>;

  static bool leave(std::string&, std::size_t) { return true; }

  Meddler(const std::string& server, Change to_server, Change to_client)
      : changes_{std::move(to_server), std::move(to_client)},
        listener_(fleetrun::listen_at("127.0.0.1:0", false, "meddler")),
        thread_([this, server] { run(server); }) {}
  ~Meddler() {
    stop_ = true;
    thread_.join();
  }
  Meddler(const Meddler&) = delete;
  Meddler& operator=(const Meddler&) = delete;

  const std::string& endpoint() const { return listener_.endpoint; }
  /// How many bytes have passed to the server, and to the client.
  std::size_t passed(bool to_client) const { return passed_[to_client]; }

 private:
  void run(const std::string& server) {
    std::array<UniqueFd, 2> ends;  // towards the client, and the server
    while (!stop_) {
      std::array<pollfd, 3> watched{{{listener_.socket.value(), POLLIN, 0},
                                     {ends[0].value(), POLLIN, 0},
                                     {ends[1].value(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), 10) <= 0) continue;
      if (watched[0].revents != 0) {
        ends[0].reset(::accept(listener_.socket.value(), nullptr, nullptr));
        ends[1] = connect_socket(server);
        continue;
      }
      const std::size_t from = watched[1].revents != 0 ? 0 : 1;
      if (!forward(ends[from], ends[1 - from], from)) ends = {};
    }
  }
  bool forward(const UniqueFd& in, const UniqueFd& out, std::size_t direction) {
    std::string bytes(1 << 16, '\0');
    const ssize_t count = ::recv(in.value(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    bytes.resize(static_cast<std::size_t>(count));
    const bool goes_on = changes_[direction](bytes, passed_[direction]);
    passed_[direction] += static_cast<std::size_t>(count);
    const ssize_t sent = ::send(out.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return goes_on && sent == static_cast<ssize_t>(bytes.size());
  }

  std::array<Change, 2> changes_;
  Listener listener_;
  std::atomic<bool> stop_{false};
  std::array<std::atomic<std::size_t>, 2> passed_{};
  std::thread thread_;
};

/// What somebody in the path does at one byte, once.
enum class Tampering { flip, insert, repeat, cut };

/// Lets a client and a new server of `make_server` meet by way of a Meddler who tampers with one byte: once
/// for each kind of tampering, way and byte. In short runs it is every 97th byte; FLEETRUN_EVERY_BYTE=1 means
/// each. `session` gets the server and where it seems to be, may throw an Error, and checks the rest itself.
/// Says how many sessions there were.
template <class MakeServer, class Session>
void tamper_everywhere(MakeServer make_server, Session session) {
  const std::size_t step = std::getenv("FLEETRUN_EVERY_BYTE") ? 1 : 97;
  std::array<std::size_t, 2> bytes{};
  {
    const auto server = make_server();
    const Meddler honest(server->endpoint(), Meddler::leave, Meddler::leave);
    session(*server, honest.endpoint());
    bytes = {honest.passed(false), honest.passed(true)};
  }
  std::size_t sessions = 0;
  for (const bool to_client : {false, true})
    for (const Tampering how : {Tampering::flip, Tampering::insert, Tampering::repeat, Tampering::cut})
      for (std::size_t at = 0; at < bytes[to_client]; at += step) {
        ++sessions;
        CAPTURE(to_client);
        CAPTURE(static_cast<int>(how));
        CAPTURE(at);
        bool is_done = false;
        const Meddler::Change change = [&](std::string& piece, std::size_t before) {
          if (is_done || at < before || at >= before + piece.size()) return true;
          is_done = true;
          const std::size_t place = at - before;
          if (how == Tampering::flip) piece[place] = static_cast<char>(piece[place] ^ 1);
          if (how == Tampering::insert) piece.insert(place, 1, '\x17');
          if (how == Tampering::repeat) piece.insert(place, piece.substr(0, place + 1));
          if (how == Tampering::cut) piece.resize(place);
          return how != Tampering::cut;
        };
        const auto server = make_server();
        const Meddler meddler(server->endpoint(), to_client ? Meddler::leave : change,
                              to_client ? change : Meddler::leave);
        try {
          session(*server, meddler.endpoint());
        } catch (const Error&) {
          // It was found out.
        }
      }
  MESSAGE(sessions, " sessions of ", bytes[0], " bytes to the server and ", bytes[1], " to the client");
}

}  // namespace fleetrun::tests
