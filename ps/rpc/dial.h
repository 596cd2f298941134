// One attempt to connect to a server by one way and to prove the job's secret to each other
// (runtime/connect/connector.h). Does not block: the caller polls.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "ps/rpc/access.h"
#include "ps/rpc/transport.h"
#include "ps/shm/segment.h"
#include "runtime/connect/connector.h"

namespace fleetrun::ps {

class Dial {
 public:
  /// Begins; a name is looked up first, which may take its time. `name` is how errors call the server:
  /// "server 0 at 127.0.0.1:6180". Of an endpoint with several addresses attempt n tries the n-th.
  Dial(const std::string& endpoint, const std::string& name, const Access& access, std::size_t attempt,
       TransportKind transport_kind = TransportKind::tcp);

  /// What to wait for while it is neither connected nor failed.
  pollfd wanted() const noexcept { return connector_.wanted(); }
  std::chrono::steady_clock::time_point deadline() const noexcept { return connector_.deadline(); }
  /// Goes on as far as it gets without waiting.
  /// Throws: Error(config) when the server has another secret, or another fleetrun, than this process.
  void advance();

  bool is_connected() const noexcept {
    return connector_.is_connected() && (transport_kind_ != TransportKind::shared_memory || segment_);
  }
  bool has_failed() const noexcept { return connector_.has_failed(); }
  /// Why it failed; empty when nothing is worth saying (nobody listens there yet).
  const std::string& reason() const noexcept { return connector_.reason(); }
  bool was_cut_off() const noexcept { return connector_.was_cut_off(); }

  TransportKind transport_kind() const noexcept { return transport_kind_; }
  SealedSocket take_connection() { return connector_.take_connection(); }
  /// Of a connection by shared memory.
  ShmSegment take_segment() { return std::move(*segment_); }

 private:
  void receive_segment();

  TransportKind transport_kind_;
  Connector connector_;
  std::optional<ShmSegment> segment_;
};

}  // namespace fleetrun::ps
