// Parameter servers over gRPC on the loopback interface. Ports are leased: every server binds port 0.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "ps/memory/in_process.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "runtime/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/port_lease.h"
#include "tests/support/ps_connect.h"
#include "tests/support/server_process.h"

using fleetrun::Error;
using fleetrun::ErrorKind;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::PortLease;
using fleetrun::tests::ServerProcess;

namespace {

TableConfig table(std::uint32_t id, std::string name, TableConfig::Kind kind, std::uint64_t width,
                  UpdateRule::Kind rule) {
  TableConfig config;
  config.id = id;
  config.name = std::move(name);
  config.kind = kind;
  config.width = width;
  config.rule.kind = rule;
  return config;
}

TableConfig sum_table() {
  return table(0, "sum", TableConfig::Kind::sparse, 1, UpdateRule::Kind::sum);
}

struct Cluster {
  std::vector<std::unique_ptr<RpcServer>> servers;
  std::vector<std::string> endpoints;
  std::vector<std::unique_ptr<Client>> clients;

  Cluster(std::uint32_t server_count, std::uint32_t trainers, Mode mode,
          const std::vector<TableConfig>& tables) {
    for (std::uint32_t rank = 0; rank < server_count; ++rank) {
      servers.push_back(std::make_unique<RpcServer>(ServerOptions{rank, server_count, trainers, mode, tables},
                                                    "127.0.0.1:0"));
      endpoints.push_back(servers.back()->endpoint());
    }
    for (std::uint32_t trainer = 0; trainer < trainers; ++trainer) {
      clients.push_back(connect_as_told(endpoints, {trainer, trainers, mode, tables}));
    }
  }
};

template <class Work>
void on_threads(std::size_t count, Work work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> pull(Client& client, std::uint32_t id, const std::vector<std::uint64_t>& keys,
                        std::size_t width) {
  std::vector<float> rows(keys.size() * width);
  client.pull({.sparse = {{id, keys, rows}}, .dense = {}});
  return rows;
}

// Wants the port of `endpoint`: binds it the moment it is free,
// with and without SO_REUSEADDR, and listens there.
class Squatter {
 public:
  explicit Squatter(const std::string& endpoint)
      : port_(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)))),
        thread_([this] {
          for (int i = 0; !stop_; ++i, ++tries_) got_ = got_ + (take(i % 2 == 0) ? 1 : 0);
        }) {}
  ~Squatter() {
    stop_ = true;
    thread_.join();
  }
  Squatter(const Squatter&) = delete;
  Squatter& operator=(const Squatter&) = delete;

  int got() const { return got_; }
  /// Blocks until it has tried `count` times more.
  void await_tries(int count) const {
    for (const int end = tries_ + count; tries_ < end;) std::this_thread::yield();
  }

 private:
  bool take(bool reuse) const {
    const int file = ::socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    if (reuse) ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    const bool taken = ::bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       ::listen(file, 1) == 0;
    ::close(file);
    return taken;
  }

  std::uint16_t port_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> got_ = 0, tries_ = 0;
  std::thread thread_;
};

int connect_socket(const std::string& endpoint) {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return file;
}

}  // namespace

TEST_CASE(
    "a server binds beside the socket by which fleetrun holds its port, again and again, and no squatter "
    "gets in") {
  const PortLease lease(SO_REUSEPORT);
  const Squatter squatter(lease.endpoint());
  const std::vector<TableConfig> tables{sum_table()};
  const ServerOptions options{0, 1, 1, Mode::async, tables};
  for (int start = 0; start < 3; ++start) {
    squatter.await_tries(1000);
    RpcServer server(options, lease.endpoint(), {.held_by_launcher = true});
    const auto client = connect_as_told({lease.endpoint()}, {0, 1, Mode::async, tables});
    CHECK(pull(*client, 0, {1}, 1) == std::vector<float>{0});
    client->goodbye();
    server.wait();
  }
  squatter.await_tries(1000);
  CHECK(squatter.got() == 0);
}

TEST_CASE("a server that nobody holds a port for does not share it") {
  const PortLease lease(SO_REUSEPORT);
  const std::vector<TableConfig> tables{sum_table()};
  const Error error = error_of([&] { RpcServer({0, 1, 1, Mode::async, tables}, lease.endpoint()); });
  CHECK(error.kind() == ErrorKind::network);
}

