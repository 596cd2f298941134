// One gRPC channel per server, one queue and one thread for the answers of all of them. Requests are filled
// in the memory that gRPC sends from; answers are read from the pieces that gRPC received, by the thread that
// waits.
//
// A call "attend" stays open on each channel from hello to goodbye: when it ends, the server is gone, and so
// is every later call, also when something else answers on that port by then. Nothing is ever sent twice.
#include "ps/rpc/connect.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include "ps/channel_client.h"
#include "ps/outcome.h"
#include "ps/rpc/error_status.h"
#include "ps/rpc/settings.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSayWhoIsMissing{3};
constexpr std::chrono::milliseconds kHelloAgain{200};

// Set once, when the server is found to be gone.
class Fate {
 public:
  void seal(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  void check() const {
    const std::lock_guard lock(mutex_);
    if (error_) throw separate_copy(*error_);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

bool is_transport_failure(grpc::StatusCode code) noexcept {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::CANCELLED ||
         code == grpc::StatusCode::DEADLINE_EXCEEDED;
}

Error error_of(const grpc::Status& status, const std::string& server) {
  if (auto error = error_from({status.error_message(), status.error_details()})) return *error;
  if (is_transport_failure(status.error_code())) {
    return Error(ErrorKind::network, server + " is gone: " + status.error_message(),
                 "its own log says why; restart the job");
  }
  return Error(ErrorKind::network, server + " refused a call: " + status.error_message());
}

// One request and its answer. Owned by the RpcCall that waits for it and, until gRPC has reported its end, by
// itself.
struct Exchange {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::vector<grpc::Slice> slices;
  std::shared_ptr<Endings> endings;
  std::shared_ptr<Fate> fate;
  std::string server;
  // attend: any end of the call is the end of the connection.
  bool attending = false;
  std::atomic<bool> ended{false};
  // Cancelled from here, because another server refused its part: says nothing about this server.
  std::atomic<bool> abandoned{false};
  std::shared_ptr<Exchange> self;

  void complete() {
    const std::shared_ptr<Exchange> keep = std::move(self);
    const bool is_ours = error_from({status.error_message(), status.error_details()}).has_value();
    if (!status.ok() && !abandoned &&
        (attending || (!is_ours && is_transport_failure(status.error_code())))) {
      fate->seal(error_of(status, server));
    }
    ended = true;
    if (endings) endings->ended(!status.ok());
  }
};

class RpcCall : public Call {
 public:
  explicit RpcCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~RpcCall() override {
    if (exchange_->ended) return;
    exchange_->abandoned = true;
    exchange_->context.TryCancel();
  }

  bool has_ended() const override { return exchange_->ended; }

  Reader result() override {
    if (!exchange_->status.ok()) throw error_of(exchange_->status, exchange_->server);
    if (!exchange_->reply.Dump(&exchange_->slices).ok()) {
      throw Error(ErrorKind::network, exchange_->server + " sent an answer that cannot be read");
    }
    std::vector<std::span<const std::byte>> pieces;
    pieces.reserve(exchange_->slices.size());
    for (const grpc::Slice& slice : exchange_->slices) {
      pieces.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
    }
    return Reader(std::move(pieces));
  }

 private:
  std::shared_ptr<Exchange> exchange_;
};

// Takes the ends of calls from gRPC.
//
// Owned by the channels of one client; the last one ends the thread, after all calls have ended.
class Answers {
 public:
  Answers() : thread_([this] { run(); }) {}
  ~Answers() {
    queue_.Shutdown();
    thread_.join();
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  grpc::CompletionQueue& queue() noexcept { return queue_; }

 private:
  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) static_cast<Exchange*>(tag)->complete();
  }

  grpc::CompletionQueue queue_;
  std::thread thread_;
};

grpc::ByteBuffer buffer_of(Message message) {
  const std::size_t size = message.size();
  std::byte* bytes = message.release();
  const grpc::Slice slice(
      bytes, size, [](void* memory) { delete[] static_cast<std::byte*>(memory); }, bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::kLongestMessage));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // This one is how long an attempt may take, not a pause.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  // Never a proxy between the hosts of a job, never a request twice, never a connection shared by two
  // clients.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return arguments;
}

class RpcChannel : public Channel {
 public:
  RpcChannel(std::uint32_t rank, const std::string& endpoint, std::shared_ptr<Answers> answers)
      : name_("server " + std::to_string(rank) + " at " + endpoint),
        answers_(std::move(answers)),
        fate_(std::make_shared<Fate>()),
        stub_(grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), channel_arguments())) {}

  ~RpcChannel() override {
    if (attended_) attended_->context.TryCancel();
  }

  std::unique_ptr<Call> start(const wire::Header&, Message request,
                              std::shared_ptr<Endings> endings) override {
    fate_->check();
    auto exchange = make_exchange(std::move(endings));
    send(exchange, std::move(request));
    return std::make_unique<RpcCall>(std::move(exchange));
  }

  // Waits for the server to come up, until the deadline; a hello that fails does not settle the channel's
  // fate.
  std::unique_ptr<Call> start_hello(Message hello, std::shared_ptr<Endings> endings,
                                    std::chrono::system_clock::time_point deadline) {
    auto exchange = make_exchange(std::move(endings));
    exchange->fate = std::make_shared<Fate>();
    exchange->context.set_wait_for_ready(true);
    exchange->context.set_deadline(deadline);
    send(exchange, std::move(hello));
    return std::make_unique<RpcCall>(std::move(exchange));
  }

  void attend(Message request) {
    attended_ = make_exchange(nullptr);
    attended_->attending = true;
    send(attended_, std::move(request));
  }

  const std::string& name() const noexcept override { return name_; }

 private:
  std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Endings> endings) const {
    auto exchange = std::make_shared<Exchange>();
    exchange->endings = std::move(endings);
    exchange->fate = fate_;
    exchange->server = name_;
    return exchange;
  }

  void send(const std::shared_ptr<Exchange>& exchange, Message request) {
    exchange->self = exchange;
    exchange->reader = stub_.PrepareUnaryCall(&exchange->context, kRpcMethod, buffer_of(std::move(request)),
                                              &answers_->queue());
    exchange->reader->StartCall();
    exchange->reader->Finish(&exchange->reply, &exchange->status, exchange.get());
  }

  std::string name_;
  std::shared_ptr<Answers> answers_;  // owned by all channels of the client
  std::shared_ptr<Fate> fate_;        // shared with the calls under way
  grpc::GenericStub stub_;
  std::shared_ptr<Exchange> attended_;
};

