// Who may talk to a parameter server: strangers, wrong secrets,
// replays and changed bytes, on the loopback interface.
#include <arpa/inet.h>
#include <doctest/doctest.h>
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
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include "ps/client/channel_client.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "ps/rpc/rpc_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"
#include "runtime/secure/handshake.h"
#include "tests/support/errors.h"
#include "tests/support/meddler.h"
#include "tests/support/port_lease.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using fleetrun::tests::connect_socket;
using fleetrun::tests::error_of;
using fleetrun::tests::Meddler;

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
  SealedSocket connection;
  std::string said;  // everything it sent in the handshake

  explicit Intruder(const Job& job) {
    UniqueFd socket = connect_socket(job.server.endpoint());
    Handshake handshake(client_settings(job.access));
    for (std::string bytes = handshake.output();; bytes = handshake.output()) {
      said += bytes;
      send_all(socket, bytes);
      if (handshake.finished()) break;
      std::array<char, 1024> block;
      const ssize_t count = ::recv(socket.value(), block.data(), block.size(), 0);
      REQUIRE(count > 0);
      handshake.receive({block.data(), static_cast<std::size_t>(count)});
    }
    connection = SealedSocket(std::move(socket), handshake.take_records());
  }

  /// What the server does not take is lost: it may hang up at any time.
  void say(std::string_view bytes) {
    connection.queue(bytes);
    connection.flush();
  }
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

}  // namespace

TEST_CASE("who has the secret is let in, and neither it nor what is said can be read on the wire") {
  Job job;
  std::string wire;
  std::mutex mutex;
  const Meddler::Change spy = [&](std::string& bytes, std::size_t) {
    const std::lock_guard lock(mutex);
    wire += bytes;
    return true;
  };
  const Meddler meddler(job.server.endpoint(), spy, spy);
  const auto client = connect({meddler.endpoint()}, {0, 1, Mode::async, kTables}, {.access = job.access});
  constexpr float kGradient = 1234.5678F;
  add(*client, 7, kGradient);
  CHECK(value_of(*client, 7) == kGradient);
  CHECK(job.server.rejections() == 0);
  const std::lock_guard lock(mutex);
  CHECK(wire.find(job.access.secret->bytes()) == std::string::npos);
  CHECK(wire.find(std::string_view(reinterpret_cast<const char*>(&kGradient), sizeof kGradient)) ==
        std::string::npos);
  CHECK(wire.find("ParameterServer") == std::string::npos);
}

TEST_CASE("what is larger than all buffers goes to a server and comes back, and with --insecure as well") {
  for (const Access& access : {Access{Secret::random(), "/job/secret"}, Access{}}) {
    const RpcServer server({0, 1, 1, Mode::async, kTables}, "127.0.0.1:0", {.access = access});
    const auto client = connect({server.endpoint()}, {0, 1, Mode::async, kTables},
                                {.access = access, .transport = Transport::tcp});
    std::vector<std::uint64_t> keys(1'000'000);
    std::vector<float> amounts(keys.size()), rows(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = i;
      amounts[i] = static_cast<float>(i % 1000);
    }
    client->push({.thread = 0, .sparse = {{0, keys, amounts}}, .dense = {}});
    client->pull({.sparse = {{0, keys, rows}}, .dense = {}});
    CHECK(rows == amounts);
  }
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
  const Message request = make_hello({0, 1, Mode::async, kTables}, 1, 0, 1);
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
  const std::size_t opening = Handshake(client_settings(job.access)).output().size();
  const std::string whole = Intruder(job).said;
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
  const std::size_t records = recorded.size() - Handshake(client_settings(job.access)).output().size() - 34;
  for (const std::size_t left_out : {std::size_t{0}, std::size_t{1}, records, records + 1, records + 33}) {
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

TEST_CASE("who sits on the way and changes a push or an answer is found out, and changes nothing") {
  for (const bool to_server : {true, false}) {
    Job job(2);
    const auto witness = job.connect_as(1, 2, job.access);
    std::atomic<bool> meddles = false, has_meddled = false;
    const Meddler::Change change = [&](std::string& bytes, std::size_t) {
      if (meddles && !has_meddled.exchange(true)) bytes.back() = static_cast<char>(bytes.back() ^ 1);
      return true;
    };
    const Meddler meddler(job.server.endpoint(), to_server ? change : Meddler::leave,
                          to_server ? Meddler::leave : change);
    const auto client = connect({meddler.endpoint()}, {0, 2, Mode::async, kTables}, {.access = job.access});
    meddles = true;
    const Error error = error_of([&] {
      if (to_server)
        add(*client, 3, 5.0F);
      else
        value_of(*client, 3);
    });
    CHECK(has_meddled);
    CHECK(contains(error.what(), "server 0 at " + meddler.endpoint() + " is gone"));
    if (to_server) job.await_rejections(1);
    CHECK(value_of(*witness, 3) == 0.0F);
  }
}

TEST_CASE("tampering at any byte of a session gives an error or nothing wrong, and never half a push") {
  const Access access{Secret::random(), "/job/secret"};
  const auto make_server = [&] {
    return std::make_unique<RpcServer>(ServerOptions{0, 1, 2, Mode::async, kTables}, "127.0.0.1:0",
                                       RpcServerOptions{.access = access});
  };
  const auto connect_to = [&](const std::string& endpoint, std::uint32_t trainer) {
    return connect({endpoint}, {trainer, 2, Mode::async, kTables},
                   {.connect_timeout = kSoon, .access = access, .silence = std::chrono::seconds(1)});
  };
  tests::tamper_everywhere(make_server, [&](const RpcServer& server, const std::string& endpoint) {
    const auto check = [&] {
      const float value = value_of(*connect_to(server.endpoint(), 1), 3);
      CHECK((value == 0.0F || value == 5.0F));
    };
    try {
      const auto client = connect_to(endpoint, 0);
      add(*client, 3, 5.0F);
      const float value = value_of(*client, 3);
      CHECK(value == 5.0F);
    } catch (const Error&) {
      check();
      throw;
    }
    check();
  });
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
  CHECK(::recv(trainer.value(), block.data(), block.size(), 0) > 0);  // gRPC's first words, sealed
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
  CHECK(std::chrono::steady_clock::now() - began < kSoon / 2);
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
    idle.back().say(bytes.substr(0, cut));
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
  intruder.say(kPreface);
  for (std::uint32_t i = 0; i < 10000; ++i) {
    intruder.say(open_stream(2 * i + 1));
    if (i % 1000 == 0) add(*trainer, 1, 1.0f);
  }
  CHECK(value_of(*trainer, 1) == 10.0f);
  trainer->goodbye();
  job.server.wait();
}
