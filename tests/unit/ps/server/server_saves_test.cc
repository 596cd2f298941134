// What saves of modes 1, 2 and 3 change in rows, on servers that are killed and go on.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "ps/base/key_partition.h"
#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_link.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::ask;
using fleetrun::tests::DirectChannel;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

constexpr std::chrono::seconds kLong{60};
constexpr std::uint64_t kIncarnation = 7;

// A push shows its keys once: a score of 1.
std::vector<TableConfig> scored_table() {
  TableConfig config = sparse_table(0, "t", 1);
  config.accessor.kind = Accessor::Kind::sparse;
  config.accessor.nonclk_coeff = 1.0f;
  config.accessor.base_threshold = config.accessor.delta_threshold = 2.0f;
  return {config};
}

// The first keys that are server 0's.
std::vector<std::uint64_t> keys_of(std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; keys.size() < count; ++key)
    if (server_of(key, 2) == 0) keys.push_back(key);
  return keys;
}

// Server 0, which is killed and started again, and server 1, which may have its standby.
struct Job {
  TempDir directory;
  bool has_standby;
  bool dies_before_it_ends_a_save = false, standby_begins_in_a_save = false,
       makes_checkpoint_in_a_save = false;
  std::atomic<bool> is_reachable{true};  // server 1 for the standby
  std::atomic<int> followed{0};          // how often its standby began
  Server holder;
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;

  explicit Job(bool in_has_standby, bool is_reachable_at_first = true)
      : has_standby(in_has_standby), is_reachable(is_reachable_at_first), holder(options(1)) {
    server = std::make_unique<Server>(options(0));
    std::vector<std::unique_ptr<Channel>> channels;
    Welcome welcome;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      welcome.add(rank, hello(rank));
      channels.push_back(std::make_unique<DirectChannel>([this, rank](Reader in, Respond respond) {
        const wire::Header header = wire::read_header(in);
        if (rank == 0 && header.method == wire::Method::save_end && dies_before_it_ends_a_save) start_again();
        if (rank == 0 && header.method == wire::Method::save_commit && standby_begins_in_a_save) {
          is_reachable = true;
          wait_for_standby();
        }
        if (rank == 0 && header.method == wire::Method::save_commit && makes_checkpoint_in_a_save)
          server->make_checkpoint();
        of(rank).handle(header, std::move(in), std::move(respond));
      }));
    }
    client = make_channel_client(client_options(), kIncarnation, std::move(channels), welcome);
  }

  static ClientOptions client_options() { return {0, 1, Mode::async, scored_table()}; }

  ServerOptions options(std::uint32_t rank) {
    ServerOptions out{.rank = rank, .servers = 2, .trainers = 1, .tables = scored_table()};
    out.durability.directory = directory.file("kept");
    out.durability.interval = std::chrono::milliseconds(0);
    out.recover_within = std::chrono::minutes(1);
    std::filesystem::create_directory(out.durability.directory);
    if (rank != 0 || !has_standby) return out;
    out.standby.name = [] { return "server 1"; };
    out.standby.idle = std::chrono::milliseconds(1);
    out.standby.connect = [this](const std::atomic<bool>&) {
      if (!is_reachable) throw Error(ErrorKind::network, "not yet");
      ++followed;
      return std::make_unique<DirectChannel>([this](Reader in, Respond respond) {
        const wire::Header header = wire::read_header(in);
        holder.handle(header, std::move(in), std::move(respond));
      });
    };
    return out;
  }

  Server& of(std::uint32_t rank) { return rank == 0 ? *server : holder; }

  wire::Greeting hello(std::uint32_t rank) {
    std::future<Outcome> answer = ask(of(rank), make_hello(client_options(), kIncarnation, rank, 2));
    REQUIRE(answer.wait_for(kLong) == std::future_status::ready);
    const Outcome outcome = answer.get();
    REQUIRE(std::holds_alternative<Message>(outcome));
    return wire::read_greeting(Reader(std::get<Message>(outcome).bytes()));
  }

  void wait_for_standby() const {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (has_standby && server->stat().find("\"follows\":true") == std::string::npos) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
  }

  void start_again() {
    server.reset();
    server = std::make_unique<Server>(options(0));
    hello(0);
  }

  void push(const std::vector<std::uint64_t>& keys) const {
    const std::vector<float> ones(keys.size(), 1.0f);
    client->push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  }

  void save(SaveMode mode) const { client->save(directory.file("saved"), mode); }

  // Days and scores of all keys.
  std::vector<float> statistics() const {
    std::vector<float> out;
    const std::vector<std::uint64_t> keys = keys_of(4);
    for (const auto& row : client->get(0, keys).statistics) {
      out.push_back(static_cast<float>(row.unseen_days));
      out.push_back(row.delta_score);
    }
    return out;
  }

  // Rows of other scores and days, and a save beside pushes.
  void train(SaveMode mode) const {
    const std::vector<std::uint64_t> keys = keys_of(4);
    push(keys);
    push(keys);
    push({keys[0], keys[1]});
    save(mode);
    push({keys[1], keys[2]});
  }
};