// Says hello to all servers at once and again to those that went away in between.
class Introduction {
 public:
  Introduction(const ClientOptions& client, std::uint64_t incarnation,
               const std::vector<std::unique_ptr<RpcChannel>>& channels, std::chrono::milliseconds timeout)
      : client_(client),
        incarnation_(incarnation),
        channels_(channels),
        started_(Clock::now()),
        timeout_(timeout),
        rpc_deadline_(std::chrono::system_clock::now() + timeout),
        endings_(std::make_shared<Endings>()),
        calls_(channels.size()),
        known_(channels.size(), false),
        again_(channels.size()) {}

  void run() {
    const auto deadline = started_ + timeout_;
    bool said = false;
    std::size_t seen = 0;
    for (;;) {
      const bool pause = start_missing();
      if (missing().empty()) return;
      if (Clock::now() >= deadline) fail();
      if (!said && Clock::now() >= started_ + kSayWhoIsMissing) {
        log::warning("trainer " + std::to_string(client_.trainer) + " waits for " + missing());
        said = true;
      }
      auto until = said ? deadline : std::min(deadline, started_ + kSayWhoIsMissing);
      if (pause) until = std::min(until, Clock::now() + kHelloAgain);
      seen = endings_->wait_for_more(seen, until);
    }
  }

 private:
  // Says the hellos that are due; true when one that failed is to be said again after a pause.
  bool start_missing() {
    bool pause = false;
    for (std::uint32_t s = 0; s < channels_.size(); ++s) {
      if (known_[s] || (calls_[s] && (!calls_[s]->has_ended() || settle(s)))) continue;
      if (Clock::now() < again_[s]) {
        pause = true;
        continue;
      }
      again_[s] = Clock::now() + kHelloAgain;
      const auto servers = static_cast<std::uint32_t>(channels_.size());
      calls_[s] =
          channels_[s]->start_hello(make_hello(client_, incarnation_, s, servers), endings_, rpc_deadline_);
    }
    return pause;
  }

  // True when the server has accepted; throws when it has refused.
  bool settle(std::uint32_t s) {
    try {
      static_cast<void>(calls_[s]->result());
      known_[s] = true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::network) throw;
      reason_ = error.what();
    }
    return known_[s];
  }

  std::string missing() const {
    std::string names;
    for (std::size_t s = 0; s < channels_.size(); ++s) {
      if (!known_[s]) names += (names.empty() ? "" : ", ") + channels_[s]->name();
    }
    return names;
  }

  [[noreturn]] void fail() const {
    throw Error(ErrorKind::network,
                "no answer within " + std::to_string(timeout_.count()) + " ms from " + missing() +
                    (reason_.empty() ? "" : " (" + reason_ + ")"),
                "check that the servers run and that their endpoints can be reached from here");
  }

  const ClientOptions& client_;
  std::uint64_t incarnation_;
  const std::vector<std::unique_ptr<RpcChannel>>& channels_;
  Clock::time_point started_;
  std::chrono::milliseconds timeout_;
  std::chrono::system_clock::time_point rpc_deadline_;
  std::shared_ptr<Endings> endings_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<bool> known_;
  std::vector<Clock::time_point> again_;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Client> connect(const std::vector<std::string>& endpoints, const ClientOptions& client,
                                const ConnectOptions& options) {
  check_tables(client.tables);
  if (endpoints.empty()) throw Error(ErrorKind::config, "no parameter servers to connect to");
  // gRPC's own lines would repeat, in other words, what our errors say.
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  const std::uint64_t incarnation = make_incarnation();
  const auto answers = std::make_shared<Answers>();
  std::vector<std::unique_ptr<RpcChannel>> channels;
  for (std::uint32_t rank = 0; rank < endpoints.size(); ++rank) {
    channels.push_back(std::make_unique<RpcChannel>(rank, endpoints[rank], answers));
  }
  Introduction(client, incarnation, channels, options.connect_timeout).run();
  std::vector<std::unique_ptr<Channel>> ready;
  for (auto& channel : channels) {
    const wire::Header header{wire::Method::attend, client.trainer, 0, incarnation};
    channel->attend(wire::draft(header, 0).message);
    ready.push_back(std::move(channel));
  }
  return make_channel_client(client, incarnation, std::move(ready));
}

}  // namespace fleetrun::ps