TEST_CASE("training over gRPC gives the bits that it gives in one process") {
  TableConfig rows = table(0, "emb", TableConfig::Kind::sparse, 10, UpdateRule::Kind::adam);
  rows.initializer = {Initializer::Kind::normal, 0.0, 0.1, 3};
  const std::vector<TableConfig> tables{
      rows, table(1, "fc", TableConfig::Kind::dense, 100003, UpdateRule::Kind::adagrad)};
  Cluster cluster(2, 1, Mode::async, tables);
  const auto local = make_in_process(2, 1, Mode::async, tables);
  std::vector<std::uint64_t> keys(30000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * i % 20011;
  std::vector<std::vector<float>> results;
  for (Client* client : {cluster.clients[0].get(), local[0].get()}) {
    client->set_dense(1, std::vector<float>(100003, 0.5f));
    std::vector<float> values(keys.size() * 10);
    std::vector<float> dense(100003);
    for (int step = 0; step < 3; ++step) {
      client->pull({.sparse = {{0, keys, values}}, .dense = {{1, dense}}});
      client->push({.thread = 0, .sparse = {{0, keys, values}}, .dense = {{1, dense}}});
    }
    client->pull({.sparse = {{0, keys, values}}, .dense = {{1, dense}}});
    values.insert(values.end(), dense.begin(), dense.end());
    results.push_back(std::move(values));
  }
  CHECK(results[0] == results[1]);
  CHECK(cluster.clients[0]->rows(0) == local[0]->rows(0));
}

TEST_CASE("sums are exact, asynchronous and synchronous, with more participants than server threads") {
  constexpr std::size_t kTrainers = 4;
  constexpr std::size_t kThreads = 6;
  constexpr std::size_t kSteps = 20;
  for (const Mode mode : {Mode::async, Mode::sync}) {
    Cluster cluster(2, kTrainers, mode, {sum_table()});
    std::vector<std::uint64_t> keys(300);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i << 40;
    const std::vector<float> ones(keys.size(), 1.0f);
    on_threads(kTrainers, [&](std::size_t t) { cluster.clients[t]->begin_epoch(kThreads); });
    on_threads(kTrainers * kThreads, [&](std::size_t i) {
      Client& client = *cluster.clients[i % kTrainers];
      const auto thread = static_cast<std::uint32_t>(i / kTrainers);
      for (std::size_t step = 0; step < kSteps; ++step) {
        client.push({.thread = thread, .sparse = {{0, keys, ones}}, .dense = {}});
      }
      client.leave_epoch(thread);
    });
    const float expected = mode == Mode::sync ? kSteps : kTrainers * kThreads * kSteps;
    CHECK(pull(*cluster.clients[0], 0, keys, 1) == std::vector<float>(keys.size(), expected));
  }
}

TEST_CASE("barriers and sums over trainers work, and servers end when all have said goodbye") {
  Cluster cluster(2, 3, Mode::async, {sum_table()});
  std::vector<std::vector<double>> values{{1, 2}, {3, 4}, {5, 6}};
  on_threads(3, [&](std::size_t t) {
    cluster.clients[t]->barrier();
    cluster.clients[t]->all_reduce_sum(values[t]);
  });
  for (const auto& sum : values) CHECK(sum == std::vector<double>{9, 12});
  on_threads(3, [&](std::size_t t) { cluster.clients[t]->goodbye(); });
  for (const auto& server : cluster.servers) server->wait();
}

TEST_CASE("a server and a trainer that disagree say what both have") {
  const RpcServer server({0, 1, 2, Mode::async, {sum_table()}}, "127.0.0.1:0");
  const std::vector<std::string> at{server.endpoint()};
  const auto refusal = [&](const ClientOptions& client) {
    const Error error = error_of([&] { connect_as_told(at, client); });
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.hint() == "start servers and trainers with the same program and the same job");
    return std::string(error.what());
  };
  CHECK(refusal({0, 2, Mode::sync, {sum_table()}}) ==
        "server 0 and the trainer disagree on the mode: the server has async, the trainer has sync");
  CHECK(refusal({0, 3, Mode::async, {sum_table()}}) ==
        "server 0 and the trainer disagree on the number of trainers: the server has 2, the trainer has 3");
  TableConfig wide = sum_table();
  wide.width = 8;
  CHECK(
      refusal({0, 2, Mode::async, {wide}}) ==
      "server 0 and the trainer disagree on the tables: the server has sparse table 0 'sum' of width 1, sum, "
      "constant(0), the trainer has sparse table 0 'sum' of width 8, sum, constant(0)");
  CHECK(contains(refusal({0, 2, Mode::async, {}}), "the trainer has no such table"));
  CHECK(contains(error_of([&] {
                   connect_as_told({at[0], at[0]}, {0, 2, Mode::async, {sum_table()}});
                 }).what(),
                 "disagree on the number of servers: the server has 1, the trainer has 2"));
}

TEST_CASE("a rank that is taken is refused until its holder is gone") {
  const RpcServer server({0, 1, 2, Mode::async, {sum_table()}}, "127.0.0.1:0");
  const ClientOptions options{1, 2, Mode::async, {sum_table()}};
  const auto first = connect_as_told({server.endpoint()}, options);
  CHECK(std::string(error_of([&] { connect_as_told({server.endpoint()}, options); }).what()) ==
        "trainer 1 is connected to server 0 already");
  first->goodbye();
  const auto second = connect_as_told({server.endpoint()}, options);
  CHECK(second->rows(0) == 0);
}

TEST_CASE("a port that is taken is named") {
  const RpcServer first({0, 1, 1, Mode::async, {}}, "127.0.0.1:0");
  const Error error = error_of([&] { RpcServer({0, 1, 1, Mode::async, {}}, first.endpoint()); });
  CHECK(error.kind() == ErrorKind::network);
  CHECK(std::string(error.what()) ==
        "server 0 cannot serve at " + first.endpoint() + ": Address already in use");
}

