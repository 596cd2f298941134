// paddle_checkpoint.cc, paddle_row.cc and gzip_text.cc. The rows are what Paddle 2.6.2 wrote.
#include "ps/saving/paddle_checkpoint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "ps/memory/in_process.h"
#include "ps/saving/gzip_text.h"
#include "ps/saving/paddle_row.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

// Key 3 of runtime.md's run, whose embedx is of three columns, and a row that is not extended.
constexpr const char* kExtended =
    "3 7 2 0.2 2 1 0.1 -0.2 0.00399995 0.81 0.998001 0.5 0.25 -1 0.125 1 2 3 4 5 0.729 0.997003\n";
constexpr const char* kShort = "18446744073709551615 0 0 0 1 0 0.5 0 0 0.9 0.999\n";

TableConfig adam_table(UpdateRule::Kind rule, Accessor::Kind accessor) {
  TableConfig config = sparse_table(0, "t", 4, rule);
  config.accessor.kind = accessor;
  config.accessor.embedx_threshold = 10.0f;
  return config;
}

std::string again(const TableConfig& config, const std::string& line) {
  const PaddleRows rows(config);
  PaddleRows::Row row;
  rows.parse(std::string_view(line).substr(0, line.size() - 1), row);
  std::string out;
  rows.append_line(row.key, row.floats.data(), out);
  return out;
}

std::unique_ptr<Client> one_client(std::uint32_t servers, const std::vector<TableConfig>& tables) {
  return std::move(make_in_process(servers, 1, Mode::async, tables)[0]);
}

void write(const std::string& path, const std::string& text, bool gzip = true) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  if (gzip) return write_gzip(path, text);
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a row with statistics is read and written without a change") {
  const TableConfig config = adam_table(UpdateRule::Kind::pow_adam, Accessor::Kind::sparse);
  CHECK(again(config, kExtended) == std::string(kExtended));
  CHECK(again(config, kShort) == std::string(kShort));
}

TEST_CASE("a row without statistics keeps its values, its moments and how often it was updated") {
  const TableConfig config = adam_table(UpdateRule::Kind::adam, Accessor::Kind::plain);
  const PaddleRows rows(config);
  PaddleRows::Row row;
  rows.parse(std::string_view(kExtended).substr(0, std::string_view(kExtended).size() - 1), row);
  CHECK(std::vector<float>(row.floats.begin(), row.floats.begin() + 4) ==
        std::vector<float>{0.1f, 0.5f, 0.25f, -1});
  CHECK(std::vector<float>(row.floats.begin() + 4, row.floats.end() - 1) ==
        std::vector<float>{-0.2f, 0.125f, 1, 2, 0.00399995f, 3, 4, 5});
  std::uint32_t steps = 0;
  std::memcpy(&steps, &row.floats.back(), sizeof steps);
  CHECK(steps == 1);
}

TEST_CASE("what is no row, or one of another width, is refused") {
  const PaddleRows rows(adam_table(UpdateRule::Kind::pow_adam, Accessor::Kind::sparse));
  PaddleRows::Row row;
  for (const char* line : {"x", "-1 0 0 0 1 0 0.5", "1 0 0 zero", "1 0,5", "18446744073709551616 0"}) {
    const fleetrun::Error error = error_of([&] { rows.parse(line, row); });
    CHECK(error.kind() == fleetrun::ErrorKind::data);
    CHECK(std::string(error.what()) == "'" + std::string(line) + "' is not a row");
  }
  const fleetrun::Error error = error_of([&] { rows.parse("1 0 0 0 1 0 0.5", row); });
  CHECK(error.kind() == fleetrun::ErrorKind::config);
  CHECK(std::string(error.what()) ==
        "a row has 6 numbers after its key; table 't' of this program, with 4 columns and the rule pow_adam, "
        "has 10 or 21");
  CHECK(error.hint() == "load it with the program's embedding size and optimizer as they were");
}

TEST_CASE("a checkpoint of Paddle's is known by itself, and loads into any number of servers") {
  const std::vector<TableConfig> tables{dense_table(0, "w", 3, UpdateRule::Kind::adagrad),
                                        dense_table(2, "b", 2),
                                        adam_table(UpdateRule::Kind::pow_adam, Accessor::Kind::sparse)};
  std::vector<TableConfig> ordered = tables;
  ordered[1].id = 3;
  ordered[2].id = 1;
  const TempDir dir;
  write(dir.file("000/part-000-00000.gz"), kExtended);
  write(dir.file("000/part-001-00001"), kShort, false);
  write(dir.file("000/part-001-00002.gz"), "");
  write(dir.file("001/part-000.gz"), "1 0.5\n2 0.25\n");
  write(dir.file("001/part-001.gz"), "3 0.125\n4\n5\n");
  CHECK(is_paddle_checkpoint(dir.path().string()));
  CHECK(!is_paddle_checkpoint(dir.file("none")));
  for (const std::uint32_t servers : {1, 2, 3}) {
    const auto client = one_client(servers, ordered);
    CHECK(client->load(dir.path().string()).empty());
    CHECK(client->rows(1) == 2);
    const std::vector<std::uint64_t> keys{3, 18446744073709551615ULL};
    std::vector<float> rows(8);
    std::vector<float> w(3);
    std::vector<float> b(2);
    client->pull({.sparse = {{1, keys, rows}}, .dense = {{0, w}, {3, b}}});
    CHECK(rows == std::vector<float>{0.1f, 0.5f, 0.25f, -1, 0.5f, 0, 0, 0});
    CHECK(w == std::vector<float>{1, 2, 3});
    CHECK(b == std::vector<float>{4, 5});
  }
}

