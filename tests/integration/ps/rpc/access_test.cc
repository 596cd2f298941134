// Who may talk to a parameter server: strangers, wrong secrets,
// replays and changed bytes, on the loopback interface.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>

#include "ps/client/channel_client.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/error_status.h"
#include "ps/rpc/rpc_server.h"
#include "ps/rpc/rpc_settings.h"
#include "ps/rpc/session.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "tests/support/errors.h"
#include "tests/support/port_lease.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;

namespace {

constexpr std::chrono::seconds kSoon{10};

TableConfig sum_table() {
  TableConfig config;
  config.name = "sum";
  config.kind = TableConfig::Kind::sparse;
  config.width = 1;
  config.rule.kind = UpdateRule::Kind::sum;
  return config;
}

const std::vector<TableConfig> kTables{sum_table()};

struct Job {
  Access access{Secret::random(), "/job/secret"};
  RpcServer server;
  std::vector<std::string> endpoints;

  explicit Job(std::uint32_t trainers = 1)
      : server({0, 1, trainers, Mode::async, kTables}, "127.0.0.1:0", {.access = access}),
        endpoints{server.endpoint()} {}

  std::unique_ptr<Client> connect_as(std::uint32_t trainer, std::uint32_t trainers,
                                     const Access& with) const {
    return connect(endpoints, {trainer, trainers, Mode::async, kTables},
                   {.connect_timeout = std::chrono::milliseconds(1500), .access = with});
  }
  void await_rejections(std::uint64_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (server.rejections() < count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    CHECK(server.rejections() >= count);
  }
};

float value_of(Client& client, std::uint64_t key) {
  std::array<float, 1> row{};
  client.pull({.sparse = {{0, std::span(&key, 1), row}}, .dense = {}});
  return row[0];
}

void add(Client& client, std::uint64_t key, float amount) {
  client.push({.thread = 0, .sparse = {{0, std::span(&key, 1), std::span(&amount, 1)}}, .dense = {}});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

UniqueFd connect_socket(const std::string& endpoint) {
  UniqueFd file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(file.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return file;
}

void send_all(const UniqueFd& file, std::string_view bytes) {
  // The peer may have hung up already.
  static_cast<void>(!::send(file.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// Until the peer hangs up: everything it says.
std::string receive_all(const UniqueFd& file) {
  std::string all;
  std::array<char, 4096> block;
  for (ssize_t count; (count = ::recv(file.value(), block.data(), block.size(), 0)) > 0;)
    all.append(block.data(), static_cast<std::size_t>(count));
  return all;
}

HandshakeSettings client_settings(const Access& access) {
  HandshakeSettings settings;
  settings.side = Side::client;
  settings.secret = access.secret;
  settings.purpose = purpose_of(TransportKind::tcp);
  settings.version = FLEETRUN_VERSION;
  settings.peer = "the server";
  return settings;
}

/// A client by hand, which may do what ours never does.
struct Intruder {
  UniqueFd connection;
  std::string said;  // everything it sent in the handshake
  std::optional<ClientSession> session;
  std::optional<grpc::GenericStub> calls;

  explicit Intruder(const Job& job) : connection(connect_socket(job.server.endpoint())) {
    Handshake handshake(client_settings(job.access));
    for (std::string bytes = handshake.output();; bytes = handshake.output()) {
      said += bytes;
      send_all(connection, bytes);
      if (handshake.finished()) break;
      std::array<char, 1024> block;
      const ssize_t count = ::recv(connection.value(), block.data(), block.size(), 0);
      REQUIRE(count > 0);
      handshake.receive({block.data(), static_cast<std::size_t>(count)});
    }
    session.emplace(handshake.keys());
  }

  /// Sends the call as it is; its status.
  grpc::Status call(const Message& request, const std::string& proof, const char* method = kRpcMethod) {
    if (!calls) {
      REQUIRE(::fcntl(connection.value(), F_SETFL, O_NONBLOCK) == 0);
      calls.emplace(grpc::CreateCustomInsecureChannelFromFd("server", connection.release(), {}));
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kSoon);
    if (!proof.empty()) context.AddMetadata(kProofMetadata, proof);
    const grpc::Slice slice(request.bytes().data(), request.size());
    const grpc::ByteBuffer body(&slice, 1);
    grpc::CompletionQueue queue;
    const auto reader = calls->PrepareUnaryCall(&context, method, body, &queue);
    reader->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    reader->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    return status;
  }
  grpc::Status call(const Message& request) {
    return call(request, to_text(session->prove(kRpcMethod, request.bytes())));
  }
};

Message hello(std::uint32_t trainer, std::uint32_t trainers, std::uint64_t incarnation) {
  return make_hello({trainer, trainers, Mode::async, kTables}, incarnation, 0, 1);
}

Message push_of(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t key, float amount) {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, trainer, 0, incarnation}, {{{0, 1, 1}}, {}});
  draft.keys[0][0] = key;
  draft.gradients[0][0] = amount;
  return std::move(draft.message);
}

/// Between a trainer and its server: forwards bytes, and turns the first occurrence of `from` into `to`.
class Meddler {
 public:
  Meddler(const std::string& server, std::string from, std::string to)
      : from_(std::move(from)),
        to_(std::move(to)),
        listener_(listen_at("127.0.0.1:0", false, "meddler")),
        thread_([this, server] { run(server); }) {}
  ~Meddler() {
    stop_ = true;
    thread_.join();
  }
  Meddler(const Meddler&) = delete;
  Meddler& operator=(const Meddler&) = delete;

  const std::string& endpoint() const { return listener_.endpoint; }
  bool has_meddled() const { return meddled_; }

 private:
  void run(const std::string& server) {
    UniqueFd client;
    UniqueFd upstream;
    while (!stop_) {
      std::array<pollfd, 3> watched{{{listener_.socket.value(), POLLIN, 0},
                                     {client.value(), POLLIN, 0},
                                     {upstream.value(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), 10) <= 0) continue;
      if (watched[0].revents != 0) {
        client.reset(::accept(listener_.socket.value(), nullptr, nullptr));
        upstream = connect_socket(server);
        continue;
      }
      const bool goes_on = watched[1].revents != 0   ? forward(client, upstream)
                           : watched[2].revents != 0 ? forward(upstream, client)
                                                     : true;
      if (goes_on) continue;
      client.reset();
      upstream.reset();
    }
  }
  bool forward(const UniqueFd& in, const UniqueFd& out) {
    std::string bytes(1 << 16, '\0');
    const ssize_t count = ::recv(in.value(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    bytes.resize(static_cast<std::size_t>(count));
    if (const std::size_t at = bytes.find(from_); at != bytes.npos && !meddled_.exchange(true))
      bytes.replace(at, to_.size(), to_);
    return ::send(out.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  std::string from_, to_;
  Listener listener_;
  std::atomic<bool> stop_{false}, meddled_{false};
  std::thread thread_;
};

/// The beginning of what a TLS client says first.
std::string tls_hello() {
  std::string bytes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (int i = 0; i < 500; ++i) bytes.push_back(static_cast<char>(i * 7));
  return bytes;
}

std::string noise(unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(3000, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

/// An HTTP/2 frame.
std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(payload.size() >> shift));
  bytes.push_back(static_cast<char>(type));
  bytes.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(stream >> shift));
  return bytes + payload;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "");

/// The headers of a call, without their end.
std::string open_stream(std::uint32_t stream) {
  const std::string path = kRpcMethod;
  std::string headers = "\x83\x86\x04";  // POST, http, :path
  headers.push_back(static_cast<char>(path.size()));
  headers += path + std::string("\x01\x01s", 3) + "\x0f\x10\x10" + "application/grpc";
  headers += std::string("\x00\x02te\x08trailers", 13);
  return frame(1, 4, stream, headers);
}

std::string bytes_of(float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

TEST_CASE("who has the secret is let in, and the secret is not on the wire") {
  Job job;
  const std::string secret(job.access.secret->bytes());
  const Meddler spy(job.server.endpoint(), secret, secret);
  const auto client = connect({spy.endpoint()}, {0, 1, Mode::async, kTables}, {.access = job.access});
  add(*client, 7, 2.5F);
  CHECK(value_of(*client, 7) == 2.5F);
  CHECK(!spy.has_meddled());
  CHECK(job.server.rejections() == 0);
}

TEST_CASE("a trainer with another secret is told so at once, and the server says it too") {
  Job job;
  const Error error = error_of([&] { job.connect_as(0, 1, {Secret::random(), "/my/secret"}); });
  CHECK(error.kind() == ErrorKind::config);
  CHECK(std::string(error.what()) ==
        "server 0 at " + job.server.endpoint() + " has another secret than this host (/my/secret)");
  CHECK(contains(error.hint(), "FLEETRUN_SECRET_FILE"));
  job.await_rejections(1);
  const auto client = job.connect_as(0, 1, job.access);
  CHECK(client->rows(0) == 0);
}

TEST_CASE("with --insecure on one side only nobody gets in, and the trainer says what differs") {
  Job job;
  const Error open_client = error_of([&] { job.connect_as(0, 1, {}); });
  CHECK(open_client.kind() == ErrorKind::config);
  CHECK(contains(open_client.what(), "runs without --insecure, and this host with it"));
  const RpcServer open({0, 1, 1, Mode::async, kTables}, "127.0.0.1:0");
  const Error open_server = error_of([&] {
    connect({open.endpoint()}, {0, 1, Mode::async, kTables}, {.access = job.access});
  });
  CHECK(contains(open_server.what(), "runs with --insecure, and this host without it"));
}

TEST_CASE("gRPC without a proof gets no answer") {
  Job job;
  const auto channel = grpc::CreateChannel(job.server.endpoint(), grpc::InsecureChannelCredentials());
  grpc::GenericStub calls(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSoon);
  grpc::CompletionQueue queue;
  const Message request = hello(0, 1, 1);
  const grpc::Slice slice(request.bytes().data(), request.size());
  const auto reader = calls.PrepareUnaryCall(&context, kRpcMethod, grpc::ByteBuffer(&slice, 1), &queue);
  reader->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  job.await_rejections(1);
}

TEST_CASE("bytes that are no handshake, and one that is cut short anywhere, get nothing but a hang-up") {
  Job job;
  for (const std::string& greeting :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(5000, '\xff'),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), tls_hello(), noise(1), noise(2), noise(3)}) {
    const UniqueFd file = connect_socket(job.server.endpoint());
    send_all(file, greeting);
    ::shutdown(file.value(), SHUT_WR);
    CHECK(receive_all(file).empty());
  }
  const std::string whole = Intruder(job).said;
  const std::size_t opening = whole.size() - 34;
  for (const std::size_t cut : {std::size_t{1}, std::size_t{20}, opening - 1}) {
    const UniqueFd file = connect_socket(job.server.endpoint());
    send_all(file, whole.substr(0, cut));
    ::shutdown(file.value(), SHUT_WR);
    CHECK(receive_all(file).empty());
  }
  job.await_rejections(10);
}

TEST_CASE("a proof that is cut short or was recorded from another connection lets nobody in") {
  Job job;
  const std::string recorded = Intruder(job).said;
  for (const std::size_t left_out : {std::size_t{0}, std::size_t{1}, std::size_t{33}}) {
    const std::uint64_t before = job.server.rejections();
    const UniqueFd file = connect_socket(job.server.endpoint());
    send_all(file, recorded.substr(0, recorded.size() - left_out));
    send_all(file, left_out == 0 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "");
    ::shutdown(file.value(), SHUT_WR);
    // Its own opening and proof, and at most the reason; no frame of HTTP/2.
    const std::string answer = receive_all(file);
    CHECK(answer.starts_with("FLEETRUN"));
    CHECK(answer.size() <= recorded.size() + 3);
    job.await_rejections(before + 1);
  }
}

TEST_CASE("a call that is repeated, changed, renumbered, or without its proof changes nothing") {
  Job job(2);
  const auto client = job.connect_as(1, 2, job.access);
  Intruder intruder(job);
  const auto is_refused = [](const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAUTHENTICATED &&
           error_from({status.error_message(), status.error_details()}).has_value();
  };
  CHECK(intruder.call(hello(0, 2, 99)).ok());
  const Message push = push_of(0, 99, 5, 3.0F);
  const std::string proof = to_text(intruder.session->prove(kRpcMethod, push.bytes()));
  CHECK(intruder.call(push, proof).ok());
  CHECK(value_of(*client, 5) == 3.0F);
  CHECK(is_refused(intruder.call(push, proof)));
  CHECK(is_refused(intruder.call(push, "")));
  CHECK(is_refused(intruder.call(push, proof.substr(0, 31))));
  const Message other = push_of(0, 99, 5, 4.0F);
  const std::string fresh = to_text(intruder.session->prove(kRpcMethod, push.bytes()));
  CHECK(is_refused(intruder.call(other, fresh)));
  std::string renumbered = fresh;
  renumbered[8] = static_cast<char>(renumbered[8] + 1);
  CHECK(is_refused(intruder.call(push, renumbered)));
  const std::string elsewhere =
      to_text(intruder.session->prove("/fleetrun.ParameterServer/Other", push.bytes()));
  CHECK(is_refused(intruder.call(push, elsewhere)));
  CHECK(intruder.call(push, fresh, "/fleetrun.ParameterServer/Other").error_code() ==
        grpc::StatusCode::UNIMPLEMENTED);
  CHECK(value_of(*client, 5) == 3.0F);
  CHECK(job.server.rejections() == 6);
  // None of that has used up what is proved well.
  CHECK(intruder.call(push, fresh).ok());
  CHECK(value_of(*client, 5) == 6.0F);
}

TEST_CASE("a call of one connection does not go through on another") {
  Job job(2);
  const auto client = job.connect_as(1, 2, job.access);
  Intruder one(job);
  Intruder two(job);
  CHECK(one.call(hello(0, 2, 99)).ok());
  const Message push = push_of(0, 99, 5, 3.0F);
  std::string proof = to_text(one.session->prove(kRpcMethod, push.bytes()));
  const std::string own = to_text(two.session->prove(kRpcMethod, push.bytes()));
  proof.replace(0, 8, own.substr(0, 8));
  CHECK(two.call(push, proof).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(value_of(*client, 5) == 0.0F);
}

TEST_CASE("who sits on the way and changes a gradient or an answer is found out") {
  Job job(2);
  const auto witness = job.connect_as(1, 2, job.access);
  constexpr float kGradient = 1234.5678F;
  {
    const Meddler meddler(job.server.endpoint(), bytes_of(kGradient), bytes_of(1.0F));
    const auto client = connect({meddler.endpoint()}, {0, 2, Mode::async, kTables}, {.access = job.access});
    const Error error = error_of([&] { add(*client, 3, kGradient); });
    CHECK(meddler.has_meddled());
    CHECK(contains(error.what(), "the server refused a call that was changed on the way"));
    CHECK(value_of(*witness, 3) == 0.0F);
    client->goodbye();
  }
  add(*witness, 3, kGradient);
  const Meddler meddler(job.server.endpoint(), bytes_of(kGradient), bytes_of(1.0F));
  const auto client = connect({meddler.endpoint()}, {0, 2, Mode::async, kTables}, {.access = job.access});
  const Error error = error_of([&] { value_of(*client, 3); });
  CHECK(meddler.has_meddled());
  CHECK(contains(error.what(), "did not send this answer: it was changed on the way"));
}

TEST_CASE("two thousand idle connections do not keep four trainers out") {
  rlimit limit = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  constexpr rlim_t kNeeded = 4000;
  if (limit.rlim_max < kNeeded) return;
  limit.rlim_cur = std::max(limit.rlim_cur, kNeeded);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  Job job(4);
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 2000; ++i) idle.push_back(connect_socket(job.server.endpoint()));
  std::vector<std::unique_ptr<Client>> clients(4);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      clients[t] = connect(job.endpoints, {t, 4, Mode::async, kTables},
                           {.connect_timeout = kSoon, .access = job.access});
      clients[t]->barrier();
    });
  for (std::thread& thread : threads) thread.join();
  job.await_rejections(1000);
}

TEST_CASE("a trainer in the middle of its proof keeps its place, however many connect") {
  const Job job;
  const UniqueFd trainer = connect_socket(job.server.endpoint());
  Handshake handshake(client_settings(job.access));
  std::array<char, 1024> block;
  const auto answer = [&] {
    send_all(trainer, handshake.output());
    const ssize_t count = ::recv(trainer.value(), block.data(), block.size(), 0);
    REQUIRE(count > 0);
    return std::string_view(block.data(), static_cast<std::size_t>(count));
  };
  handshake.receive(answer());
  for (int i = 0; i < 2000; ++i) {  // the second half of them says something, too
    const UniqueFd stranger = connect_socket(job.server.endpoint());
    if (i >= 1000) send_all(stranger, "GET / HTTP/1.1\r\n");
  }
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 700; ++i) silent.push_back(connect_socket(job.server.endpoint()));
  job.await_rejections(100);
  while (!handshake.finished()) handshake.receive(answer());
  send_all(trainer, handshake.output());
  CHECK(::recv(trainer.value(), block.data(), block.size(), 0) > 0);  // gRPC's first words
}

TEST_CASE("another user who has taken a server's local name delays no trainer") {
  if (::geteuid() != 0) return;  // only root has another user to be
  const tests::PortLease port;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port.endpoint().substr(10))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t squatter = ::fork();
  if (squatter == 0) {
    if (::setuid(12345) != 0) ::_exit(1);
    for (const TransportKind kind : {TransportKind::unix_socket, TransportKind::shared_memory}) {
      const LocalAddress name =
          local_address(reinterpret_cast<const sockaddr*>(&address), sizeof address, kind);
      const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
      if (::bind(socket, reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0 ||
          ::listen(socket, 100) != 0)
        ::_exit(1);
    }
    static_cast<void>(!::write(ready[1], "x", 1));
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char one = 0;
  REQUIRE(::read(ready[0], &one, 1) == 1);
  const Access access{Secret::random(), "/job/secret"};
  RpcServer server({0, 1, 1, Mode::async, kTables}, port.endpoint(), {.access = access});
  const auto began = std::chrono::steady_clock::now();
  const auto client = connect({server.endpoint()}, {0, 1, Mode::async, kTables},
                              {.connect_timeout = kSoon, .access = access});
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(2));
  add(*client, 1, 2);
  CHECK(value_of(*client, 1) == 2);
  ::kill(squatter, SIGKILL);
  ::waitpid(squatter, nullptr, 0);
  ::close(ready[0]);
}

TEST_CASE("who has the secret and stops in the middle of a frame disturbs nobody") {
  Job job;
  const auto trainer = job.connect_as(0, 1, job.access);
  std::deque<Intruder> idle;
  const std::string bytes = kPreface + open_stream(1) + frame(0, 0, 1, std::string(1000, 'x'));
  for (std::size_t cut = 1; cut < bytes.size(); cut += 97) {
    idle.emplace_back(job);
    send_all(idle.back().connection, bytes.substr(0, cut));
  }
  add(*trainer, 1, 2.0f);
  CHECK(value_of(*trainer, 1) == 2.0f);
  trainer->goodbye();
  job.server.wait();
}

TEST_CASE("who has the secret and opens ten thousand streams keeps no trainer from training") {
  Job job;
  const auto trainer = job.connect_as(0, 1, job.access);
  Intruder intruder(job);
  send_all(intruder.connection, kPreface);
  REQUIRE(::fcntl(intruder.connection.value(), F_SETFL, O_NONBLOCK) == 0);
  // What the server no longer takes is lost, and it may hang up at any time.
  for (std::uint32_t i = 0; i < 10000; ++i) {
    send_all(intruder.connection, open_stream(2 * i + 1));
    if (i % 1000 == 0) add(*trainer, 1, 1.0f);
  }
  CHECK(value_of(*trainer, 1) == 10.0f);
  trainer->goodbye();
  job.server.wait();
}
