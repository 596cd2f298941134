#include "ps/saving/snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "ps/client/channel_client.h"
#include "ps/memory/in_process.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

std::vector<TableConfig> all_rules() {
  std::vector<TableConfig> tables;
  std::uint32_t id = 0;
  for (const auto rule : {UpdateRule::Kind::sgd, UpdateRule::Kind::adagrad, UpdateRule::Kind::adam}) {
    tables.push_back(sparse_table(id, "rows" + std::to_string(id), 3, rule));
    tables.back().initializer = {Initializer::Kind::normal, 0.0, 1.0, 5};
    ++id;
    tables.push_back(dense_table(id, "dense" + std::to_string(id), 7 + id, rule));
    ++id;
  }
  return tables;
}

std::vector<std::uint64_t> some_keys() {
  std::vector<std::uint64_t> keys(300);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 1000003;
  return keys;
}

// One update of everything; what it does depends on the optimizer state too.
void push_all(Client& client, const std::vector<TableConfig>& tables, float scale) {
  const auto keys = some_keys();
  for (const TableConfig& config : tables) {
    const bool is_sparse = config.kind == TableConfig::Kind::sparse;
    std::vector<float> gradients((is_sparse ? keys.size() : 1) * config.width);
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = scale * static_cast<float>(i % 11);
    if (is_sparse) {
      client.push({.thread = 0, .sparse = {{config.id, keys, gradients}}, .dense = {}});
    } else {
      client.push({.thread = 0, .sparse = {}, .dense = {{config.id, gradients}}});
    }
  }
}

std::map<std::uint32_t, std::vector<float>> pull_all(Client& client, const std::vector<TableConfig>& tables) {
  const auto keys = some_keys();
  std::map<std::uint32_t, std::vector<float>> out;
  for (const TableConfig& config : tables) {
    std::vector<float>& values = out[config.id];
    if (config.kind == TableConfig::Kind::sparse) {
      values.resize(keys.size() * config.width);
      client.pull({.sparse = {{config.id, keys, values}}, .dense = {}});
    } else {
      values.resize(config.width);
      client.pull({.sparse = {}, .dense = {{config.id, values}}});
    }
  }
  return out;
}

std::unique_ptr<Client> one_client(std::uint32_t servers, const std::vector<TableConfig>& tables) {
  return std::move(make_in_process(servers, 1, Mode::async, tables)[0]);
}

std::unique_ptr<Client> trained_client(std::uint32_t servers, const std::vector<TableConfig>& tables) {
  auto client = one_client(servers, tables);
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::dense)
      client->set_dense(config.id, std::vector<float>(config.width, 0.1f));
  }
  for (const float scale : {1.0f, -0.5f, 0.25f}) push_all(*client, tables, scale);
  return client;
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("any number of servers reads what any number saved, values and optimizer state alike") {
  const auto tables = all_rules();
  const TempDir dir;
  const auto first = trained_client(1, tables);
  first->save(dir.file("a/b"));
  const auto second = one_client(3, tables);
  second->load(dir.file("a/b"));
  second->save(dir.file("c"));
  const auto third = one_client(2, tables);
  third->load(dir.file("c"));
  for (const float scale : {0.0f, 1.0f, -2.0f}) {
    for (Client* client : {first.get(), second.get(), third.get()}) {
      if (scale != 0.0f) push_all(*client, tables, scale);
    }
    const auto expected = pull_all(*first, tables);
    CHECK(pull_all(*second, tables) == expected);
    CHECK(pull_all(*third, tables) == expected);
  }
  CHECK(third->rows(0) == 300);
  third->save(dir.file("d"));
  const auto last = one_client(12, tables);
  last->load(dir.file("d"));
  CHECK(pull_all(*last, tables) == pull_all(*first, tables));
}

TEST_CASE(
    "the same tables make the same files, manifest included, whatever the order in which rows were born") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 2, UpdateRule::Kind::adam)};
  const TempDir dir;
  auto keys = some_keys();
  std::vector<std::map<std::string, std::string>> saves;
  for (const char* name : {"a", "b"}) {
    const auto client = one_client(2, tables);
    std::vector<float> rows(keys.size() * 2);
    client->pull({.sparse = {{0, keys, rows}}, .dense = {}});
    client->save(dir.file(name));
    for (const std::string& file : files_in(dir.file(name))) {
      saves.resize(name[0] == 'a' ? 1 : 2);
      saves.back()[file] = read_text(dir.file(name) + "/" + file);
    }
    std::reverse(keys.begin(), keys.end());
  }
  REQUIRE(saves.size() == 2);
  CHECK(saves[0].size() == 3);
  CHECK(saves[0] == saves[1]);
}

