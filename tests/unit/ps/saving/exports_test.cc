// client_saving.cc, server_saving.cc, change_marks.cc: exports of what has changed, and who follows them.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/memory/in_process.h"
#include "ps/saving/snapshot.h"
#include "ps/server/server.h"
#include "ps/table/changed_rows.h"
#include "tests/support/memory_cold_rows.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

constexpr std::uint64_t kKeys = 300;

class MemoryStore final : public ColdStore {
 public:
  std::unique_ptr<ColdRows> open(const TableConfig&, std::size_t row_floats) override {
    return std::make_unique<MemoryColdRows>(row_floats);
  }
};

// So little that most rows of table 2 are cold.
TableMemory little_memory() {
  return {std::make_shared<MemoryStore>(), std::make_shared<MemoryBudget>(4000)};
}

std::vector<TableConfig> tables() {
  TableConfig scored = sparse_table(0, "scored", 3, UpdateRule::Kind::adam);
  scored.accessor.kind = Accessor::Kind::sparse;
  scored.accessor.nonclk_coeff = 1.0f;
  scored.accessor.show_click_decay_rate = 0.5f;
  scored.accessor.delete_threshold = 0.4f;
  TableConfig days = sparse_table(1, "days", 1);
  days.accessor.kind = Accessor::Kind::ctr;
  days.accessor.delete_after_unseen_days = 1.0f;
  TableConfig cold = scored;
  cold.id = 2;
  cold.name = "cold";
  cold.on_disk = true;
  TableConfig plain = sparse_table(3, "plain", 2, UpdateRule::Kind::adagrad);
  plain.expire_seconds = 100'000;
  return {scored, days, cold, plain, dense_table(4, "dense", 5)};
}

using Rows = std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>>;

// The bits of all that a save holds.
Rows contents_of(const std::string& directory) {
  const LoadedTables loaded = load_tables(directory, {}, tables());
  Rows out;
  const auto note = [&](std::uint32_t table, std::uint64_t key, std::span<const float> floats) {
    std::vector<std::uint32_t>& bits = out[{table, key}];
    for (const float value : floats) bits.push_back(std::bit_cast<std::uint32_t>(value));
  };
  for (std::uint32_t table = 0; table < 4; ++table)
    for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard)
      loaded.tables->sparse(table).visit(
          shard, [&](std::uint64_t key, std::span<const float> row) { note(table, key, row); });
  const auto dense = loaded.tables->dense(4).contents();
  note(4, 0, dense.values);
  return out;
}

class Job {
 public:
  explicit Job(std::uint32_t servers)
      : client_(std::move(make_in_process(servers, 1, Mode::async, tables(), little_memory())[0])) {}

  Client& operator*() { return *client_; }
  Client* operator->() { return client_.get(); }

  void begin() { client_->set_dense(4, std::vector<float>{1, 2, 3, 4, 5}); }
  void push(std::uint32_t table, const std::vector<std::uint64_t>& keys, float value) {
    const std::vector<float> gradients(keys.size() * tables()[table].width, value);
    client_->push({.thread = 0, .sparse = {{table, keys, gradients}}, .dense = {}});
  }
  // Anything that changes tables.
  void step(std::mt19937_64& random, const TempDir& directory) {
    const auto table = static_cast<std::uint32_t>(random() % 4);
    std::vector<std::uint64_t> keys(1 + random() % 20);
    for (std::uint64_t& key : keys) key = random() % kKeys;
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const float value = static_cast<float>(random() % 100) / 64.0f;
    const std::uint64_t width = tables()[table].width;
    switch (random() % 24) {
      case 0:
        client_->shrink(table);
        return;
      case 1:
        return client_->assign(table, keys, std::vector<float>(keys.size() * width, value));
      case 2:
        return client_->set_dense(4, std::vector<float>(5, value));
      case 3:
        return client_->save(directory.file("save"), static_cast<SaveMode>(random() % 4));
      case 4: {
        std::vector<float> rows(keys.size() * pulled_width(tables()[table]));
        return client_->pull({.sparse = {{table, keys, rows}}, .dense = {}});
      }
      case 5: {
        const std::vector<float> gradients(5, value);
        return client_->push({.thread = 0, .sparse = {}, .dense = {{4, gradients}}});
      }
      default:
        return push(table, keys, value);
    }
  }
  Rows contents(const TempDir& directory) {
    const std::string all = directory.file("all-" + std::to_string(++saves_));
    client_->save(all);
    return contents_of(all);
  }

