// Servers that are stopped, that are gone for good, or that have no more memory: what their trainers are
// told, how soon, and what of it the trainers have to hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ps/durable/durable_settings.h"
#include "ps/table/memory_quota.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "tests/support/port_lease.h"
#include "tests/support/ps_connect.h"
#include "tests/support/ps_tables.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

using fleetrun::Environ;
using fleetrun::Error;
using fleetrun::ErrorKind;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::PortLease;
using fleetrun::tests::ServerProcess;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDeadline{300};
/// The shortest silence for which gRPC may ask for signs of life so often.
constexpr milliseconds kSilence{3000};
constexpr std::chrono::seconds kSoon{60};  // not a measure: that it ends at all
using Clock = std::chrono::steady_clock;

ClientOptions trainer(std::uint32_t rank, std::uint32_t trainers, milliseconds deadline = milliseconds(0)) {
  ClientOptions options{rank, trainers, Mode::async, {sparse_table(0, "sum", 1)}};
  options.deadlines.data = deadline;
  return options;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> pull(Client& client, const std::vector<std::uint64_t>& keys) {
  std::vector<float> rows(keys.size());
  client.pull({.sparse = {{0, keys, rows}}, .dense = {}});
  return rows;
}

struct Ones {
  std::vector<std::uint64_t> keys;
  std::vector<float> ones;

  explicit Ones(std::size_t count) : keys(count), ones(count, 1.0f) {
    std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  }
  Push push() const { return {.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}}; }
};

// Two of these count resident memory, and seconds in which a quarter of a gigabyte is to be sent:
// a sanitizer adds to both.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The inodes of what this process shares with servers.
std::set<std::string> segments() {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!contains(line, "memfd:fleetrun parameters")) continue;
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;
    inodes.insert(word);
  }
  return inodes;
}

bool has_open_segment() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (contains(std::filesystem::read_symlink(entry.path(), gone).string(), "memfd:fleetrun parameters"))
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE(
    "a call to a server that is stopped ends at its deadline, and names it; later ones go well when it goes "
    "on") {
  ServerProcess server{"1", "async"};
  const auto client =
      connect_as_told({server.endpoint()}, trainer(0, 1, kDeadline), {.silence = std::chrono::minutes(10)});
  server.stop();
  const Ones one(1);
  for (int again = 0; again < 2; ++again) {
    for (const auto& call : std::vector<std::function<void()>>{[&] { pull(*client, one.keys); },
                                                               [&] { client->push(one.push()); }}) {
      const Error error = error_of(call);
      CHECK(error.kind() == ErrorKind::timeout);
      CHECK(contains(error.what(), "within 300 ms from server 0 at " + server.endpoint()));
      CHECK(contains(error.hint(), "it is stopped"));
    }
  }
  server.go_on();
  const std::vector<float> rows = pull(*client, one.keys);
  client->push(one.push());
  // A push that was given up may have been applied, once.
  CHECK(rows[0] >= 0);
  CHECK(pull(*client, one.keys)[0] <= 3);
  client->goodbye();
}

TEST_CASE("to a server that is stopped no more than so much is under way, however often it is tried" *
          doctest::skip(kSanitized)) {
  ServerProcess server{"1", "async"};
  // However slow this machine is, the server is not taken for gone.
  const auto client =
      connect_as_told({server.endpoint()}, trainer(0, 1, kDeadline), {.silence = std::chrono::minutes(10)});
  server.stop();
  constexpr std::size_t kKeys = 1 << 17;
  constexpr std::size_t kBytes = kKeys * (sizeof(std::uint64_t) + sizeof(float));
  const Ones many(kKeys);
  const std::uint64_t before = resident_bytes();
  for (int again = 0; again < 3; ++again) {
    std::vector<std::unique_ptr<Pending>> pending;
    const Error error = error_of([&] {
      for (std::size_t pushes = 0; pushes * kBytes <= std::size_t{256} << 20; ++pushes)
        pending.push_back(client->push_async(many.push()));
    });
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(contains(error.what(), "server 0 at " + server.endpoint() + " has not answered"));
    CHECK(contains(error.hint(), "it is stopped"));
  }
  CHECK(resident_bytes() < before + (std::uint64_t{600} << 20));
  server.go_on();
  const auto end = Clock::now() + kSoon;
  bool answers = false;
  while (!answers && Clock::now() < end) {
    try {
      pull(*client, {1});
      answers = true;
    } catch (const Error& error) {
      REQUIRE(error.kind() == ErrorKind::timeout);
    }
  }
  CHECK(answers);
}

