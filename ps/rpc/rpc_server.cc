// gRPC's asynchronous generic service: one method, messages as bytes, no generated code. Two or more threads
// take events from one queue; a call that waits for other trainers holds no thread. Saving and loading, which
// may take long, have a thread of their own, so that calls and keepalive pings go on meanwhile.
//
// A call: requested -> read -> handled by ps::Server -> finished. It is freed when it is finished and gRPC
// has reported its end, which also tells whether the peer went away ("attend": the trainer is lost).
#include "ps/rpc/rpc_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include "ps/rpc/error_status.h"
#include "ps/rpc/settings.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kArmedCalls = 16;
constexpr std::chrono::seconds kFinishCalls{5};

// Runs jobs one after the other on a thread of its own.
class SlowLane {
 public:
  SlowLane() : thread_([this] { run(); }) {}
  ~SlowLane() { finish(); }
  SlowLane(const SlowLane&) = delete;
  SlowLane& operator=(const SlowLane&) = delete;

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_one();
  }
  // Returns when all jobs are done; none may be added then.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      finishing_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return finishing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool finishing_ = false;
  std::thread thread_;
};

// How many calls are under way, so that the queue is closed after the last.
class LiveCalls {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
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
};

bool is_slow(wire::Method method) noexcept {
  using enum wire::Method;
  return method == save_part || method == save_commit || method == save_clean || method == load_prepare ||
         method == load_commit || method == load_abort;
}

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
  SlowLane& slow;
  LiveCalls& live;
};

class ServerCall;

struct Event {
  ServerCall* call;
  void (ServerCall::*handle)(bool ok);
};

class ServerCall {
 public:
  // Waits for the next call to come in; frees itself after that call, or when the server shuts down.
  static void arm(const Service& service) { new ServerCall(service); }

 private:
  explicit ServerCall(const Service& service) : service_(service), stream_(&context_) {
    context_.AsyncNotifyWhenDone(&done_);
    service_.generic.RequestCall(&context_, &stream_, &service_.queue, &service_.queue, &requested_);
  }

  void on_requested(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    service_.live.add();
    arm(service_);
    stream_.Read(&request_, &read_);
  }

  void on_read(bool ok) {
    if (context_.method() != kRpcMethod) {
      return stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, "not a method of a parameter server"},
                            &finished_);
    }
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
    if (header_.method == wire::Method::attend) {
      attending_ = true;
      if (cancelled_) lose();
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
    stream_.WriteAndFinish(buffer_of(std::move(std::get<Message>(outcome))), grpc::WriteOptions(),
                           grpc::Status::OK, &finished_);
  }

  void on_finished(bool) { release(); }

  // May come before on_read(): whichever is second sees what the first one has noted.
  void on_done(bool) {
    cancelled_ = context_.IsCancelled();
    if (cancelled_ && attending_) lose();
    release();
  }

  void lose() { service_.server.lost(header_.trainer, header_.incarnation); }

  // The second of finished and done frees the call.
  void release() {
    if (endings_.fetch_add(1) == 0) return;
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

// Why a socket cannot listen on the endpoint; gRPC does not say.
std::string reason_not_to_bind(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return "it is not HOST:PORT";
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int result =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), endpoint.c_str() + colon + 1, &hints, &found);
  if (result != 0) return ::gai_strerror(result);
  std::string reason = "gRPC could not listen there";
  const int file = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file == -1 || ::bind(file, found->ai_addr, found->ai_addrlen) == -1) reason = std::strerror(errno);
  if (file != -1) ::close(file);
  ::freeaddrinfo(found);
  return reason;
}

void set_up(grpc::ServerBuilder& builder, bool held_by_launcher) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(wire::kLongestMessage));
  // Two servers must not share a port without a word; the launcher's own socket never listens.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, held_by_launcher ? 1 : 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Trainers ping as often as they need to; without these the server would hang up on them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

}  // namespace

struct RpcServer::State {
  std::string endpoint;
  std::uint32_t rank;
  bool held_by_launcher;
  int wake;  // an eventfd that is readable once the server has a reason to end
  Server server;
  SlowLane slow;
  LiveCalls live;
  grpc::AsyncGenericService generic;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> listening;
  std::vector<std::thread> threads;
  std::once_flag shut_down_once;

  State(const ServerOptions& options, const std::string& wanted, bool held)
      : endpoint(wanted),
        rank(options.rank),
        held_by_launcher(held),
        wake(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "serve parameters")),
        server(options, [this] { ring(); }) {}
  ~State() { ::close(wake); }

  // One system call, so that it may run in a signal handler.
  void ring() const noexcept {
    const int before = errno;
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake, &one, sizeof one));
    errno = before;
  }

  void listen() {
    grpc::ServerBuilder builder;
    set_up(builder, held_by_launcher);
    int port = 0;
    builder.AddListeningPort(endpoint, grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&generic);
    queue = builder.AddCompletionQueue();
    listening = builder.BuildAndStart();
    if (!listening || port == 0) {
      if (listening) listening->Shutdown();
      throw Error(ErrorKind::network,
                  "server " + std::to_string(rank) + " cannot serve at " + endpoint + ": " +
                      reason_not_to_bind(endpoint),
                  "choose another port, or end what uses this one");
    }
    endpoint = endpoint.substr(0, endpoint.rfind(':') + 1) + std::to_string(port);
  }

  void start_threads() {
    const Service service{server, generic, *queue, slow, live};
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

  void shut_down() {
    // Whoever waits for another trainer is told; what is being answered has some seconds to finish.
    server.close();
    listening->Shutdown(std::chrono::system_clock::now() + kFinishCalls);
    slow.finish();
    live.wait_for_none();
    queue->Shutdown();
    for (std::thread& thread : threads) thread.join();
  }
};

RpcServer::RpcServer(const ServerOptions& options, const std::string& endpoint, bool held_by_launcher)
    : state_(std::make_unique<State>(options, endpoint, held_by_launcher)) {
  // gRPC's own lines would repeat, in other words, what our errors say.
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  state_->listen();
  state_->start_threads();
  // The text is document 003's: scripts and people look for it.
  log::info("running server with rank id: " + std::to_string(options.rank) +
            ", endpoint: " + state_->endpoint);
}

RpcServer::~RpcServer() {
  std::call_once(state_->shut_down_once, [this] { state_->shut_down(); });
}

const std::string& RpcServer::endpoint() const noexcept {
  return state_->endpoint;
}

void RpcServer::load(const std::string& directory) {
  state_->server.load(directory);
}

void RpcServer::wait() {
  pollfd wake{state_->wake, POLLIN, 0};
  while (::poll(&wake, 1, -1) < 0 && errno == EINTR) {
  }
  std::call_once(state_->shut_down_once, [this] { state_->shut_down(); });
}

void RpcServer::stop() noexcept {
  state_->ring();
}

}  // namespace fleetrun::ps