 private:
  std::unique_ptr<Client> client_;
  int saves_ = 0;
};

}  // namespace

TEST_CASE("who takes an export and those after it in their order has what the servers have, bit for bit") {
  for (const std::uint32_t servers : {1u, 2u, 3u}) {
    std::mt19937_64 random(servers);
    const TempDir dir, from, to, late;
    Job job(servers), follower(servers % 3 + 1), slow(2);
    job.begin();
    for (int i = 0; i < 60; ++i) job.step(random, dir);
    std::uint64_t number = job->export_rows(dir.file("0"), 0);
    follower->load(dir.file("0"));
    slow->load(dir.file("0"));
    std::uint64_t slow_number = number;
    for (int round = 1; round <= 12; ++round) {
      for (int i = static_cast<int>(random() % 40); i > 0; --i) job.step(random, dir);
      const std::string next = dir.file(std::to_string(round));
      number = job->export_rows(next, number);
      follower->load(next);
      REQUIRE(follower.contents(to) == job.contents(from));
      if (round % 4 != 0) continue;
      // Another one that follows at its own pace.
      slow_number = job->export_rows(next + "-slow", slow_number);
      slow->load(next + "-slow");
      REQUIRE(slow.contents(late) == job.contents(from));
    }
  }
}

TEST_CASE("an export holds what has changed, and no more") {
  const TempDir dir;
  Job job(2);
  job.begin();
  job.push(3, {1, 2, 3}, 1.0f);
  const std::uint64_t first = job->export_rows(dir.file("a"), 0);
  job.push(3, {2, 4}, 1.0f);
  const std::uint64_t second = job->export_rows(dir.file("b"), first);
  CHECK(second > first);
  // As a delta it can be read, but not as a save of all rows.
  const LoadedTables loaded = load_tables(dir.file("b"), {}, tables());
  CHECK(loaded.tables->sparse(3).rows() == 2);
  CHECK(loaded.manifest.changes == Changes{first, second});
  job->export_rows(dir.file("c"), second);
  CHECK(load_tables(dir.file("c"), {}, tables()).tables->sparse(3).rows() == 0);
}

TEST_CASE(
    "a server that loads exports itself, one after the other, keeps the rows that a later one has not") {
  const TempDir dir;
  Job job(2);
  job.begin();
  job.push(3, {1, 2, 3}, 1.0f);
  const std::uint64_t first = job->export_rows(dir.file("a"), 0);
  job.push(3, {2, 4}, 1.0f);
  job->export_rows(dir.file("b"), first);
  Server server({.rank = 0, .servers = 1, .trainers = 1, .tables = tables(), .memory = little_memory()});
  server.load(dir.file("a"));
  server.load(dir.file("b"));
  CHECK(server.stat().find("\"name\":\"plain\",\"kind\":\"sparse\",\"width\":2,\"rows\":4") !=
        std::string::npos);
}

TEST_CASE("a server does not load over what its trainers have done") {
  const TempDir dir;
  Job job(1);
  job.begin();
  job->save(dir.file("saved"));
  job->export_rows(dir.file("export"), 0);
  Server server({.rank = 0, .servers = 1, .trainers = 1, .tables = tables(), .memory = little_memory()});
  server.load(dir.file("saved"));
  const Message hello = make_hello({0, 1, Mode::async, tables()}, 7, 0, 1);
  Reader in(hello.bytes());
  const wire::Header header = wire::read_header(in);
  bool has_come = false;
  server.handle(header, std::move(in),
                [&](const Outcome& outcome) { has_come = std::holds_alternative<Message>(outcome); });
  REQUIRE(has_come);
  CHECK(text_of([&] { server.load(dir.file("saved")); }) ==
        "trainers have come to the server already, so it does not load " + dir.file("saved"));
  server.load(dir.file("export"));  // readers of one that follows are not in the way
}