TEST_CASE("a second save into a directory replaces the first one whole") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1)};
  const TempDir dir;
  const auto client = one_client(3, tables);
  const std::vector<std::uint64_t> keys{1, 2, 3};
  const std::vector<float> ones(3, 1.0f);
  client->push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  client->save(dir.path().string());
  const auto before = files_in(dir.path().string());
  client->push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  client->save(dir.path().string());
  const auto after = files_in(dir.path().string());
  CHECK(before.size() == 4);
  CHECK(after.size() == 8);  // both saves, and which they are
  client->save(dir.path().string());
  CHECK(files_in(dir.path().string()).size() == 8);
  const auto other = one_client(1, tables);
  other->load(dir.path().string());
  std::vector<float> rows(3);
  other->pull({.sparse = {{0, keys, rows}}, .dense = {}});
  CHECK(rows == std::vector<float>(3, 2.0f));
}

TEST_CASE("a save that fails leaves the one before it whole") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1)};
  const TempDir dir;
  const auto client = one_client(2, tables);
  client->save(dir.path().string());
  const auto before = files_in(dir.path().string());
  // Directories in the way of the servers' temporary names.
  std::filesystem::create_directory(dir.file("manifest-0.tmp"));
  std::filesystem::create_directory(dir.file("manifest-1.tmp"));
  CHECK(text_of([&] { client->save(dir.path().string()); }) ==
        dir.file("manifest-0.tmp") + ": Is a directory (open)");
  std::filesystem::remove(dir.file("manifest-0.tmp"));
  std::filesystem::remove(dir.file("manifest-1.tmp"));
  std::filesystem::remove(dir.file("manifest.previous"));
  CHECK(files_in(dir.path().string()) == before);
  one_client(2, tables)->load(dir.path().string());
}

TEST_CASE("a part with any byte changed, or cut anywhere, is refused, and nothing is loaded") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1, UpdateRule::Kind::adagrad),
                                        dense_table(1, "d", 2)};
  const TempDir dir;
  auto client = one_client(1, tables);
  client->set_dense(1, std::vector<float>{1.0f, 2.0f});
  const std::vector<std::uint64_t> keys{1, 2};
  const std::vector<float> ones(2, 1.0f);
  client->push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  client->save(dir.path().string());
  const std::string part = dir.file(files_in(dir.path().string())[1]);
  const std::string text = read_text(part);
  std::vector<float> before(2);
  client->pull({.sparse = {{0, keys, before}}, .dense = {}});
  const auto refused = [&](const std::string& other) {
    write_text(part, other);
    const fleetrun::Error error = error_of([&] { client->load(dir.path().string()); });
    return error.kind() == fleetrun::ErrorKind::data && std::string(error.what()).starts_with(part + ": ");
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(text[i] ^ (1 << i % 8));
    REQUIRE(refused(other));
    REQUIRE(refused(text.substr(0, i)));
  }
  CHECK(refused(text + "x"));
  std::filesystem::remove(part);
  CHECK(text_of([&] { client->load(dir.path().string()); }) == part + ": the file is not there");
  write_text(part, std::string(text.size(), '\0'));
  CHECK(text_of([&] { client->load(dir.path().string()); }).starts_with(part + ": "));
  std::vector<float> after(2);
  client->pull({.sparse = {{0, keys, after}}, .dense = {}});
  CHECK(after == before);
  write_text(part, text);
  client->load(dir.path().string());
}

