// gRPC's asynchronous generic service: one method, messages as bytes, no generated code. Two or more threads
// take events from one queue; a call that waits for other trainers holds no thread. Saving and loading, which
// may take long, have a thread of their own, so that calls and keepalive pings go on meanwhile.
//
// Connections come from the authenticating acceptor; between hosts their bytes are sealed
// (ps/rpc/sealed_streams).
//
// A call: requested -> read -> handled by ps::Server -> finished. It is freed when it is finished and gRPC
// has reported its end, which also tells whether the peer went away ("attend": the trainer is lost).
#include "ps/rpc/rpc_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include "ps/base/background_queue.h"
#include "ps/rpc/error_status.h"
#include "ps/rpc/patience.h"
#include "ps/rpc/rpc_settings.h"
#include "ps/rpc/sealed_streams.h"
#include "ps/shm/host.h"
#include "ps/watch/metrics_file.h"
#include "runtime/base/error.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "runtime/log/log.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kArmedCalls = 16;
constexpr std::chrono::seconds kFinishCalls{5};
constexpr std::chrono::seconds kHearGoodbyes{5};

// How many calls are awaited or under way, so that the queue is closed after the last.
class LiveCalls {
 public:
  /// Calls `make`, which awaits one more call: not while gRPC's server shuts down, which may forget it.
  template <class Make>
  void await_one(Make make) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    ++count_;
    make();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void remove() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
  bool closed_ = false;
};

grpc::Status status_of(const Error& error) {
  ErrorTexts texts = to_texts(error);
  return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, std::move(texts.message),
                      std::move(texts.details));
}

// The bytes without a copy; gRPC frees them.
grpc::ByteBuffer buffer_of(Message message) {
  const std::size_t size = message.size();
  if (size == 0) {
    const grpc::Slice nothing;
    return grpc::ByteBuffer(&nothing, 1);
  }
  std::byte* bytes = message.release();
  const grpc::Slice slice(
      bytes, size, [](void* memory) { delete[] static_cast<std::byte*>(memory); }, bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// What every call needs; outlives them all.
struct Service {
  Server& server;
  grpc::AsyncGenericService& generic;
  grpc::ServerCompletionQueue& queue;
  BackgroundQueue& slow;
  LiveCalls& live;
  Rejections& rejections;
  std::function<void(const wire::Header&)> lost;
};

class ServerCall;

struct Event {
  ServerCall* call;
  void (ServerCall::*handle)(bool ok);
};

class ServerCall {
 public:
  // Waits for the next call to come in; frees itself after that call, or when the server shuts down.
  // It counts from here on: a call that has come in, and that no thread has looked at yet, needs the queue.
  static void arm(const Service& service) {
    service.live.await_one([&] { new ServerCall(service); });
  }

 private:
  explicit ServerCall(const Service& service) : service_(service), stream_(&context_) {
    context_.AsyncNotifyWhenDone(&done_);
    service_.generic.RequestCall(&context_, &stream_, &service_.queue, &service_.queue, &requested_);
  }

  void on_requested(bool ok) {
    if (!ok) return free_itself();
    arm(service_);
    if (context_.method() != kRpcMethod) {
      return stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, "not a method of a parameter server"},
                            &finished_);
    }
    stream_.Read(&request_, &read_);
  }

  void on_read(bool ok) {
    if (!ok || !request_.Dump(&slices_).ok()) {
      return stream_.Finish({grpc::StatusCode::INVALID_ARGUMENT, "a call without a request"}, &finished_);
    }
    std::vector<std::span<const std::byte>> pieces;
    pieces.reserve(slices_.size());
    for (const grpc::Slice& slice : slices_) {
      pieces.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
    }
    Reader body(std::move(pieces));
    try {
      header_ = wire::read_header(body);
    } catch (const Error& error) {
      return stream_.Finish(status_of(error), &finished_);
    }
    if (service_.server.is_stale(header_)) {
      service_.rejections.note("trainer " + std::to_string(header_.trainer),
                               std::string(wire::to_string(header_.method)) + " of stale epoch " +
                                   std::to_string(header_.generation));
    }
    if (header_.method == wire::Method::attend) {
      attending_ = true;
      if (cancelled_) service_.lost(header_);
    }
    handle(header_, std::move(body));
  }

  // `header` is a copy: the call may have been answered, and be gone, before this returns.
  void handle(const wire::Header header, Reader body) {
    Server& server = service_.server;
    const auto work = [this, &server, header](Reader rest) {
      server.handle(header, std::move(rest), [this](Outcome outcome) { respond(std::move(outcome)); });
    };
    if (is_slow(header.method)) {
      service_.slow.add([work, body] { work(body); });
    } else {
      work(std::move(body));
    }
  }

  void respond(Outcome outcome) {
    if (const Error* error = std::get_if<Error>(&outcome))
      return stream_.Finish(status_of(*error), &finished_);
    Message& message = std::get<Message>(outcome);
    stream_.WriteAndFinish(buffer_of(std::move(message)), grpc::WriteOptions(), grpc::Status::OK, &finished_);
  }

  void on_finished(bool) { release(); }

  // May come before on_read(): whichever is second sees what the first one has noted.
  void on_done(bool) {
    cancelled_ = context_.IsCancelled();
    if (cancelled_ && attending_) service_.lost(header_);
    release();
  }

  // The second of finished and done frees the call.
  void release() {
    if (endings_.fetch_add(1) > 0) free_itself();
  }

  void free_itself() {
    LiveCalls& live = service_.live;
    delete this;
    live.remove();
  }

  Service service_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer request_;
  std::vector<grpc::Slice> slices_;
  wire::Header header_;
  std::atomic<bool> attending_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> endings_{0};
  Event requested_{this, &ServerCall::on_requested};
  Event read_{this, &ServerCall::on_read};
  Event finished_{this, &ServerCall::on_finished};
  Event done_{this, &ServerCall::on_done};
};

