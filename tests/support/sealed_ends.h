// Both ends of a sealed connection, in one process.
#pragma once

#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/connect/sealed_socket.h"
#include "runtime/secure/record_layer.h"

namespace fleetrun::tests {

inline constexpr std::string_view kTestKey = "0123456789abcdefghijklmnopqrstuv";

struct RecordEnds {
  RecordLayer client, server;
};

/// Until neither says anything any more, in pieces of so many bytes. Throws as the ends do.
inline void establish(RecordEnds& ends, std::size_t piece = 100'000) {
  const auto pass_on = [piece](RecordLayer& to, std::string& bytes, std::string& answer) {
    std::string_view rest = bytes;
    do {
      std::string_view part = rest.substr(0, piece);
      const std::size_t size = part.size();
      to.establish(part, answer);
      rest.remove_prefix(size - part.size());
    } while (!rest.empty() && !to.established());
    bytes.clear();
  };
  std::string to_client, to_server;
  for (int i = 0; i < 3 && !(ends.client.established() && ends.server.established()); ++i) {
    pass_on(ends.client, to_client, to_server);
    pass_on(ends.server, to_server, to_client);
  }
}

inline RecordEnds established_ends(std::uint64_t records_of_key = RecordLayer::kRecordsOfKey) {
  RecordEnds ends{RecordLayer(Side::client, kTestKey, records_of_key),
                  RecordLayer(Side::server, kTestKey, records_of_key)};
  establish(ends);
  return ends;
}

/// A pair of connected sockets.
inline std::array<UniqueFd, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error("socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace fleetrun::tests