constexpr SaveMode kModes[] = {SaveMode::delta, SaveMode::base, SaveMode::checkpoint};

}  // namespace

TEST_CASE("what a save has changed in rows is there after a kill, from the log or from the standby") {
  for (const SaveMode mode : kModes) {
    for (const bool has_standby : {false, true}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(has_standby);
      Job job(has_standby);
      job.wait_for_standby();
      const int followed = job.followed;
      job.train(mode);
      const std::vector<float> before = job.statistics();
      CHECK(before == (mode == SaveMode::checkpoint ? std::vector<float>{1, 3, 0, 4, 0, 3, 1, 2}
                                                    : std::vector<float>{0, 0, 0, 1, 0, 1, 0, 0}));
      CHECK(job.followed == followed);
      if (has_standby) {
        job.server.reset();
        std::filesystem::remove_all(job.directory.file("kept") + "/server-00000");
      }
      job.start_again();
      CHECK(job.statistics() == before);
      REQUIRE(job.server->recovery());
      CHECK(job.server->recovery()->standby == (has_standby ? "server 1" : ""));
      job.save(mode);
      job.push(keys_of(1));
      const std::vector<float> twice = job.statistics();
      job.start_again();
      CHECK(job.statistics() == twice);
    }
  }
}

TEST_CASE("a checkpoint that is made while a server saves leaves its standby as it is") {
  for (const SaveMode mode : kModes) {
    for (const bool from_standby : {false, true}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(from_standby);
      Job job(true);
      job.wait_for_standby();
      job.makes_checkpoint_in_a_save = true;
      const int followed = job.followed;
      job.train(mode);
      const std::vector<float> before = job.statistics();
      CHECK(job.followed == followed);
      job.server.reset();
      if (from_standby) std::filesystem::remove_all(job.directory.file("kept") + "/server-00000");
      if (!from_standby) job.has_standby = false;
      job.start_again();
      CHECK(job.statistics() == before);
      REQUIRE(job.server->recovery());
      CHECK(job.server->recovery()->standby == (from_standby ? "server 1" : ""));
    }
  }
}

TEST_CASE("a server that is killed once all have committed ends the save when it is back") {
  for (const SaveMode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    Job steady(false), killed(false);
    killed.dies_before_it_ends_a_save = true;
    steady.train(mode);
    killed.train(mode);
    CHECK(killed.statistics() == steady.statistics());
    killed.dies_before_it_ends_a_save = false;
    killed.start_again();
    CHECK(killed.statistics() == steady.statistics());
  }
}

TEST_CASE("a standby that has begun while its server saved is told what the save changes") {
  for (const SaveMode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    Job job(true, false), steady(false);
    job.standby_begins_in_a_save = true;
    job.train(mode);
    steady.train(mode);
    const std::vector<float> before = job.statistics();
    CHECK(before == steady.statistics());
    CHECK(job.followed == 1);
    job.server.reset();
    std::filesystem::remove_all(job.directory.file("kept") + "/server-00000");
    job.start_again();
    REQUIRE(job.server->recovery());
    CHECK(job.server->recovery()->standby == "server 1");
    CHECK(job.statistics() == before);
  }
}