TEST_CASE("connecting gives up at its timeout, naming the servers that are missing") {
  const PortLease nowhere;
  const RpcServer server({0, 2, 1, Mode::async, {}}, "127.0.0.1:0");
  const Error error = error_of([&] {
    connect_as_told({server.endpoint(), nowhere.endpoint()}, {0, 1, Mode::async, {}},
                    {.connect_timeout = std::chrono::milliseconds(300)});
  });
  CHECK(error.kind() == ErrorKind::network);
  CHECK(contains(error.what(), "no answer within 300 ms from server 1 at " + nowhere.endpoint()));
  CHECK(!contains(error.what(), "server 0"));
}

TEST_CASE("a trainer that starts before its server waits for it") {
  const PortLease lease;
  std::unique_ptr<Client> client;
  std::thread trainer([&] { client = connect_as_told({lease.endpoint()}, {0, 1, Mode::async, {}}); });
  const RpcServer server({0, 1, 1, Mode::async, {}}, lease.endpoint());
  trainer.join();
  client->barrier();
}

TEST_CASE("a server that is killed fails calls under way and later ones within seconds, by name") {
  ServerProcess server{"2", "sync"};
  const std::vector<TableConfig> tables{sum_table()};
  const auto one = connect_as_told({server.endpoint()}, {0, 2, Mode::sync, tables});
  const auto two = connect_as_told({server.endpoint()}, {1, 2, Mode::sync, tables});
  on_threads(2, [&](std::size_t t) { (t == 0 ? one : two)->begin_epoch(1); });
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> ones{1.0f};
  const auto waiting = one->push_async({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  server.kill();
  const Error error = error_of([&] { waiting->wait(); });
  CHECK(error.kind() == ErrorKind::network);
  CHECK(contains(error.what(), "server 0 at " + server.endpoint() + " is gone"));
  for (int again = 0; again < 3; ++again) {
    CHECK(contains(error_of([&] { two->rows(0); }).what(), "server 0 at " + server.endpoint() + " is gone"));
  }
}

TEST_CASE("a server that was started again does not serve those who know the old one") {
  const PortLease lease;
  const std::string endpoint = lease.endpoint();
  auto old = std::make_unique<RpcServer>(ServerOptions{0, 1, 1, Mode::async, {sum_table()}}, endpoint);
  const auto client = connect_as_told({endpoint}, {0, 1, Mode::async, {sum_table()}});
  old.reset();
  const RpcServer fresh({0, 1, 1, Mode::async, {sum_table()}}, endpoint);
  const Error error = error_of([&] {
    for (;;) pull(*client, 0, {1}, 1);
  });
  CHECK(error.kind() == ErrorKind::network);
  CHECK(contains(error.what(), "server 0"));
}

TEST_CASE("a trainer that goes without a goodbye fails those who wait for it") {
  Cluster cluster(1, 2, Mode::sync, {sum_table()});
  on_threads(2, [&](std::size_t t) { cluster.clients[t]->begin_epoch(1); });
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> ones{1.0f};
  const auto waiting =
      cluster.clients[0]->push_async({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  cluster.clients[1].reset();
  CHECK(std::string(error_of([&] { waiting->wait(); }).what()) ==
        "trainer 1 is gone: its connection to server 0 ended without a goodbye");
}

TEST_CASE("stop ends a server that trainers still use, and they are told") {
  Cluster cluster(1, 2, Mode::async, {sum_table()});
  std::string text;
  std::thread waiting([&] { text = error_of([&] { cluster.clients[0]->barrier(); }).what(); });
  cluster.servers[0]->stop();
  cluster.servers[0]->wait();
  waiting.join();
  CHECK(contains(text, "server 0"));
  CHECK(contains(error_of([&] { cluster.clients[1]->barrier(); }).what(), "server 0"));
}

TEST_CASE("bytes that are not gRPC do not disturb a server") {
  Cluster cluster(1, 1, Mode::async, {sum_table()});
  const std::vector<std::string> greetings{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(5000, '\xff'),
                                           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
                                           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame at all", ""};
  for (const std::string& greeting : greetings) {
    const int file = connect_socket(cluster.endpoints[0]);
    CHECK(::send(file, greeting.data(), greeting.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(greeting.size()));
    ::shutdown(file, SHUT_WR);
    std::array<char, 256> answer;
    while (::recv(file, answer.data(), answer.size(), 0) > 0) {
    }
    ::close(file);
  }
  CHECK(pull(*cluster.clients[0], 0, {1}, 1) == std::vector<float>{0.0f});
}

TEST_CASE("an error of the server arrives with its kind, hint and context") {
  Cluster cluster(1, 1, Mode::async, {sum_table()});
  const Error error = error_of([&] { cluster.clients[0]->load("/no/such/directory"); });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) ==
        "/no/such/directory/manifest: cannot be opened; there is no complete save in /no/such/directory");
  CHECK(error.hint() == "name the directory that the tables were saved to");
  REQUIRE(error.context().size() == 2);
  CHECK(error.context()[0] == "load_prepare on server 0");
  CHECK(error.context()[1] == "loading from /no/such/directory");
}
