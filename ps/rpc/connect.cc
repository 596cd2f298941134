// One gRPC channel per server, one queue and one thread for the answers of all of them. Requests are filled
// in the memory that gRPC sends from; answers are read from the pieces that gRPC received, by the thread that
// waits. A server on this host is reached through shared memory where it offers that (ps/shm/link.h).
//
// A call "attend" stays open on each channel from hello to goodbye: when it ends, the server is gone, and so
// is every later call, also when something else answers on that port by then. Nothing is ever sent twice, but where the
// server may come back (ConnectOptions::recover_within): then what it did not answer is (ps/recovering_channel.h).
#include "ps/rpc/connect.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <grpc/support/log.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>

#include "ps/channel_client.h"
#include "ps/outcome.h"
#include "ps/recovering_channel.h"
#include "ps/rpc/dial.h"
#include "ps/rpc/error_status.h"
#include "ps/rpc/session.h"
#include "ps/rpc/settings.h"
#include "ps/shm/link.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSayWhoIsMissing{3};
constexpr std::chrono::milliseconds kTryAgain{200};
constexpr std::chrono::milliseconds kLookAtHellos{20};  // while connections are still being made

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

// One request and its answer. Owned by the RpcCall that waits for it and, until gRPC, or the link through shared memory,
// has reported its end, by itself.
struct Exchange {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::vector<grpc::Slice> slices;
  std::shared_ptr<Endings> endings;
  std::shared_ptr<Fate> fate;
  std::string server;
  std::shared_ptr<ClientSession> session;  // of the connection, shared by all its calls
  CallProof proof;
  // attend: any end of the call is the end of the connection.
  bool attending = false;
  std::function<void()> on_lost;
  bool was_lost = false;
  std::atomic<bool> ended{false};
  // Cancelled from here, because another server refused its part: says nothing about this server.
  std::atomic<bool> abandoned{false};
  std::shared_ptr<Exchange> self;
  // Over shared memory; gRPC's part of the exchange is not used then.
  bool by_memory = false;
  Message request;
  Outcome answer;

  void complete(ShmAnswer outcome) {
    answer = std::move(outcome.outcome);
    const Error* error = std::get_if<Error>(&answer);
    if (error && !abandoned && (attending || outcome.is_gone)) fate->seal(*error);
    request = {};
    was_lost = outcome.is_gone;
    ended = true;
    if (error && on_lost) on_lost();
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
    if (!status.ok() && on_lost) on_lost();
    if (endings) endings->ended(!status.ok());
  }
};

class RpcCall : public Call {
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
    check_answer(pieces);
    return Reader(std::move(pieces));
  }

 private:
  void check_answer(Pieces pieces) const {
    const auto& metadata = exchange_->context.GetServerInitialMetadata();
    const auto code = metadata.find(kProofMetadata);
    if (code != metadata.end() &&
        exchange_->session->is_answer(exchange_->proof, {code->second.data(), code->second.size()}, pieces))
      return;
    throw Error(ErrorKind::network,
                exchange_->server + " did not send this answer: it was changed on its way",
                "look for what sits between this host and the server's");
  }

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

// The bytes without a copy; they are given back when gRPC is done with them.
grpc::ByteBuffer buffer_of(Message message) {
  auto* owner = new Message(std::move(message));
  const grpc::Slice slice(
      owner->data(), owner->size(), [](void* memory) { delete static_cast<Message*>(memory); }, owner);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::kLongestMessage));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // never a request twice
  return arguments;
}

class RpcChannel : public Channel {
 public:
  RpcChannel(std::uint32_t rank, const std::string& endpoint, std::shared_ptr<Answers> answers)
      : name_("server " + std::to_string(rank) + " at " + endpoint),
        endpoint_(endpoint),
        answers_(std::move(answers)),
        fate_(std::make_shared<Fate>()) {}

  ~RpcChannel() override {
    if (attended_ && !attended_->by_memory) attended_->context.TryCancel();
  }

  const std::string& endpoint() const noexcept { return endpoint_; }
  // Which connection of its client this is.
  std::uint64_t connection() const noexcept { return connection_; }

  // Takes over a connection that has proved itself.
  void use(Dial& dial) {
    link_.reset();
    stub_.reset();
    connection_ = make_incarnation();
    if (dial.way() == Way::shared_memory) {
      link_.emplace(dial.take_segment(), dial.take_connection(), name_);
      return;
    }
    session_ = std::make_shared<ClientSession>(dial.keys());
    stub_.emplace(grpc::CreateCustomInsecureChannelFromFd(endpoint_, dial.take_connection().release(),
                                                          channel_arguments()));
  }

