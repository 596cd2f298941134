// What lies between gRPC and connections whose bytes are in records: gRPC has one end of a pair of local
// sockets, and a thread here moves bytes between the other end and the network, sealed on the one side and
// opened on the other. So no byte reaches gRPC that the other process did not send.
//
// Where gRPC takes nothing, nothing is received: a connection has 64 KiB here at most, beside what waits in
// the kernel. Connections are shared out to a few threads, which begin with the first connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "runtime/connect/sealed_socket.h"

namespace fleetrun::ps {

class SealedStreams {
 public:
  /// `refused` is called, on a thread of this, with why a connection was given up that brought bytes which
  /// the other end did not send.
  using Refused = std::function<void(const std::string& why)>;

  SealedStreams();
  /// Sends what waits, for a second at most, once gRPC has closed its ends.
  ~SealedStreams();
  SealedStreams(const SealedStreams&) = delete;
  SealedStreams& operator=(const SealedStreams&) = delete;

  /// gRPC's end of the connection. Of one that is not sealed it is the connection itself; `early` is what
  /// came on it with the proof. Throws: Error(host).
  UniqueFd join(SealedSocket socket, std::string& early, Refused refused);

 private:
  class Worker;
  std::unique_ptr<Worker[]> workers_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace fleetrun::ps
