#include "ps/client/recovering_channel.h"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <thread>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_clients.h"
#include "tests/support/unreliable_servers.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::connect_unreliably;
using fleetrun::tests::dense_table;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::Unreliability;
using fleetrun::tests::UnreliableServer;

namespace {

constexpr std::uint64_t kKeys = 50;
const std::vector<TableConfig> kTables{sparse_table(0, "count", 1), dense_table(1, "sum", 7)};

struct Job {
  TempDir directory;
  std::vector<std::unique_ptr<UnreliableServer>> servers;

  Job(std::uint32_t count, std::uint32_t trainers, Mode mode, std::uint64_t seed,
      Unreliability unreliability = {}, const std::vector<TableConfig>& tables = kTables) {
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      ServerOptions options{
          .rank = rank, .servers = count, .trainers = trainers, .mode = mode, .tables = tables};
      options.durability.directory = directory.path().string();
      options.durability.interval = std::chrono::milliseconds(2);
      options.recover_within = std::chrono::hours(1);
      servers.push_back(std::make_unique<UnreliableServer>(options, unreliability, seed + rank));
    }
  }
};

std::array<float, kKeys> counts(Client& client) {
  std::array<std::uint64_t, kKeys> keys;
  for (std::uint64_t key = 0; key < kKeys; ++key) keys[key] = key;
  std::array<float, kKeys> rows;
  client.pull({.sparse = {{0, keys, rows}}, .dense = {}});
  return rows;
}

void push(Client& client, std::uint64_t key, std::vector<std::unique_ptr<Pending>>& pending,
          std::size_t max) {
  const std::array<std::uint64_t, 1> keys{key};
  const std::array<float, 1> one{1.0f};
  const std::array<float, 7> ones{1, 1, 1, 1, 1, 1, 1};
  pending.push_back(client.push_async({.thread = 0, .sparse = {{0, keys, one}}, .dense = {{1, ones}}}));
  if (pending.size() <= max) return;
  pending.front()->wait();
  pending.erase(pending.begin());
}

// What trainer t pushes with its n-th push.
std::uint64_t key_of(std::uint32_t trainer, std::uint64_t number) {
  return (trainer * 17 + number * number) % kKeys;
}

}  // namespace

TEST_CASE("through kills, cuts, twins and any order, each push is applied exactly once") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    constexpr std::uint32_t kTrainers = 3;
    constexpr std::uint64_t kPushes = 150;
    Job job(3, kTrainers, Mode::async, seed);
    std::vector<std::thread> threads;
    for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
      threads.emplace_back([&job, trainer] {
        auto client = connect_unreliably(job.servers, {trainer, kTrainers, Mode::async, kTables});
        if (trainer == 0) client->set_dense(1, std::array<float, 7>{});
        client->barrier();
        std::vector<std::unique_ptr<Pending>> pending;
        for (std::uint64_t n = 1; n <= kPushes; ++n) {
          push(*client, key_of(trainer, n), pending, 4);
          if (n % 50 == 0) {
            std::array<double, 1> sum{static_cast<double>(trainer + n)};
            client->all_reduce_sum(sum);
            REQUIRE(sum[0] == 3.0 + 3.0 * static_cast<double>(n));
          }
        }
        for (auto& one : pending) one->wait();
        client->barrier();
        if (trainer == 0) {
          std::array<float, kKeys> expected{};
          for (std::uint32_t t = 0; t < kTrainers; ++t) {
            for (std::uint64_t n = 1; n <= kPushes; ++n) expected[key_of(t, n)] += 1.0f;
          }
          REQUIRE(counts(*client) == expected);
          std::array<float, 7> dense;
          client->pull({.sparse = {}, .dense = {{1, dense}}});
          for (const float value : dense) REQUIRE(value == static_cast<float>(kTrainers * kPushes));
        }
        client->barrier();
        client->goodbye();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::uint64_t kills = 0, cuts = 0, twins = 0;
    for (const auto& server : job.servers) {
      kills += server->kills();
      cuts += server->cuts();
      twins += server->twins();
    }
    CHECK(kills > 0);
    CHECK(cuts > 0);
    CHECK(twins > 0);
  }
}

