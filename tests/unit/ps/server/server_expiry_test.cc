// server_expiry.cc, sparse_expiry.cc, row_clock.cc, part_loader.cc: rows that expire by time.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/saving/part_writer.h"
#include "ps/saving/snapshot.h"
#include "ps/server/server.h"
#include "tests/support/memory_cold_rows.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

constexpr std::uint32_t kStart = 1'000'000;

TableConfig table_for(std::uint32_t seconds) {
  TableConfig table = sparse_table(0, "t", 1);
  table.expire_seconds = seconds;
  return table;
}

// A server whose clock is set, and a trainer that pushes ones to it.
class Clocked {
 public:
  explicit Clocked(std::uint32_t seconds, const std::string& directory = "",
                   std::shared_ptr<ColdStore> cold = {})
      : tables_{table_for(seconds)} {
    ServerOptions options{.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = tables_};
    options.clock = [now = now_] { return now->load(); };
    options.expiry_interval = std::chrono::milliseconds(0);
    options.durability.directory = directory;
    options.durability.interval = std::chrono::milliseconds(0);
    options.durability.log_bytes = 0;
    if (cold) options.memory = {std::move(cold), std::make_shared<MemoryBudget>(200)};
    options_ = options;
    start();
  }

  // As after a kill: what is kept is what was answered.
  void start() {
    server_.reset();
    server_ = std::make_unique<Server>(options_);
    const Message request = make_hello({0, 1, Mode::async, tables_}, 7, 0, 1);
    sequence_ = wire::read_greeting(Reader(ask(request))).next_change - 1;
  }
  void pass(std::uint32_t seconds) { now_->fetch_add(seconds); }
  void push(const std::vector<std::uint64_t>& keys) {
    wire::PushDraft draft = wire::draft_push({wire::Method::push, 0, 0, 7, 0, ++sequence_},
                                             {.sparse = {{0, 1, keys.size()}}, .dense = {}});
    std::ranges::copy(keys, draft.keys[0].begin());
    std::ranges::fill(draft.gradients[0], 1.0f);
    ask(draft.message);
  }
  std::uint64_t shrink() {
    wire::Draft draft = wire::draft({wire::Method::shrink, 0, 0, 7, 0, ++sequence_}, sizeof(std::uint32_t));
    draft.writer.value(std::uint32_t{0});
    const auto answer = ask(draft.message);
    return Reader(answer).value<std::uint64_t>();
  }
  // Values; 0 where there is no row.
  std::vector<float> rows(const std::vector<std::uint64_t>& keys) {
    wire::PullDraft draft = wire::draft_pull(
        {wire::Method::pull, 0, 0, 7}, {.sparse = {{0, 1, keys.size(), wire::kNoNewRows}}, .dense = {}});
    std::ranges::copy(keys, draft.keys[0].begin());
    std::vector<float> out(keys.size());
    const auto answer = ask(draft.message);
    Reader(answer).read(out.data(), 4 * out.size());
    return out;
  }
  // A whole round of the search.
  std::uint64_t expire() {
    std::uint64_t erased = 0;
    for (int i = 0; i < 10; ++i) erased += server_->expire_some();
    return erased;
  }
  Server& server() { return *server_; }

 private:
  std::vector<std::byte> ask(const Message& request) {
    std::vector<std::byte> answer;
    Reader reader(request.bytes());
    const wire::Header header = wire::read_header(reader);
    std::string failure = "nothing";
    server_->handle(header, std::move(reader), [&](Outcome outcome) {
      const Error* error = std::get_if<Error>(&outcome);
      failure = error != nullptr ? error->what() : "";
      if (error != nullptr) return;
      const auto bytes = std::get<Message>(outcome).bytes();
      answer.assign(bytes.begin(), bytes.end());
    });
    REQUIRE(failure == "");
    return answer;
  }

  std::vector<TableConfig> tables_;
  std::shared_ptr<std::atomic<std::uint32_t>> now_ = std::make_shared<std::atomic<std::uint32_t>>(kStart);
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::uint64_t sequence_ = 0;
};

class MemoryStore final : public ColdStore {
 public:
  std::unique_ptr<ColdRows> open(const TableConfig&, std::size_t row_floats) override {
    return std::make_unique<MemoryColdRows>(row_floats);
  }
};

