// A client's connection to one server: over gRPC, or, where the server offers that, through the memory that
// both share (ps/shm/link.h). Requests are filled in the memory that gRPC sends from; answers are read from
// the pieces that gRPC received, by the thread that waits.
//
// A call "attend" stays open from hello to goodbye: when it ends, the server is gone, and so is every later
// call, also when something else answers on that port by then. Nothing is ever sent twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ps/base/server_channel.h"
#include "ps/client/in_flight.h"
#include "ps/rpc/dial.h"
#include "ps/shm/link.h"

namespace fleetrun::ps {

/// Takes the ends of calls from gRPC, on a thread of its own. Owned by the channels of one client.
class Answers;
std::shared_ptr<Answers> make_answers();

struct RpcChannelOptions {
  InFlight::Limits limits = {};
  /// A server that shows no sign of life for so long is gone.
  std::chrono::milliseconds silence{15000};
};

/// Threads: start() and messages() may be called from several threads at once, after use() and the hello.
class RpcChannel final : public Channel {
 public:
  RpcChannel(std::uint32_t rank, const std::string& endpoint, std::shared_ptr<Answers> answers,
             const RpcChannelOptions& options);
  ~RpcChannel() override;

  /// Takes over a connection that has proved itself.
  void use(Dial& dial);
  /// Which connection of its client this is.
  std::uint64_t connection() const noexcept { return connection_; }
  const std::string& endpoint() const noexcept { return endpoint_; }
  const std::string& name() const noexcept override { return name_; }

  /// A hello that fails does not settle the channel's fate.
  std::unique_ptr<Call> start_hello(Message hello, std::shared_ptr<Endings> endings,
                                    std::chrono::system_clock::time_point deadline);
  /// The server hears of it from now on when this process goes.
  void attend(Message request);
  /// `on_lost` is called when the connection is, or when the server ends it;
  /// at once where it was already. After attend().
  void when_lost(std::function<void()> on_lost);

  /// Throws: Error(network) when the server is gone, Error(timeout)
  /// when there is no room for more requests to it.
  std::unique_ptr<Call> start(const wire::Header& header, Message request,
                              std::shared_ptr<Endings> endings) override;
  MessageSource messages() override { return link_ ? link_->messages() : MessageSource(); }

 private:
  class Fate;
  class RpcCall;
  struct Exchange;
  struct GrpcStub;
  friend class Answers;
  std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Endings> endings) const;
  void send(const std::shared_ptr<Exchange>& exchange, Message request);

  std::string name_, endpoint_;
  RpcChannelOptions options_;
  std::uint64_t connection_ = 0;
  std::shared_ptr<Answers> answers_;  // owned by all channels of the client
  std::shared_ptr<Fate> fate_;        // shared with the calls under way
  InFlight in_flight_;
  std::unique_ptr<GrpcStub> stub_;
  std::shared_ptr<Exchange> attended_;
  std::optional<ShmLink> link_;  // instead of gRPC calls
};

}  // namespace fleetrun::ps