TEST_CASE("an export beside pushes is of one moment, and none is lost between two of them") {
  const TempDir dir, from, to;
  Job job(2), follower(1);
  job.begin();
  std::uint64_t number = job->export_rows(dir.file("0"), 0);
  follower->load(dir.file("0"));
  std::atomic<bool> ending{false};
  std::jthread pusher([&] {
    for (std::uint64_t i = 0; !ending; ++i) job.push(3, {i % kKeys, kKeys + i % 7}, 1.0f);
  });
  for (int round = 1; round <= 8; ++round) {
    const std::string next = dir.file(std::to_string(round));
    number = job->export_rows(next, number);
    follower->load(next);
  }
  ending = true;
  pusher.join();
  job->export_rows(dir.file("last"), number);
  follower->load(dir.file("last"));
  CHECK(follower.contents(to) == job.contents(from));
}

TEST_CASE("numbers that do not continue are refused, on both sides, and nothing has changed then") {
  const TempDir dir, from, to;
  Job job(2), follower(1);
  job.begin();
  job.push(3, {1}, 1.0f);
  const std::uint64_t first = job->export_rows(dir.file("a"), 0);
  job.push(3, {2}, 1.0f);
  const std::uint64_t second = job->export_rows(dir.file("b"), first);
  job.push(3, {3}, 1.0f);
  job->export_rows(dir.file("c"), second);
  CHECK(text_of([&] { job->export_rows(dir.file("d"), first + 1); }) ==
        "there is no export " + std::to_string(first + 1) + " of these tables to go on from");
  CHECK(text_of([&] { job->export_rows(dir.file("a"), second); }) == dir.file("a") + " has a save already");
  // Before its base, and after one that it has missed.
  CHECK(text_of([&] { follower->load(dir.file("b")); }) ==
        "the export has the changes since number " + std::to_string(first) +
            "; these tables are of no export, or were changed since");
  follower->load(dir.file("a"));
  CHECK(text_of([&] { follower->load(dir.file("c")); }) ==
        "the export has the changes since number " + std::to_string(second) +
            "; these tables are of number " + std::to_string(first));
  follower->load(dir.file("b"));
  follower->load(dir.file("b"));  // once more, after an answer that was lost
  follower->load(dir.file("c"));
  CHECK(follower.contents(to) == job.contents(from));
  // Who trains follows nobody.
  const std::uint64_t last = job->export_rows(dir.file("e"), second);
  CHECK(last > second);
  follower->load(dir.file("a"));
  follower.push(3, {9}, 1.0f);
  CHECK(text_of([&] { follower->load(dir.file("b")); }).ends_with("are of no export, or were changed since"));
  // Loaded tables are others than those that were exported.
  job->load(dir.file("a"));
  CHECK(text_of([&] { job->export_rows(dir.file("f"), last); }).starts_with("there is no export "));
}

TEST_CASE(
    "a server that begins with what has changed only is refused; one that was started again follows on") {
  const TempDir dir, kept;
  Job job(1);
  job.begin();
  job.push(3, {1}, 1.0f);
  const std::uint64_t first = job->export_rows(dir.file("a"), 0);
  job.push(3, {2}, 1.0f);
  job->export_rows(dir.file("b"), first);
  ServerOptions options{.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = tables()};
  CHECK(
      text_of([&] { Server(options).load(dir.file("b")); }).starts_with("the export has the changes since"));
  options.durability.directory = kept.path().string();
  options.durability.interval = std::chrono::milliseconds(0);
  options.durability.found = FoundCheckpoint::resume;
  Server(options).load(dir.file("a"));
  Server again(options);
  REQUIRE(again.recovery());
  again.make_checkpoint();
  CHECK(read_manifest(manifest_path(kept.file("server-00000")))->changes == Changes{0, first});
}

TEST_CASE("a shard forgets erased keys when there are more of them than rows, and says since when") {
  ChangedRows changed;
  changed.erase(1, 0);  // nobody follows
  changed.begin(1);
  for (std::uint64_t key = 0; key < 1 << 14; ++key) changed.erase(key, 10);
  CHECK(changed.knows(1));
  CHECK(changed.erased(1).size() == 1 << 14);
  changed.erase(1 << 14, 10);
  CHECK(!changed.knows(1));
  CHECK(changed.knows(2));
  changed.begin(2);
  changed.erase(7, 10);
  CHECK(changed.erased(2) == std::vector<std::uint64_t>{7});
}
