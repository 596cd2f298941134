// Servers and trainers that are killed again and again, behind a network that loses one message in ten and
// doubles one in ten (tests/support/unreliable_servers.h), and count: each trainer adds 1 to rows that follow
// from the number of the push. In the end every row must be what the pushes say, exactly. ARGV: seed, kills,
// perhaps "standby": each server is the standby of another then, and one that is killed loses its directory
// too wherever its standby says that it could hand back all.
//
// Prints "K kills (S of servers, H with their directories, T of trainers), C connections cut, D messages
// doubled, P pushes, M rows wrong"; ends with 0 when there was none, with 1 otherwise.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_clients.h"
#include "tests/support/unreliable_servers.h"

namespace {

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::tests::sparse_table;
using fleetrun::tests::UnreliableServer;

constexpr std::uint32_t kServers = 2, kTrainers = 2;
constexpr std::uint64_t kKeys = 64, kPushes = 300;
constexpr fleetrun::tests::Unreliability kUnreliability{
    .dropped = 50, .answers_lost = 50, .duplicated = 100, .kills = 8};
const std::vector<TableConfig> kTables{sparse_table(0, "count", 1)};

struct Total {
  std::uint64_t servers = 0, handed_back = 0, trainers = 0, cuts = 0, twins = 0, pushes = 0, wrong = 0;
};

std::array<std::uint64_t, 2> keys_of(std::uint32_t trainer, std::uint64_t number) {
  return {(trainer * 31 + number * number) % kKeys, (number * 7 + 3 * trainer) % kKeys};
}

/// One life: pushes from where the servers are, dies with some of them in flight.
/// False once there are no more.
bool live(const std::vector<std::unique_ptr<UnreliableServer>>& servers, std::uint32_t trainer,
          std::uint64_t max) {
  auto client = fleetrun::tests::connect_unreliably(servers, {.trainer = trainer,
                                                              .trainers = kTrainers,
                                                              .mode = Mode::async,
                                                              .tables = kTables,
                                                              .identity = 1000 + trainer});
  std::vector<std::unique_ptr<Pending>> pending;
  const std::array<float, 2> ones{1.0f, 1.0f};
  for (; max > 0 && client->next_change() <= kPushes; --max) {
    const auto keys = keys_of(trainer, client->next_change());
    pending.push_back(client->push_async({.sparse = {{0, keys, ones}}, .dense = {}}));
    if (pending.size() <= 4) continue;
    pending.front()->wait();
    pending.erase(pending.begin());
  }
  if (max == 0) return true;
  for (const auto& one : pending) one->wait();
  return false;
}

std::uint64_t count_wrong(const std::vector<std::unique_ptr<UnreliableServer>>& servers) {
  std::array<float, kKeys> expected{}, rows{};
  std::array<std::uint64_t, kKeys> keys{};
  for (std::uint64_t key = 0; key < kKeys; ++key) keys[key] = key;
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
    for (std::uint64_t number = 1; number <= kPushes; ++number) {
      for (const std::uint64_t key : keys_of(trainer, number)) expected[key] += 1.0f;
    }
  }
  auto client = fleetrun::tests::connect_unreliably(
      servers,
      {.trainer = 0, .trainers = kTrainers, .mode = Mode::async, .tables = kTables, .identity = 1000});
  client->pull({.sparse = {{0, keys, rows}}, .dense = {}});
  std::uint64_t wrong = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key) wrong += rows[key] != expected[key] ? 1 : 0;
  return wrong;
}

void run_job(std::uint64_t seed, bool has_standbys, Total& total) {
  const fleetrun::tests::TempDir directory;
  std::mutex killing;
  std::atomic<bool> are_made{false};
  std::vector<std::unique_ptr<UnreliableServer>> servers;
  for (std::uint32_t rank = 0; rank < kServers; ++rank) {
    ServerOptions options{.rank = rank, .servers = kServers, .trainers = kTrainers, .tables = kTables};
    options.durability.directory = directory.path().string();
    options.durability.interval = std::chrono::milliseconds(5);
    options.recover_within = std::chrono::hours(1);
    if (has_standbys) {
      options.standby.name = [] { return "another"; };
      options.standby.idle = std::chrono::milliseconds(1);
      options.standby.connect = [&, rank](const std::atomic<bool>& give_up) {
        if (!are_made) throw Error(fleetrun::ErrorKind::network, "not there yet");
        return servers[rank]->reach_holder(give_up);
      };
    }
    servers.push_back(std::make_unique<UnreliableServer>(options, kUnreliability, seed * kServers + rank));
  }
  for (std::uint32_t rank = 0; has_standbys && rank < kServers; ++rank)
    servers[rank]->lean_on(*servers[(rank + 1) % kServers], killing);
  are_made = true;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
    threads.emplace_back([&, trainer] {
      std::mt19937_64 random(seed * 100 + trainer);
      std::uint64_t deaths = 0;
      while (live(servers, trainer, 20 + random() % 100)) ++deaths;
      const std::lock_guard lock(mutex);
      total.trainers += deaths;
    });
  }
  for (std::thread& thread : threads) thread.join();
  total.pushes += kTrainers * kPushes;
  total.wrong += count_wrong(servers);
  for (const auto& server : servers) {
    total.servers += server->kills();
    total.handed_back += server->handed_back();
    total.cuts += server->cuts();
    total.twins += server->twins();
  }
  for (const auto& server : servers) server->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::uint64_t wanted = std::strtoull(argv[2], nullptr, 10);
  Total total;
  try {
    for (std::uint64_t seed = std::strtoull(argv[1], nullptr, 10); total.servers + total.trainers < wanted;
         ++seed)
      run_job(seed, argc == 4, total);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  std::printf(
      "%llu kills (%llu of servers, %llu with their directories, %llu of trainers), %llu connections cut, "
      "%llu messages doubled, %llu "
      "pushes, "
      "%llu rows wrong\n",
      static_cast<unsigned long long>(total.servers + total.trainers),
      static_cast<unsigned long long>(total.servers), static_cast<unsigned long long>(total.handed_back),
      static_cast<unsigned long long>(total.trainers), static_cast<unsigned long long>(total.cuts),
      static_cast<unsigned long long>(total.twins), static_cast<unsigned long long>(total.pushes),
      static_cast<unsigned long long>(total.wrong));
  return total.wrong == 0 && (argc == 3 || total.handed_back > 0) ? 0 : 1;
}