TEST_CASE("tables that are not those of the program are named with both sides") {
  const std::vector<TableConfig> saved{sparse_table(0, "t", 2, UpdateRule::Kind::adam)};
  const TempDir dir;
  one_client(1, saved)->save(dir.path().string());
  const std::string part = dir.file(files_in(dir.path().string())[1]);
  const auto refusal = [&](const std::vector<TableConfig>& tables) {
    return text_of([&] { one_client(1, tables)->load(dir.path().string()); });
  };
  CHECK(error_of([&] { one_client(1, {sparse_table(0, "t", 3)})->load(dir.path().string()); }).kind() ==
        fleetrun::ErrorKind::config);
  CHECK(refusal({sparse_table(0, "t", 3, UpdateRule::Kind::adam)}) ==
        part + ": the width of table 't' is 2 in the file, 3 in this program");
  CHECK(refusal({sparse_table(0, "t", 2, UpdateRule::Kind::sgd)}) ==
        part + ": the update rule of table 't' is adam in the file, sgd in this program");
  CHECK(refusal({sparse_table(0, "u", 2, UpdateRule::Kind::adam)}) ==
        part + ": the name of table 0 is 't' in the file, 'u' in this program");
  CHECK(refusal({dense_table(0, "t", 2, UpdateRule::Kind::adam)}) ==
        part + ": the kind of table 't' is sparse in the file, dense in this program");
  CHECK(refusal({}) == part + ": the number of tables is 1 in the file, 0 in this program");
  TableConfig faster = saved[0];
  faster.rule.learning_rate = 9.0f;
  one_client(1, {faster})->load(dir.path().string());
}

TEST_CASE("a piece of another save, server or world under the name of this one is refused") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 2)};
  const TempDir dir;
  const std::string directory = dir.path().string();
  const auto set = std::make_shared<TableSet>(tables, ServerPlace{});
  const std::string path = piece_path({directory, 8, SaveMode::all, 4}, 0, 0);
  for (const auto& [name, place] : {std::pair(SaveName{directory, 7, SaveMode::all, 4}, ServerPlace{}),
                                    {SaveName{directory, 8, SaveMode::all, 3}, ServerPlace{}},
                                    {SaveName{directory, 8, SaveMode::all, 9}, ServerPlace{}},
                                    {SaveName{directory, 8, SaveMode::base, 4}, ServerPlace{}},
                                    {SaveName{directory, 8, SaveMode::all, 4}, ServerPlace{0, 2}}}) {
    const TempDir other;
    SaveName elsewhere = name;
    elsewhere.directory = other.path().string();
    PartWriter writer(elsewhere, place);
    const std::vector<SavedPiece> pieces = writer.write(tables, TableCut(set, tables));
    std::filesystem::remove(path);
    std::filesystem::remove(dir.file("manifest"));
    std::filesystem::rename(piece_path(elsewhere, 0, 0), path);
    commit_manifest(directory, {8, SaveMode::all, 4, "", {pieces}}, 0);
    CHECK(text_of([&] { one_client(1, tables)->load(directory); }) ==
          path + ": it is not the part that the manifest names");
  }
}

TEST_CASE(
    "where the newest save is damaged or not all there, the one before it is loaded, and that is said") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1)};
  const TempDir dir;
  const std::string directory = dir.path().string();
  const auto client = one_client(2, tables);
  const std::vector<std::uint64_t> keys{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> ones(8, 1.0f);
  for (int i = 0; i < 2; ++i) {
    client->push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
    client->save(directory);
  }
  const auto value_of = [&](Client& other) {
    std::vector<float> rows(8);
    other.pull({.sparse = {{0, keys, rows}}, .dense = {}});
    for (const float row : rows) CHECK(row == rows[0]);  // never one save here and another there
    return rows[0];
  };
  const auto loader = one_client(2, tables);
  CHECK(loader->load(directory).empty());
  CHECK(value_of(*loader) == 2.0f);
  const std::string piece = piece_path({directory, 2, {}, 0, {}}, 1, 0);
  const std::string text = read_text(piece);
  write_text(piece, text.substr(1));
  for (const std::uint32_t servers : {1, 2, 3}) {
    const auto other = one_client(servers, tables);
    CHECK(other->load(directory) == piece + ": it has " + std::to_string(text.size() - 1) +
                                        " bytes, the manifest says " + std::to_string(text.size()));
    CHECK(value_of(*other) == 1.0f);
  }
  write_text(piece, text);
  const std::string manifest = read_text(dir.file("manifest"));
  write_text(dir.file("manifest"), manifest.substr(0, 50));
  CHECK(loader->load(directory) == dir.file("manifest") + ": the manifest is damaged");
  CHECK(value_of(*loader) == 1.0f);
  std::filesystem::remove(dir.file("manifest"));
  CHECK(loader->load(directory).ends_with("there is no complete save in " + directory));
  write_text(dir.file("manifest"), manifest);
  CHECK(loader->load(directory).empty());
  CHECK(value_of(*loader) == 2.0f);
  std::filesystem::remove(dir.file("manifest.previous"));
  write_text(piece, text.substr(1));
  CHECK(error_of([&] { loader->load(directory); }).kind() == fleetrun::ErrorKind::data);
  CHECK(value_of(*loader) == 2.0f);
}