  std::unique_ptr<Call> start(const wire::Header&, Message request,
                              std::shared_ptr<Endings> endings) override {
    fate_->check();
    auto exchange = make_exchange(std::move(endings));
    send(exchange, std::move(request));
    return std::make_unique<RpcCall>(std::move(exchange));
  }

  MessageSource messages() override { return link_ ? link_->messages() : MessageSource(); }

  // A hello that fails does not settle the channel's fate.
  std::unique_ptr<Call> start_hello(Message hello, std::shared_ptr<Endings> endings,
                                    std::chrono::system_clock::time_point deadline) {
    auto exchange = make_exchange(std::move(endings));
    exchange->fate = std::make_shared<Fate>();
    exchange->context.set_deadline(deadline);
    send(exchange, std::move(hello));
    return std::make_unique<RpcCall>(std::move(exchange));
  }

  // `on_lost` is called when the connection is, or when the server ends it.
  void attend(Message request, std::function<void()> on_lost = {}) {
    attended_ = make_exchange(nullptr);
    attended_->attending = true;
    attended_->on_lost = std::move(on_lost);
    send(attended_, std::move(request));
  }

  const std::string& name() const noexcept override { return name_; }

 private:
  std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Endings> endings) const {
    auto exchange = std::make_shared<Exchange>();
    exchange->endings = std::move(endings);
    exchange->fate = fate_;
    exchange->server = name_;
    exchange->session = session_;
    return exchange;
  }

  void send(const std::shared_ptr<Exchange>& exchange, Message request) {
    if (link_) {
      exchange->by_memory = true;
      exchange->request = std::move(request);
      return link_->send(exchange->request.bytes(),
                         [exchange](ShmAnswer answer) { exchange->complete(std::move(answer)); });
    }
    exchange->proof = session_->prove(kRpcMethod, request.bytes());
    exchange->context.AddMetadata(kProofMetadata, to_text(exchange->proof));
    exchange->self = exchange;
    exchange->reader = stub_->PrepareUnaryCall(&exchange->context, kRpcMethod, buffer_of(std::move(request)),
                                               &answers_->queue());
    exchange->reader->StartCall();
    exchange->reader->Finish(&exchange->reply, &exchange->status, exchange.get());
  }

  std::string name_, endpoint_;
  std::uint64_t connection_ = 0;
  std::shared_ptr<Answers> answers_;        // owned by all channels of the client
  std::shared_ptr<Fate> fate_;              // shared with the calls under way
  std::shared_ptr<ClientSession> session_;  // likewise
  std::optional<grpc::GenericStub> stub_;
  std::shared_ptr<Exchange> attended_;
  std::optional<ShmLink> link_;  // instead of gRPC calls
};

// Connects to all servers at once, says hello to each, and again to those that are not there yet or went away in between.
class Introduction {
 public:
  // Which servers the channels lead to, by rank.
  struct Among {
    std::uint32_t first = 0, servers = 0;
  };

  Introduction(const ClientOptions& client, std::uint64_t incarnation,
               const std::vector<std::unique_ptr<RpcChannel>>& channels, const ConnectOptions& options,
               Among among, const std::atomic<bool>* give_up = nullptr)
      : client_(client),
        incarnation_(incarnation),
        channels_(channels),
        options_(options),
        among_(among),
        give_up_(give_up),
        ways_(ways_of(options.transport)),
        started_(Clock::now()),
        rpc_deadline_(std::chrono::system_clock::now() + options.connect_timeout),
        endings_(std::make_shared<Endings>()),
        servers_(channels.size()) {}

  Welcome run() {
    const auto deadline = started_ + options_.connect_timeout;
    bool said = false;
    for (;;) {
      for (std::uint32_t s = 0; s < channels_.size(); ++s) go_on(s);
      if (missing().empty()) return welcome_;
      if (Clock::now() >= deadline || (give_up_ && *give_up_)) fail();
      if (!said && Clock::now() >= started_ + kSayWhoIsMissing) {
        const bool looks_on = client_.trainer == wire::kObserver;
        log::warning((looks_on ? "an observer" : "trainer " + std::to_string(client_.trainer)) +
                     " waits for " + missing());
        said = true;
      }
      wait(said ? deadline : std::min(deadline, started_ + kSayWhoIsMissing));
    }
  }