TEST_CASE("steps of sync mode go on through all of that, whole") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    constexpr std::uint32_t kTrainers = 2;
    Job job(2, kTrainers, Mode::sync, seed);
    std::vector<std::thread> threads;
    for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
      threads.emplace_back([&job, trainer] {
        auto client = connect_unreliably(job.servers, {trainer, kTrainers, Mode::sync, kTables});
        if (trainer == 0) client->set_dense(1, std::array<float, 7>{});
        client->barrier();
        for (int epoch = 0; epoch < 3; ++epoch) {
          client->begin_epoch(1);
          std::vector<std::unique_ptr<Pending>> pending;
          for (std::uint64_t step = 0; step < 20; ++step) push(*client, step, pending, 0);
          client->leave_epoch(0);
        }
        client->barrier();
        std::array<float, kKeys> expected{};
        for (std::uint64_t step = 0; step < 20; ++step) expected[step] = 3.0f;
        REQUIRE(counts(*client) == expected);
        client->barrier();
        client->goodbye();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_CASE("days are ended once each, through all of that") {
  std::vector<TableConfig> tables{sparse_table(0, "ctr", 4)};
  tables[0].accessor.kind = Accessor::Kind::ctr;
  constexpr std::size_t kPulled = 4 + 2;
  const auto train = [](Client& client) {
    for (std::uint64_t n = 0; n < 200; ++n) {
      const std::array<std::uint64_t, 2> keys{key_of(0, n), n % 3};
      const std::array<float, 8> ones{1, 1, 1, 1, 1, 1, 1, 1};
      client.push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
      if (n % 10 == 9) client.shrink(0);
    }
    std::vector<std::uint64_t> keys(kKeys);
    for (std::uint64_t key = 0; key < kKeys; ++key) keys[key] = key;
    std::vector<float> rows(kKeys * kPulled);
    client.pull({.sparse = {{0, keys, rows}}, .dense = {}, .create = false});
    return rows;
  };
  const std::vector<float> wanted = train(*make_in_process(2, 1, Mode::async, tables).front());
  CHECK(wanted[0] > 1.0f);  // shows
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    Job job(2, 1, Mode::async, seed, {}, tables);
    const auto client =
        connect_unreliably(job.servers, {.trainer = 0, .trainers = 1, .mode = Mode::async, .tables = tables});
    CHECK(train(*client) == wanted);
    CHECK(job.servers[0]->kills() + job.servers[1]->kills() > 0);
    CHECK(job.servers[0]->twins() + job.servers[1]->twins() > 0);
  }
}

TEST_CASE("a load through kills is there on all servers, and stays") {
  const TempDir directory;
  const std::string saved = directory.file("saved");
  const auto calm = std::move(make_in_process(2, 1, Mode::async, kTables).front());
  calm->set_dense(1, std::array<float, 7>{});
  std::vector<std::unique_ptr<Pending>> pending;
  for (std::uint64_t n = 1; n <= 40; ++n) push(*calm, key_of(0, n), pending, 0);
  calm->save(saved);
  const std::array<float, kKeys> wanted = counts(*calm);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    Job job(2, 1, Mode::async, seed, {.kills = 500});  // most are begun several times
    const auto client = connect_unreliably(
        job.servers, {.trainer = 0, .trainers = 1, .mode = Mode::async, .tables = kTables});
    client->set_dense(1, std::array<float, 7>{});
    for (int load = 0; load < 5; ++load) {
      for (std::uint64_t n = 1; n <= 5; ++n) push(*client, n, pending, 0);
      client->load(saved);
      for (int again = 0; again < 5; ++again) REQUIRE(counts(*client) == wanted);
    }
    CHECK(job.servers[0]->kills() + job.servers[1]->kills() > 5);
  }
}

TEST_CASE("a trainer that dies and comes back with its identity goes on where the servers are") {
  Job job(2, 1, Mode::async, 3);
  constexpr std::uint64_t kPushes = 300;
  std::uint64_t lives = 0;
  for (std::uint64_t n = 0; n <= kPushes; ++lives) {
    auto client = connect_unreliably(
        job.servers, {.trainer = 0, .trainers = 1, .mode = Mode::async, .tables = kTables, .identity = 77});
    if (client->next_change() == 1) client->set_dense(1, std::array<float, 7>{});
    std::vector<std::unique_ptr<Pending>> pending;
    for (std::uint64_t left = 40; (n = client->next_change() - 1) <= kPushes && left > 0; --left)
      push(*client, key_of(0, n), pending, 3);
    // Dies with pushes in flight that some servers have and others have not.
  }
  CHECK(lives > 7);
  auto client = connect_unreliably(
      job.servers, {.trainer = 0, .trainers = 1, .mode = Mode::async, .tables = kTables, .identity = 77});
  for (std::uint64_t n; (n = client->next_change() - 1) <= kPushes;) {
    std::vector<std::unique_ptr<Pending>> pending;
    push(*client, key_of(0, n), pending, 0);
  }
  std::array<float, kKeys> expected{};
  for (std::uint64_t n = 1; n <= kPushes; ++n) expected[key_of(0, n)] += 1.0f;
  CHECK(counts(*client) == expected);
}

TEST_CASE(
    "a server that does not come back, or not as it was, is an error for all that waits and all that comes") {
  const auto lost = std::make_shared<std::function<void()>>();
  // Takes requests and answers none.
  class Silent : public Channel {
   public:
    std::unique_ptr<Call> start(const wire::Header&, Message, std::shared_ptr<Endings>) override {
      class Never : public Call {
        bool has_ended() const override { return false; }
        Reader result() override { return {}; }
      };
      return std::make_unique<Never>();
    }
    const std::string& name() const noexcept override { return name_; }
    std::string name_ = "silent";
  };
  RecoveringChannel channel(
      "server 3",
      [&](std::function<void()> on_lost) {
        *lost = std::move(on_lost);
        return std::make_unique<Silent>();
      },
      [](std::function<void()>, const std::atomic<bool>&, std::uint64_t) -> std::unique_ptr<Channel> {
        throw Error(ErrorKind::data, "server 3 was restarted without its data");
      });
  const auto endings = std::make_shared<Endings>();
  const wire::Header header{wire::Method::barrier, 0, 0, 7};
  const auto call = channel.start(header, wire::draft(header, 0).message, endings);
  CHECK_FALSE(call->has_ended());
  (*lost)();
  endings->wait(1);
  CHECK(call->has_ended());
  const std::string text = "server 3 was restarted without its data";
  CHECK(std::string(error_of([&] { call->result(); }).what()) == text);
  CHECK(std::string(error_of([&] {
                      channel.start(header, wire::draft(header, 0).message, endings);
                    }).what()) == text);
}