// Saves rows with a second each, and what a table has after a load at another time.
std::vector<std::uint32_t> seconds_after(std::uint32_t saved_at, std::uint32_t loaded_at,
                                         const TableConfig& then, const TableConfig& now) {
  const TempDir dir;
  std::uint32_t clock = 0;
  const auto place_at = [&clock](std::uint32_t second) {
    clock = second;
    return ServerPlace{.rank = 0, .servers = 1, .memory = {}, .clock = [&clock] { return clock; }};
  };
  const ServerPlace place = place_at(saved_at - 10);
  const auto set = std::make_shared<TableSet>(std::vector{then}, place);
  const std::vector<float> one{1.0f};
  set->sparse(0).push(std::vector<std::uint64_t>{1}, one.data());
  clock = saved_at;
  set->sparse(0).push(std::vector<std::uint64_t>{2}, one.data());
  PartWriter writer({dir.path().string(), 1}, place);
  Manifest manifest{1, SaveMode::all, 0, "", {writer.write({then}, TableCut(set, {then}))}};
  commit_manifest(dir.path().string(), manifest, 0);
  clock = loaded_at;
  const LoadedTables loaded = load_tables(dir.path().string(), place, {now});
  SparseTable& table = loaded.tables->sparse(0);
  std::vector<std::uint32_t> out(2);
  table.look(std::vector<std::uint64_t>{1, 2}, [&](std::size_t position, std::span<const float> row) {
    REQUIRE(row[0] == 1.0f);
    out[position] = now.expire_seconds == 0 ? 0 : read_second(table.layout(), row.data());
  });
  return out;
}

}  // namespace

TEST_CASE("rows that no push has touched for their time go, beside training and with a shrink") {
  Clocked job(100);
  job.push({1, 2, 3});
  job.pass(60);
  job.push({2});
  CHECK(job.expire() == 0);
  job.pass(40);
  CHECK(job.expire() == 0);
  job.pass(1);
  CHECK(job.rows({1, 2, 3}) == std::vector<float>{1, 2, 1});  // a pull touches nothing
  CHECK(job.expire() == 2);
  CHECK(job.rows({1, 2, 3}) == std::vector<float>{0, 2, 0});
  job.push({3});
  job.pass(100);
  CHECK(job.shrink() == 1);
  CHECK(job.rows({1, 2, 3}) == std::vector<float>{0, 0, 1});
}

TEST_CASE("of many rows a second's share is looked at, and all of them within a quarter of their time") {
  Clocked job(400);
  std::vector<std::uint64_t> keys(20000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  job.push(keys);
  job.pass(401);
  std::uint64_t erased = 0;
  const std::uint64_t first = job.server().expire_some();
  CHECK(first > 0);
  CHECK(first < 2 * (200 + 64));
  for (int i = 0; i < 101; ++i) erased += job.server().expire_some();
  CHECK(first + erased == 20000);
}

TEST_CASE("rows on disk expire as those in memory do") {
  Clocked job(100, "", std::make_shared<MemoryStore>());
  std::vector<std::uint64_t> keys(500);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  job.push(keys);
  job.pass(50);
  for (std::uint64_t key = 0; key < 100; ++key) job.push({key});
  job.pass(51);
  CHECK(job.expire() == 400);
  job.pass(50);
  CHECK(job.shrink() == 100);
}

TEST_CASE("a server that was killed after rows expired goes on without them") {
  const TempDir directory;
  Clocked job(100, directory.path().string());
  job.push({1, 2});
  job.server().make_checkpoint();
  job.pass(90);
  job.push({2});
  job.pass(11);
  CHECK(job.expire() == 1);
  job.push({1});  // made anew
  const std::vector<float> before = job.rows({1, 2});
  CHECK(before == std::vector<float>{1, 2});
  job.start();
  CHECK(job.rows({1, 2}) == before);
  CHECK(job.expire() == 0);
}

TEST_CASE(
    "ages survive saves; a clock that was set back adds nothing, one that leaps at most half the time") {
  const TableConfig table = table_for(1000);
  using Seconds = std::vector<std::uint32_t>;
  CHECK(seconds_after(kStart, kStart, table, table) == Seconds{kStart - 10, kStart});
  CHECK(seconds_after(kStart, kStart + 300, table, table) == Seconds{kStart - 10, kStart});
  CHECK(seconds_after(kStart, kStart - 5000, table, table) == Seconds{kStart - 5010, kStart - 5000});
  CHECK(seconds_after(kStart, kStart + 100000, table, table) ==
        Seconds{kStart + 100000 - 510, kStart + 100000 - 500});
  // Rows of a table without expiry have their time from the load on; the other way round it is dropped.
  CHECK(seconds_after(kStart, kStart + 7, table_for(0), table) == Seconds{kStart + 7, kStart + 7});
  CHECK(seconds_after(kStart, kStart + 7, table, table_for(0)) == Seconds{0, 0});
}

TEST_CASE("the clock of rows does not follow the time of day") {
  const std::uint32_t before = seconds_now();
  CHECK(before > 1'600'000'000);
  CHECK(seconds_now() - before <= 60);
}
