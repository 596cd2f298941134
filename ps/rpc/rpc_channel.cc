#include "ps/rpc/rpc_channel.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>

#include "ps/base/outcome.h"
#include "ps/client/channel_client.h"
#include "ps/rpc/error_status.h"
#include "ps/rpc/rpc_settings.h"
#include "ps/rpc/sealed_streams.h"
#include "runtime/base/error.h"
#include "runtime/log/log.h"

namespace fleetrun::ps {

// Set once, when the server is found to be gone.
class RpcChannel::Fate {
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

namespace {

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

}  // namespace

// One request and its answer. Owned by the RpcCall that waits for it and, until gRPC, or the link through
// shared memory, has reported its end, by itself.
struct RpcChannel::Exchange {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::vector<grpc::Slice> slices;
  std::shared_ptr<Endings> endings;
  std::shared_ptr<Fate> fate;
  std::string server;
  InFlight::Ticket ticket;  // until the call has ended
  // attend: any end of the call is the end of the connection.
  bool attending = false;
  std::mutex lost_mutex;  // guards what follows
  std::function<void()> on_lost;
  bool has_failed = false;
  bool was_lost = false;
  std::atomic<bool> ended{false};
  // Cancelled from here, because another server refused its part: says nothing about this server.
  std::atomic<bool> abandoned{false};
  std::shared_ptr<Exchange> self;
  // Over shared memory; gRPC's part of the exchange is not used then.
  bool by_memory = false;
  Message request;
  Outcome answer;

  void tell_lost() {
    std::function<void()> tell;
    {
      const std::lock_guard lock(lost_mutex);
      has_failed = true;
      tell = on_lost;
    }
    if (tell) tell();
  }

  void complete(ShmAnswer outcome) {
    answer = std::move(outcome.outcome);
    const Error* error = std::get_if<Error>(&answer);
    if (error && !abandoned && (attending || outcome.is_gone)) fate->seal(*error);
    request = {};
    was_lost = outcome.is_gone;
    ended = true;
    ticket = {};
    if (error) tell_lost();
    if (endings) endings->ended(error != nullptr);
  }

  void complete() {
    const std::shared_ptr<Exchange> keep = std::move(self);
    const bool is_ours = error_from({status.error_message(), status.error_details()}).has_value();
    if (!status.ok() && !abandoned &&
        (attending || (!is_ours && is_transport_failure(status.error_code())))) {
      fate->seal(error_of(status, server));
    }
    was_lost = !status.ok() && !is_ours && is_transport_failure(status.error_code());
    ended = true;
    ticket = {};
    if (!status.ok()) tell_lost();
    if (endings) endings->ended(!status.ok());
  }
};

struct RpcChannel::GrpcStub {
  grpc::GenericStub calls;

  explicit GrpcStub(std::shared_ptr<grpc::Channel> channel) : calls(std::move(channel)) {}
};

class RpcChannel::RpcCall : public Call {
 public:
  explicit RpcCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~RpcCall() override {
    if (exchange_->ended) return;
    exchange_->abandoned = true;
    if (!exchange_->by_memory) exchange_->context.TryCancel();
  }

  bool has_ended() const override { return exchange_->ended; }
  bool was_lost() const override { return exchange_->was_lost; }

  Reader result() override {
    if (exchange_->by_memory) {
      if (const Error* error = std::get_if<Error>(&exchange_->answer)) throw separate_copy(*error);
      return Reader(std::get<Message>(exchange_->answer).bytes());
    }
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

// The last channel of its client ends the threads, after all calls have ended.
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
  SealedStreams& streams() noexcept { return streams_; }

 private:
  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) static_cast<RpcChannel::Exchange*>(tag)->complete();
  }