TEST_CASE(
    "calls without a number of seconds end too, when a stopped server has shown no sign of life for long") {
  ServerProcess server{"1", "async"};
  const auto client = connect_as_told({server.endpoint()}, trainer(0, 1), {.silence = kSilence});
  server.stop();
  const Ones one(1);
  const auto push = client->push_async(one.push());
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { pull(*client, one.keys); }, [&] { push->wait(); }, [&] { client->push(one.push()); }}) {
    const Error error = error_of(call);
    CHECK(error.kind() == ErrorKind::network);
    CHECK(contains(error.what(), "server 0 at " + server.endpoint() + " is gone"));
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("a server that was stopped for longer than that, and goes on, has each push once") {
  ServerProcess server{"2", "async", "0", "1", "60000"};
  const auto patient = connect_as_told({server.endpoint()}, trainer(0, 2),
                                       {.recover_within = std::chrono::minutes(2), .silence = kSilence});
  // Shows when the silence has been long enough for the other too, or nearly.
  auto witness = connect_as_told({server.endpoint()}, trainer(1, 2), {.silence = kSilence});
  const Ones some(100);
  patient->push(some.push());
  server.stop();
  std::vector<std::unique_ptr<Pending>> pending;
  for (int n = 0; n < 20; ++n) pending.push_back(patient->push_async(some.push()));
  CHECK(contains(error_of([&] { pull(*witness, {1}); }).what(), "is gone"));
  for (int n = 0; n < 20; ++n) pending.push_back(patient->push_async(some.push()));
  server.go_on();
  for (const auto& push : pending) push->wait();
  CHECK(pull(*patient, some.keys) == std::vector<float>(100, 41.0f));
}

TEST_CASE(
    "one of four servers that is gone for good is named within a bound, and no pull gives zeros for its "
    "rows") {
  for (const char* recover : {"0", "1"}) {
    CAPTURE(recover);
    std::vector<std::unique_ptr<ServerProcess>> servers;
    std::vector<std::string> endpoints;
    for (const char* rank : {"0", "1", "2", "3"}) {
      servers.push_back(std::unique_ptr<ServerProcess>(new ServerProcess{"1", "async", rank, "4"}));
      endpoints.push_back(servers.back()->endpoint());
    }
    ConnectOptions options;
    options.recover_within = recover_within_of(Environ{{"FLEETRUN_PS_RECOVER", recover}});
    const auto client = connect_as_told(endpoints, trainer(0, 1), options);
    const Ones some(100);
    client->push(some.push());
    CHECK(pull(*client, some.keys) == some.ones);
    servers[2]->kill();
    const auto begin = Clock::now();
    for (int again = 0; again < 3; ++again) {
      std::vector<float> rows(100, 7.0f);
      for (const auto& call :
           std::vector<std::function<void()>>{[&] {
                                                client->pull({.sparse = {{0, some.keys, rows}}, .dense = {}});
                                              },
                                              [&] { client->push(some.push()); }, [&] { client->rows(0); }}) {
        const Error error = error_of(call);
        CHECK(error.kind() == ErrorKind::network);
        CHECK(contains(error.what(), "server 2 at " + endpoints[2]));
        CHECK_FALSE(error.hint().empty());
      }
      CHECK(std::ranges::count(rows, 0.0f) == 0);
    }
    CHECK(Clock::now() - begin < options.recover_within + kSoon);
  }
}

TEST_CASE(
    "a server without memory refuses new rows, says how much it may have, and lives; what it keeps is whole" *
    doctest::skip(kSanitized)) {
  const TempDir directory;
  const std::string kept = directory.path().string();
  constexpr std::size_t kBatch = 1 << 15;
  std::size_t answered = 0;
  const auto batch = [](std::size_t number) {
    Ones some(kBatch);
    for (std::uint64_t& key : some.keys) key += number * kBatch;
    return some;
  };
  {
    ServerProcess server{"1", "async", "0", "1", "0", "64", kept};
    const auto client = connect_as_told({server.endpoint()}, trainer(0, 1));
    // Refused once, and by any number of tries later. What a message takes while it is read counts as used:
    // a push after a refused one may still find room.
    for (int refused = 0; refused < 20; ++refused) {
      const Error error = error_of([&] {
        for (; answered < 1000; ++answered) client->push(batch(answered).push());
      });
      CHECK(error.kind() == ErrorKind::host);
      CHECK(contains(error.what(), "server 0 has no memory for new rows: "));
      CHECK(contains(error.what(), " MiB of "));
      CHECK(contains(error.hint(), "FLEETRUN_PS_MEMORY_LIMIT"));
    }
    REQUIRE(answered > 10);
    // It goes on to answer what makes no rows.
    CHECK(pull(*client, batch(0).keys) == std::vector<float>(kBatch, 1.0f));
    CHECK(client->rows(0) == answered * kBatch);
    CHECK_NOTHROW(client->save(directory.file("saved")));
    server.kill();
  }
  ServerProcess server{"1", "async", "0", "1", "0", "0", kept};
  const auto client = connect_as_told({server.endpoint()}, trainer(0, 1));
  CHECK(client->rows(0) == answered * kBatch);
  for (const std::size_t number : {std::size_t{0}, answered / 2, answered - 1})
    CHECK(pull(*client, batch(number).keys) == std::vector<float>(kBatch, 1.0f));
  CHECK(client->load(directory.file("saved")).empty());
  CHECK(client->rows(0) == answered * kBatch);
}

TEST_CASE("a server that was started again shares other memory, and nothing of the first stays") {
  const TempDir directory;
  const PortLease lease;
  const bool shares = transport_of(Environ::of_process()) == Transport::shared_memory;
  const auto start = [&] {
    return std::unique_ptr<ServerProcess>(
        new ServerProcess{"1", "async", "0", "1", "60000", "0", directory.path().string(), lease.endpoint()});
  };
  auto server = start();
  auto client =
      connect_as_told({lease.endpoint()}, trainer(0, 1), {.recover_within = std::chrono::minutes(2)});
  const Ones some(100);
  std::set<std::string> seen;
  for (int life = 1; life <= 3; ++life) {
    client->push(some.push());
    CHECK(pull(*client, some.keys) == std::vector<float>(100, static_cast<float>(life)));
    // Whoever still answered for the server before holds its memory a moment longer.
    std::set<std::string> now = segments();
    for (const auto end = Clock::now() + kSoon; now.size() > 1 && Clock::now() < end; now = segments()) {
    }
    CHECK(now.size() == (shares ? 1 : 0));
    for (const std::string& inode : now) CHECK(seen.insert(inode).second);
    if (life == 3) break;
    const auto waiting = client->push_async({.thread = 0, .sparse = {{0, {}, {}}}, .dense = {}});
    server->kill();
    server = start();
    waiting->wait();
  }
  client->goodbye();
  client.reset();
  CHECK(segments().empty());
  CHECK_FALSE(has_open_segment());
}

TEST_CASE("a trainer that goes while it waits for a server leaves its place at the others to the next one") {
  const PortLease nowhere;
  const ServerProcess server{"1", "async", "0", "2", "60000"};
  const std::vector<std::string> endpoints{server.endpoint(), nowhere.endpoint()};
  const auto end = Clock::now() + kSoon;
  for (int again = 0; again < 3; ++again) {
    Error error(ErrorKind::config, "");
    // The server hears a moment later that the one before is gone.
    while (error.kind() == ErrorKind::config && Clock::now() < end) {
      error = error_of(
          [&] { connect_as_told(endpoints, trainer(0, 1), {.connect_timeout = milliseconds(500)}); });
    }
    CHECK(error.kind() == ErrorKind::network);
    CHECK(contains(error.what(), "server 1 at " + nowhere.endpoint()));
  }
}