 private:
  struct Server {
    std::optional<Dial> dial;
    std::unique_ptr<Call> hello;
    bool known = false;
    std::size_t attempts = 0;
    std::size_t way = 0;  // of ways_, the one to try
    Clock::time_point again;
  };

  // One server, as far as it gets without waiting. Throws when it has refused for good.
  void go_on(std::uint32_t s) {
    Server& server = servers_[s];
    if (server.known) return;
    if (server.hello && server.hello->has_ended()) settle(server);
    if (server.known || server.hello) return;
    do {
      if (server.dial) continue;
      if (server.way == 0 && Clock::now() < server.again) return;
      server.again = Clock::now() + kTryAgain;
      server.dial.emplace(channels_[s]->endpoint(), channels_[s]->name(), options_.access, server.attempts,
                          ways_[server.way]);
    } while (!has_advanced(server));
    if (server.dial->has_failed()) {
      reason_ = server.dial->reason();
      server.dial.reset();
      ++server.attempts;
      server.way = 0;
    } else if (server.dial->is_connected()) {
      channels_[s]->use(*server.dial);
      server.dial.reset();
      server.way = 0;
      server.hello = channels_[s]->start_hello(
          make_hello(client_, incarnation_, among_.first + s, among_.servers, channels_[s]->connection()),
          endings_, rpc_deadline_);
    }
  }

  // False: that way is none, and the next one is to be tried, at once. Only the last way's errors count.
  bool has_advanced(Server& server) {
    const bool is_last = server.way + 1 == ways_.size();
    try {
      server.dial->advance();
      if (is_last || !server.dial->has_failed()) return true;
    } catch (const Error&) {
      if (is_last) throw;
    }
    server.dial.reset();
    ++server.way;
    return false;
  }

  static bool is_over(const Error& error) { return error.kind() != ErrorKind::network; }

  void settle(Server& server) {
    try {
      welcome_.add(static_cast<std::uint32_t>(&server - servers_.data()),
                   read_hello_answer(server.hello->result()));
      server.known = true;
    } catch (const Error& error) {
      if (is_over(error)) throw;
      reason_ = error.what();
    }
    server.hello.reset();
  }

  // Until a connection gets on, a hello has ended, somebody is to be tried again, or `until`.
  void wait(Clock::time_point until) {
    std::vector<pollfd> dials;
    bool hellos = false;
    for (const Server& server : servers_) {
      if (server.known) continue;
      hellos = hellos || server.hello;
      if (server.dial) {
        dials.push_back(server.dial->wanted());
        until = std::min(until, server.dial->deadline());
      } else if (!server.hello) {
        until = std::min(until, server.again);
      }
    }
    if (dials.empty()) {
      seen_ = endings_->wait_for_more(seen_, until);
      return;
    }
    if (hellos) until = std::min(until, Clock::now() + kLookAtHellos);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(dials.data(), dials.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  }

  std::string missing() const {
    std::string names;
    for (std::size_t s = 0; s < channels_.size(); ++s) {
      if (!servers_[s].known) names += (names.empty() ? "" : ", ") + channels_[s]->name();
    }
    return names;
  }

  [[noreturn]] void fail() const {
    throw Error(ErrorKind::network,
                "no answer within " + std::to_string(options_.connect_timeout.count()) + " ms from " +
                    missing() + (reason_.empty() ? "" : " (" + reason_ + ")"),
                "check that the servers run and that their endpoints can be reached from here");
  }

  const ClientOptions& client_;
  std::uint64_t incarnation_;
  const std::vector<std::unique_ptr<RpcChannel>>& channels_;
  const ConnectOptions& options_;
  Among among_;
  const std::atomic<bool>* give_up_;
  std::vector<Way> ways_;
  Clock::time_point started_;
  std::chrono::system_clock::time_point rpc_deadline_;
  std::shared_ptr<Endings> endings_;  // shared with the hellos
  std::size_t seen_ = 0;
  Welcome welcome_;
  std::vector<Server> servers_;
  std::string reason_;
};

// Channels to all servers that have accepted a hello of `client`.
struct Introduced {
  std::uint64_t incarnation;
  std::shared_ptr<Answers> answers;  // shared by the channels
  std::vector<std::unique_ptr<RpcChannel>> channels;
  Welcome welcome;