void set_up(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(wire::kLongestMessage));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCalls);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  const auto pages = static_cast<std::size_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L));
  builder.SetResourceQuota(grpc::ResourceQuota("parameter server")
                               .Resize(pages / 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Trainers ping every kKeepaliveMs, also while they wait; who pings much more often is hung up on.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 5);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kPingStrikes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

}  // namespace

struct RpcServer::State {
  std::string endpoint;
  std::uint32_t rank;
  RpcServerOptions rpc;
  int wake;  // an eventfd that is readable once the server has a reason to end
  std::chrono::milliseconds recover_within;
  std::mutex failure_mutex;
  std::optional<Error> failure;
  Server server;
  BackgroundQueue slow;
  LiveCalls live;
  Rejections rejections;
  SealedStreams streams;
  grpc::AsyncGenericService generic;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> listening;
  std::vector<std::thread> threads;
  std::optional<ShmHost> shared_memory;
  std::optional<AuthenticatingAcceptor> authenticating_acceptor;
  std::optional<MetricsFile> metrics_file;
  std::once_flag shut_down_once;
  bool is_cut_off = false;
  std::optional<Patience> patience;  // where trainers may come back

  State(const ServerOptions& options, const std::string& wanted, RpcServerOptions in_rpc)
      : endpoint(wanted),
        rank(options.rank),
        rpc(std::move(in_rpc)),
        wake(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "serve parameters")),
        recover_within(options.recover_within),
        server(
            options, [this] { ring(); },
            [this](const Error& error, bool is_fatal) { report(error, is_fatal); }),
        rejections("server " + std::to_string(options.rank)) {}
  ~State() { ::close(wake); }

  // One system call, so that it may run in a signal handler.
  void ring() const noexcept {
    const int before = errno;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake, &one, sizeof one));
    errno = before;
  }

  void report(const Error& error, bool is_fatal) {
    log::warning("server " + std::to_string(rank) + ": " + error.what());
    if (!is_fatal) return;
    const std::lock_guard lock(failure_mutex);
    failure = error;
    ring();
  }

  void lose(const wire::Header& attended) {
    if (!server.lost(attended.trainer, attended.incarnation, attended.sequence)) return;
    log::info("server " + std::to_string(rank) + " waits for trainer " + std::to_string(attended.trainer) +
              " to come back");
    give_time({attended.trainer, attended.incarnation}, attended.sequence);
  }

  void give_time(const ClientId& client, std::uint64_t connection) {
    patience->after(recover_within, [this, client, connection] {
      server.give_up(client.trainer, client.incarnation, connection);
    });
  }

  // What a server that was started again has found, and whom it waits for.
  void go_on() {
    const auto& recovery = server.recovery();
    if (!recovery) return;
    if (recovery->has_moved)
      log::info("server " + std::to_string(rank) + " has moved here, with checkpoint " +
                std::to_string(recovery->checkpoint) + " and " + std::to_string(recovery->records) +
                " records of its log");
    else if (recovery->standby.empty())
      log::info("server " + std::to_string(rank) + " goes on from checkpoint " +
                std::to_string(recovery->checkpoint) + " and " + std::to_string(recovery->records) +
                " records of its log");
    else
      log::info("server " + std::to_string(rank) + " goes on from its standby on " + recovery->standby);
    if (!recovery->fallen_back.empty()) log::warning(recovery->fallen_back);
    for (const ClientId& client : recovery->awaited) give_time(client, TrainerRegistry::kBeforeRestart);
    // Its trainers may not have heard that their goodbyes were taken.
    if (server.is_done()) patience->after(kHearGoodbyes, [this] { ring(); });
  }

  // gRPC gets connections that have proved themselves, and no socket to accept others from.
  void listen() {
    Listener listener = listen_at(endpoint, rpc.held_by_launcher, "server " + std::to_string(rank));
    grpc::ServerBuilder builder;
    set_up(builder);
    using Builder = grpc::ServerBuilder::experimental_type;
    acceptor = builder.experimental().AddExternalConnectionAcceptor(Builder::ExternalConnectionType::FROM_FD,
                                                                    grpc::InsecureServerCredentials());
    builder.RegisterAsyncGenericService(&generic);
    queue = builder.AddCompletionQueue();
    listening = builder.BuildAndStart();
    if (!listening) throw Error(ErrorKind::host, "gRPC could not start server " + std::to_string(rank));
    endpoint = listener.endpoint;
    start_threads();
    open_listeners(std::move(listener.socket));
  }

  void open_listeners(UniqueFd socket) {
    const auto calls = [this](SealedSocket accepted) { admit(std::move(accepted)); };
    std::vector<AuthListener> auth_listeners;
    if (offers(rpc.transport, TransportKind::unix_socket))
      auth_listeners.push_back({listen_beside(socket.value(), TransportKind::unix_socket),
                                purpose_of(TransportKind::unix_socket), true, calls});
    if (offers(rpc.transport, TransportKind::shared_memory)) {
      shared_memory.emplace(
          server, slow,
          ShmHostOptions{.refused = [this](auto& peer, auto& why) { rejections.note(peer, why); },
                         .lost = [this](const wire::Header& attended) { lose(attended); }});
      auth_listeners.push_back({listen_beside(socket.value(), TransportKind::shared_memory),
                                purpose_of(TransportKind::shared_memory), true,
                                [this](SealedSocket accepted) {
                                  std::string early;  // it waits for what this sends
                                  shared_memory->admit(accepted.take_plain(early));
                                }});
    }
    auth_listeners.push_back({std::move(socket), purpose_of(TransportKind::tcp), false, calls});
    std::erase_if(auth_listeners, [](const AuthListener& auth_listener) { return !auth_listener.socket; });
    authenticating_acceptor.emplace(std::move(auth_listeners), rpc.access, rejections);
    if (!rpc.metrics_file.empty())
      metrics_file.emplace(
          rpc.metrics_file, [this] { return server.stat(); },
          [](const std::string& why) { log::warning(why); });
  }

  void admit(SealedSocket accepted) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    std::string early;
    const auto refused = [this, peer = accepted.peer_host()](const std::string& why) {
      rejections.note(peer, why);
    };
    connection.fd = streams.join(std::move(accepted), early, refused).release();
    const grpc::Slice bytes(early);
    if (!early.empty()) connection.read_buffer = grpc::ByteBuffer(&bytes, 1);
    acceptor->HandleNewConnection(&connection);
  }

  void start_threads() {
    const Service service{server,
                          generic,
                          *queue,
                          slow,
                          live,
                          rejections,
                          [this](const wire::Header& attended) { lose(attended); }};
    for (std::size_t i = 0; i < kArmedCalls; ++i) ServerCall::arm(service);
    const unsigned wanted = std::min(8u, std::max(2u, std::thread::hardware_concurrency()));
    for (unsigned i = 0; i < wanted; ++i) threads.emplace_back([this] { take_events(); });
  }

  void take_events() {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
      const Event& event = *static_cast<Event*>(tag);
      (event.call->*event.handle)(ok);
    }
  }

  // Nobody is told anything: trainers see their connections end, and come again. Those they make now are
  // refused, until the other process listens.
  void cut_off() {
    metrics_file.reset();
    authenticating_acceptor.reset();
    server.release();
    if (shared_memory) shared_memory->cut_off();
    live.close();
    if (listening) listening->Shutdown(std::chrono::system_clock::now());
    is_cut_off = true;
  }

  void end_cut_off() {
    server.end_handed_on();
    slow.finish();
    if (shared_memory) shared_memory->stop();
    if (listening) end_queue();
  }

  // What it was asked may not be answered any more: to its trainers it is a server that was killed.
  void fail() {
    metrics_file.reset();
    authenticating_acceptor.reset();
    if (shared_memory) shared_memory->cut_off();
    live.close();
    listening->Shutdown(std::chrono::system_clock::now());
    server.close();
    server.abandon();
    slow.finish();
    if (shared_memory) shared_memory->stop();
    end_queue();
  }

  bool has_failed() {
    const std::lock_guard lock(failure_mutex);
    return failure.has_value();
  }

  void end_queue() {
    live.wait_for_none();
    queue->Shutdown();
    for (std::thread& thread : threads) thread.join();
  }

  void shut_down() {
    if (is_cut_off) return end_cut_off();
    if (!listening) return server.close();
    if (has_failed()) return fail();
    // Whoever waits for another trainer is told; what is being answered has some seconds to finish.
    metrics_file.reset();
    authenticating_acceptor.reset();
    server.close();
    live.close();
    listening->Shutdown(std::chrono::system_clock::now() + kFinishCalls);
    slow.finish();
    if (shared_memory) shared_memory->stop();
    end_queue();
  }
};