TEST_CASE(
    "a checkpoint of another network is refused with both sides, and a damaged one by its file and line") {
  const std::vector<TableConfig> tables{dense_table(0, "w", 3)};
  const TempDir dir;
  write(dir.file("000/part-000.gz"), "1\n2\n");
  const auto refusal = [&] { return text_of([&] { one_client(1, tables)->load(dir.path().string()); }); };
  CHECK(refusal() ==
        dir.path().string() + " has 0 sparse tables and 2 dense values; this program has 0 and 3");
  write(dir.file("000/part-000.gz"), "1\ntwo\n3\n");
  CHECK(refusal() == dir.file("000/part-000.gz") + ": line 2: 'two' is not a number");
  write(dir.file("000/part-000.gz"), "1 0\n2 0\n3 0\n");
  CHECK(refusal() == "dense values have 1 floats of optimizer state each; those of table 'w' have 0");
  const auto size = std::filesystem::file_size(dir.file("000/part-000.gz"));
  std::filesystem::resize_file(dir.file("000/part-000.gz"), size - 5);
  CHECK(refusal().starts_with(dir.file("000/part-000.gz") + ": it is damaged: "));
}

TEST_CASE("what is written for Paddle is read again, bit by bit") {
  const std::vector<TableConfig> tables{adam_table(UpdateRule::Kind::pow_adam, Accessor::Kind::sparse),
                                        dense_table(1, "d", 5, UpdateRule::Kind::adagrad)};
  const TempDir dir;
  const auto set = std::make_shared<TableSet>(tables, ServerPlace{});
  std::vector<std::uint64_t> keys(100);
  std::vector<float> gradients(400);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 999983;
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = 1.0f / static_cast<float>(i + 3);
  set->dense(1).set(std::vector<float>{1.0f / 3, 2, 3, 4, 5});
  for (int i = 0; i < 3; ++i) set->sparse(0).push(keys, gradients.data());
  save_paddle_checkpoint(dir.path().string(), tables, TableCut(set, tables), 7);
  CHECK(std::filesystem::exists(dir.file("000/part-000-00006.gz")));
  CHECK(!std::filesystem::exists(dir.file("000/part-000-00007.gz")));
  const LoadedTables loaded = load_paddle_checkpoint(dir.path().string(), {}, tables);
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    std::vector<float> before;
    std::vector<float> after;
    set->sparse(0).visit(
        shard, [&](std::uint64_t, auto row) { before.insert(before.end(), row.begin(), row.end()); });
    loaded.tables->sparse(0).visit(
        shard, [&](std::uint64_t, auto row) { after.insert(after.end(), row.begin(), row.end()); });
    CHECK(std::ranges::equal(std::as_bytes(std::span(before)), std::as_bytes(std::span(after))));
  }
  CHECK(loaded.tables->dense(1).contents().values == set->dense(1).contents().values);
}

TEST_CASE("one server saves for Paddle beside training, several say what to do") {
  const std::vector<TableConfig> tables{adam_table(UpdateRule::Kind::adam, Accessor::Kind::plain),
                                        dense_table(1, "d", 2)};
  const TempDir dir;
  const auto client = one_client(1, tables);
  client->set_dense(1, std::vector<float>{1, 2});
  const std::vector<std::uint64_t> keys{1, 1000, 2000};
  const std::vector<float> ones(12, 1.0f);
  for (int i = 0; i < 2; ++i)
    client->push({.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = ones}}, .dense = {}});
  client->save_for_paddle(dir.path().string(), SaveMode::all);
  const auto other = one_client(2, tables);
  other->load(dir.path().string());
  for (int i = 0; i < 2; ++i) {
    std::vector<float> expected(12);
    std::vector<float> rows(12);
    client->pull({.sparse = {{.table = 0, .keys = keys, .rows = expected}}, .dense = {}});
    other->pull({.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}});
    CHECK(rows == expected);
    // Moments and steps are the same too.
    for (Client* each : {client.get(), other.get()}) {
      each->push({.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = ones}}, .dense = {}});
    }
  }
  const fleetrun::Error error = error_of([&] { other->save_for_paddle(dir.file("x"), SaveMode::all); });
  CHECK(std::string(error.what()) ==
        "Paddle's checkpoints put a key's rows by its number; 2 servers hold them by its hash");
  CHECK(error.hint() == "save as usual, load that in a process without servers, and save from there");
}

TEST_CASE("dense values of adam_d2sum have Paddle's empty column, and come back") {
  const TempDir dir;
  const TableConfig config = dense_table(0, "w", 2, UpdateRule::Kind::adam_d2sum);
  const auto saver = one_client(1, {config});
  saver->set_dense(0, std::vector<float>{1.0f, 2.0f});
  const auto push = [](Client& client) {
    const std::vector<float> gradients{0.5f, -1.0f};
    client.push({.sparse = {}, .dense = {{.table = 0, .gradients = gradients}}});
  };
  push(*saver);
  saver->save_for_paddle(dir.file("saved"), SaveMode::all);
  std::string text;
  read_lines(dir.file("saved") + "/000/part-000.gz",
             [&](std::string_view line, std::size_t) { text += std::string(line) + "\n"; });
  CHECK(std::count(text.begin(), text.end(), ' ') == 8);
  CHECK(text.find(" 0 1 ") != std::string::npos);
  const auto loader = one_client(1, {config});
  loader->load(dir.file("saved"));
  push(*saver);
  push(*loader);
  std::vector<float> kept(2), loaded(2);
  saver->pull({.sparse = {}, .dense = {{0, kept}}});
  loader->pull({.sparse = {}, .dense = {{0, loaded}}});
  CHECK(kept == loaded);
}