  Introduced(const std::vector<std::string>& endpoints, const ClientOptions& client,
             const ConnectOptions& options)
      : incarnation(client.identity != 0 ? client.identity : make_incarnation()) {
    if (endpoints.empty()) throw Error(ErrorKind::config, "no parameter servers to connect to");
    // gRPC's own lines would repeat, in other words, what our errors say.
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
    answers = std::make_shared<Answers>();
    const auto servers = static_cast<std::uint32_t>(endpoints.size());
    for (std::uint32_t rank = 0; rank < servers; ++rank)
      channels.push_back(std::make_unique<RpcChannel>(rank, endpoints[rank], answers));
    welcome = Introduction(client, incarnation, channels, options, {0, servers}).run();
  }

  std::vector<std::unique_ptr<Channel>> take_channels() {
    std::vector<std::unique_ptr<Channel>> taken;
    for (auto& channel : channels) taken.push_back(std::move(channel));
    return taken;
  }
};

// One of a client's servers, to be connected to again.
struct Known {
  std::uint32_t rank;
  std::uint32_t servers;
  std::string endpoint;
  ClientOptions client;
  ConnectOptions options;
  std::uint64_t incarnation;
  std::shared_ptr<Answers> answers;  // shared by the client's channels
  std::uint64_t server;              // wire::HelloAnswer::server

  void attend(RpcChannel& channel, std::function<void()> on_lost) const {
    const wire::Header header{wire::Method::attend, client.trainer, 0,
                              incarnation,          client.epoch,   channel.connection()};
    channel.attend(wire::draft(header, 0).message, std::move(on_lost));
  }

  std::unique_ptr<Channel> connect_again(std::function<void()> on_lost,
                                         const std::atomic<bool>& give_up) const {
    ConnectOptions patient = options;
    patient.connect_timeout = options.recover_within;
    std::vector<std::unique_ptr<RpcChannel>> one;
    one.push_back(std::make_unique<RpcChannel>(rank, endpoint, answers));
    const std::string name = one[0]->name();
    log::warning("trainer " + std::to_string(client.trainer) + " has lost " + name +
                 ", and waits for it to come back");
    const Welcome welcome = Introduction(client, incarnation, one, patient, {rank, servers}, &give_up).run();
    if (welcome.servers.at(0) != server) {
      throw Error(ErrorKind::data, name + " was started again without what it had",
                  "start the job again; --ps_checkpoint DIR keeps it");
    }
    attend(*one[0], std::move(on_lost));
    log::info("trainer " + std::to_string(client.trainer) + " goes on with " + name);
    return std::move(one[0]);
  }
};

std::unique_ptr<Channel> recovering(Known known, std::unique_ptr<RpcChannel> channel) {
  const std::string name = channel->name();
  const auto first = [&](std::function<void()> on_lost) -> std::unique_ptr<Channel> {
    known.attend(*channel, std::move(on_lost));
    return std::move(channel);
  };
  return std::make_unique<RecoveringChannel>(
      name, first, [known](std::function<void()> on_lost, const std::atomic<bool>& give_up) {
        return known.connect_again(std::move(on_lost), give_up);
      });
}

}  // namespace

std::unique_ptr<Client> connect(const std::vector<std::string>& endpoints, const ClientOptions& client,
                                const ConnectOptions& options) {
  check_tables(client.tables);
  Introduced introduced(endpoints, client, options);
  const auto servers = static_cast<std::uint32_t>(endpoints.size());
  std::vector<std::unique_ptr<Channel>> channels;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    Known known{rank,
                servers,
                endpoints[rank],
                client,
                options,
                introduced.incarnation,
                introduced.answers,
                introduced.welcome.servers[rank]};
    std::unique_ptr<RpcChannel> channel = std::move(introduced.channels[rank]);
    if (options.recover_within.count() > 0) {
      channels.push_back(recovering(std::move(known), std::move(channel)));
    } else {
      known.attend(*channel, {});
      channels.push_back(std::move(channel));
    }
  }
  return make_channel_client(client, introduced.incarnation, std::move(channels), introduced.welcome);
}

Observer observe(const std::vector<std::string>& endpoints, const ConnectOptions& options) {
  const ClientOptions observer = observer_options();
  Introduced introduced(endpoints, observer, options);
  return make_observer(observer, introduced.incarnation, introduced.take_channels());
}

}  // namespace fleetrun::ps