TEST_CASE("what a server keeps beside its tables is its own, and comes back to it") {
  const std::vector<TableConfig> tables{dense_table(0, "d", 3)};
  const TempDir dir;
  const std::string directory = dir.path().string();
  const auto set = std::make_shared<TableSet>(tables, ServerPlace{1, 2});
  const std::vector<NamedBytes> named{{"pushes", {std::byte{1}, std::byte{2}}}, {"empty", {}}};
  PartWriter writer({directory, 1}, {1, 2});
  // A server that saves for itself alone.
  commit_manifest(directory,
                  {1, SaveMode::all, 0, "", {{}, writer.write(tables, TableCut(set, tables), named)}}, 1);
  CHECK(load_tables(directory, {1, 2}, tables).named == named);
  CHECK(text_of([&] {
          load_tables(directory, {0, 3}, tables);
        }) == directory + ": the manifest names no part of server 0");
}

TEST_CASE("a dense table saved before it had values still has none") {
  const std::vector<TableConfig> tables{dense_table(0, "d", 3)};
  const TempDir dir;
  one_client(2, tables)->save(dir.path().string());
  const auto client = one_client(1, tables);
  client->load(dir.path().string());
  std::vector<float> values(3);
  CHECK(text_of([&] {
          client->pull({.sparse = {}, .dense = {{0, values}}});
        }) == "table 'd' has no values yet");
}

TEST_CASE("dense tables may be split in another way than when they were saved") {
  std::vector<TableConfig> tables{dense_table(0, "d", 10, UpdateRule::Kind::adam), dense_table(1, "e", 3)};
  const TempDir dir;
  const auto first = trained_client(3, tables);
  first->save(dir.path().string());
  for (const std::uint64_t min_block : {4, 100}) {
    for (TableConfig& config : tables) config.min_block = min_block;
    const auto second = one_client(3, tables);
    second->load(dir.path().string());
    CHECK(pull_all(*second, tables) == pull_all(*first, tables));
    second->save(dir.file("again"));
    for (TableConfig& config : tables) config.min_block = 0;
    const auto third = one_client(2, tables);
    third->load(dir.file("again"));
    CHECK(pull_all(*third, tables) == pull_all(*first, tables));
  }
}

TEST_CASE("a trainer does not take a server with empty tables beside one that goes on from a checkpoint") {
  const auto greeting = [](std::uint32_t finds) {
    wire::Greeting answer;
    answer.finds = finds;
    return answer;
  };
  for (const bool is_empty_first : {false, true}) {
    Welcome welcome;
    welcome.add(0, greeting(is_empty_first ? wire::kBeganEmpty : wire::kResumed));
    welcome.add(1, greeting(0));  // it was started again since then
    welcome.add(2, greeting(is_empty_first ? wire::kBeganEmpty : wire::kResumed));
    const fleetrun::Error error =
        error_of([&] { welcome.add(3, greeting(is_empty_first ? wire::kResumed : wire::kBeganEmpty)); });
    CHECK(error.kind() == fleetrun::ErrorKind::data);
    CHECK(std::string(error.what()) ==
          (is_empty_first
               ? "server 2 begins with empty tables, and server 3 goes on from the checkpoint of an "
                 "earlier run"
               : "server 3 begins with empty tables, and server 2 goes on from the checkpoint of an "
                 "earlier run"));
    CHECK(error.hint().find("--ps_checkpoint_found=replace") != std::string::npos);
  }
}

TEST_CASE("a trainer does not take servers that were started from different saves") {
  Welcome welcome;
  wire::Greeting answer;
  welcome.add(0, answer);
  answer.started_from = 7;
  welcome.add(1, answer);
  welcome.add(2, {});
  answer.started_from = 8;
  const fleetrun::Error error = error_of([&] { welcome.add(3, answer); });
  CHECK(error.kind() == fleetrun::ErrorKind::data);
  CHECK(std::string(error.what()) == "server 3 was started from another save than the servers before it");
  CHECK(error.hint() ==
        "the newest save is damaged on one of their hosts, or not there: copy one save to all of them");
}