RpcServer::RpcServer(const ServerOptions& options, const std::string& endpoint, RpcServerOptions rpc)
    : state_(std::make_unique<State>(options, endpoint, std::move(rpc))) {
  // gRPC's own lines would repeat, in other words, what our errors say.
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  if (options.recover_within.count() > 0) {
    state_->patience.emplace();
    state_->go_on();
  }
  if (!state_->rpc.listens_later) listen();
}

void RpcServer::listen() {
  state_->listen();
  // The text is document 003's: scripts and people look for it.
  log::info("running server with rank id: " + std::to_string(state_->rank) +
            ", endpoint: " + state_->endpoint);
}

RpcServer::~RpcServer() {
  std::call_once(state_->shut_down_once, [this] { state_->shut_down(); });
}

const std::string& RpcServer::endpoint() const noexcept {
  return state_->endpoint;
}

std::uint64_t RpcServer::rejections() const {
  return state_->rejections.count();
}

void RpcServer::update(const MembershipUpdate& membership_update) {
  for (const std::uint32_t trainer : state_->server.update(membership_update))
    log::info("epoch " + std::to_string(membership_update.generation) + " is without trainer " +
              std::to_string(trainer) + ": the others continue, and its further requests are refused");
}

std::uint64_t RpcServer::stale_requests() const noexcept {
  return state_->server.stale_requests();
}

std::string RpcServer::stat() const {
  return state_->server.stat();
}

std::string RpcServer::load(const std::string& directory, const std::vector<std::string>& only) {
  return state_->server.load(directory, only);
}

void RpcServer::wait() {
  pollfd wake{state_->wake, POLLIN, 0};
  while (::poll(&wake, 1, -1) < 0 && errno == EINTR) {
  }
  std::call_once(state_->shut_down_once, [this] { state_->shut_down(); });
  const std::lock_guard lock(state_->failure_mutex);
  if (state_->failure) throw Error(*state_->failure);
}

void RpcServer::stop() noexcept {
  state_->ring();
}

bool RpcServer::has_ended() const noexcept {
  pollfd wake{state_->wake, POLLIN, 0};
  return ::poll(&wake, 1, 0) > 0;
}

Server& RpcServer::server() noexcept {
  return state_->server;
}

bool RpcServer::hand_on(std::uint64_t offer, const std::function<void()>& commit) {
  if (!state_->server.hand_on(offer, commit)) return false;
  state_->cut_off();
  return true;
}

}  // namespace fleetrun::ps
