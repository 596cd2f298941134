#include "ps/snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

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
  CHECK(after.size() == 4);
  CHECK(before[1] != after[1]);
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
  // Directories in the way of the manifest and of one server's temporary name for it.
  std::filesystem::create_directory(dir.file("manifest-1.tmp"));
  std::filesystem::rename(dir.file("manifest"), dir.file("kept"));
  std::filesystem::create_directory(dir.file("manifest"));
  CHECK(text_of([&] { client->save(dir.path().string()); }) != "no error");
  std::filesystem::remove(dir.file("manifest"));
  std::filesystem::remove(dir.file("manifest-1.tmp"));
  std::filesystem::rename(dir.file("kept"), dir.file("manifest"));
  for (const std::string& name : before) CHECK(std::filesystem::exists(dir.file(name)));
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
    other[i] = static_cast<char>(other[i] ^ (1 << (i % 8)));
    REQUIRE(refused(other));
    REQUIRE(refused(text.substr(0, i)));
  }
  CHECK(refused(text + "x"));
  std::filesystem::remove(part);
  CHECK(text_of([&] { client->load(dir.path().string()); }) == part + ": the file is not there");
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

TEST_CASE("a part of another save under the name of this one is refused") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 2)};
  const TempDir dir;
  const TableSet set(tables, {});
  const SavedPart part = save_part(dir.path().string(), 7, {}, tables, set);
  write_manifest(dir.path().string(), {8, {part}}, {});
  std::filesystem::rename(dir.file("part-0000000000000007-00000"), dir.file("part-0000000000000008-00000"));
  CHECK(text_of([&] { one_client(1, tables)->load(dir.path().string()); }) ==
        dir.file("part-0000000000000008-00000") + ": it is not the part that the manifest names");
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