  SealedStreams streams_;
  grpc::CompletionQueue queue_;
  std::thread thread_;
};

std::shared_ptr<Answers> make_answers() {
  return std::make_shared<Answers>();
}

namespace {

// The bytes without a copy; they are given back when gRPC is done with them.
grpc::ByteBuffer buffer_of(Message message) {
  auto* owner = new Message(std::move(message));
  const grpc::Slice slice(
      owner->data(), owner->size(), [](void* memory) { delete static_cast<Message*>(memory); }, owner);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ChannelArguments channel_arguments(std::chrono::milliseconds silence) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::kLongestMessage));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(silence.count() / 3));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(silence.count() / 3 * 2));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // never a request twice
  return arguments;
}

}  // namespace

RpcChannel::RpcChannel(std::uint32_t rank, const std::string& endpoint, std::shared_ptr<Answers> answers,
                       const RpcChannelOptions& options)
    : name_("server " + std::to_string(rank) + " at " + endpoint),
      endpoint_(endpoint),
      options_(options),
      answers_(std::move(answers)),
      fate_(std::make_shared<Fate>()),
      in_flight_(name_, options.limits) {}

RpcChannel::~RpcChannel() {
  if (attended_ && !attended_->by_memory) attended_->context.TryCancel();
}

void RpcChannel::use(Dial& dial) {
  link_.reset();
  stub_.reset();
  connection_ = make_incarnation();
  std::string early;  // the server is the one that waits
  if (dial.transport_kind() == TransportKind::shared_memory) {
    link_.emplace(dial.take_segment(), dial.take_connection().take_plain(early), name_,
                  ShmPatience{options_.limits.patience, options_.silence});
    return;
  }
  UniqueFd connection =
      answers_->streams().join(dial.take_connection(), early,
                               [name = name_](const std::string& why) { log::warning(name + ": " + why); });
  stub_ = std::make_unique<GrpcStub>(grpc::CreateCustomInsecureChannelFromFd(
      endpoint_, connection.release(), channel_arguments(options_.silence)));
}

std::unique_ptr<Call> RpcChannel::start(const wire::Header&, Message request,
                                        std::shared_ptr<Endings> endings) {
  fate_->check();
  auto exchange = make_exchange(std::move(endings));
  exchange->ticket = in_flight_.enter(request.size());
  fate_->check();  // what filled the room may have ended with the server
  send(exchange, std::move(request));
  return std::make_unique<RpcCall>(std::move(exchange));
}

std::unique_ptr<Call> RpcChannel::start_hello(Message hello, std::shared_ptr<Endings> endings,
                                              std::chrono::system_clock::time_point deadline) {
  auto exchange = make_exchange(std::move(endings));
  exchange->fate = std::make_shared<Fate>();
  exchange->context.set_deadline(deadline);
  send(exchange, std::move(hello));
  return std::make_unique<RpcCall>(std::move(exchange));
}

void RpcChannel::attend(Message request) {
  attended_ = make_exchange(nullptr);
  attended_->attending = true;
  send(attended_, std::move(request));
}

void RpcChannel::when_lost(std::function<void()> on_lost) {
  {
    const std::lock_guard lock(attended_->lost_mutex);
    attended_->on_lost = on_lost;
    if (!attended_->has_failed) return;
  }
  on_lost();
}

std::shared_ptr<RpcChannel::Exchange> RpcChannel::make_exchange(std::shared_ptr<Endings> endings) const {
  auto exchange = std::make_shared<Exchange>();
  exchange->endings = std::move(endings);
  exchange->fate = fate_;
  exchange->server = name_;
  return exchange;
}

void RpcChannel::send(const std::shared_ptr<Exchange>& exchange, Message request) {
  if (link_) {
    exchange->by_memory = true;
    exchange->request = std::move(request);
    return link_->send(exchange->request.bytes(),
                       [exchange](ShmAnswer answer) { exchange->complete(std::move(answer)); });
  }
  exchange->self = exchange;
  exchange->reader = stub_->calls.PrepareUnaryCall(&exchange->context, kRpcMethod,
                                                   buffer_of(std::move(request)), &answers_->queue());
  exchange->reader->StartCall();
  exchange->reader->Finish(&exchange->reply, &exchange->status, exchange.get());
}

}  // namespace fleetrun::ps
