// Rows and gradients that travel shorter, from the client to the tables and back.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ps/base/wire.h"
#include "ps/memory/in_process.h"
#include "runtime/base/error.h"

using namespace fleetrun::ps;

namespace {

std::vector<TableConfig> tables() {
  TableConfig rows;
  rows.name = "rows";
  rows.kind = TableConfig::Kind::sparse;
  rows.width = 10;
  rows.rule.kind = UpdateRule::Kind::sgd;
  rows.rule.learning_rate = 0.1f;
  TableConfig dense = rows;
  dense.id = 1;
  dense.name = "dense";
  dense.kind = TableConfig::Kind::dense;
  dense.width = 700;
  return {rows, dense};
}

// The values after many steps of the same gradients.
std::vector<float> train(Encodings encodings, std::uint32_t servers) {
  ClientOptions options;
  options.tables = tables();
  options.encodings = encodings;
  const auto client = std::move(make_in_process(servers, options)[0]);
  std::vector<float> dense(700, 0.5f);
  client->set_dense(1, dense);
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0.001f, 0.01f);
  const std::vector<std::uint64_t> keys{1, 5, 1, 9};
  std::vector<float> gradients(40), dense_gradients(700), rows(40);
  for (int step = 0; step < 300; ++step) {
    for (float& value : gradients) value = normal(random);
    for (float& value : dense_gradients) value = normal(random);
    client->pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
    client->push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {{1, dense_gradients}}});
  }
  client->pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
  rows.insert(rows.end(), dense.begin(), dense.end());
  return rows;
}

}  // namespace

TEST_CASE("shorter gradients: what is learned is what float32 learns") {
  const std::vector<float> exact = train({}, 2);
  for (const Encoding encoding : {Encoding::float16, Encoding::bfloat16, Encoding::int8}) {
    const std::vector<float> learned = train({encoding, Encoding::float32}, 2);
    for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::fabs(learned[i] - exact[i]) < 5e-5f);
  }
}

TEST_CASE("shorter rows: each as near as its encoding is") {
  const std::vector<float> exact = train({}, 1);
  for (const Encoding encoding : {Encoding::float16, Encoding::bfloat16, Encoding::int8}) {
    const std::vector<float> pulled = train({Encoding::float32, encoding}, 1);
    for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::fabs(pulled[i] - exact[i]) < 0.002f);
  }
}

TEST_CASE("shorter rows: shows and clicks travel as they are, and the values beside them keep their scale") {
  for (const std::size_t width : {1u, 3u, 129u}) {
    CAPTURE(width);
    for (const Encoding encoding :
         {Encoding::float32, Encoding::float16, Encoding::bfloat16, Encoding::int8}) {
      CAPTURE(static_cast<int>(encoding));
      ClientOptions options;
      options.tables = {tables()[0]};
      options.tables[0].width = width;
      options.tables[0].accessor.kind = Accessor::Kind::ctr;
      options.tables[0].rule.learning_rate = 1.0f;
      options.encodings.rows = encoding;
      const auto client = std::move(make_in_process(2, options)[0]);
      const std::vector<std::uint64_t> keys{1, 5, 9};
      const std::vector<float> shows{70001, 1, 3}, clicks{4097, 0, 1};
      std::vector<float> gradients(3 * width), rows(3 * (width + 2));
      for (std::size_t i = 0; i < gradients.size(); ++i)
        gradients[i] = -0.01f * static_cast<float>(i % 7 + 1);
      client->push({.thread = 0, .sparse = {{0, keys, gradients, shows, clicks}}, .dense = {}});
      client->pull({.sparse = {{0, keys, rows}}, .dense = {}});
      for (std::size_t row = 0; row < 3; ++row) {
        CHECK(rows[row * (width + 2)] == shows[row]);
        CHECK(rows[row * (width + 2) + 1] == clicks[row]);
        for (std::size_t i = 0; i < width; ++i)
          CHECK(std::fabs(rows[row * (width + 2) + 2 + i] + gradients[row * width + i]) < 5e-4f);
      }
    }
  }
}

TEST_CASE("a section of an unknown encoding, or cut short, is refused") {
  wire::Rows rows;
  rows.width = 10;
  rows.keys = 2;
  rows.set_encoding(Encoding::int8);
  const wire::PushDraft good = wire::draft_push({wire::Method::push}, {{rows}, {}});
  Reader all(good.message.bytes());
  static_cast<void>(wire::read_header(all));
  CHECK_NOTHROW(wire::read_push(all));
  for (std::size_t cut = 1; cut < 40; ++cut) {
    Reader less(good.message.bytes().first(good.message.bytes().size() - cut));
    static_cast<void>(wire::read_header(less));
    CHECK_THROWS_AS(wire::read_push(less), fleetrun::Error);
  }
  rows.flags = 9u << wire::kEncodingShift;
  const wire::PullDraft bad = wire::draft_pull({wire::Method::pull}, {{rows}, {}});
  Reader reader(bad.message.bytes());
  static_cast<void>(wire::read_header(reader));
  CHECK_THROWS_AS(wire::read_pull(reader), fleetrun::Error);
  rows.width = 0;
  rows.set_encoding(Encoding::int8);
  const wire::PushDraft empty = wire::draft_push({wire::Method::push}, {{rows}, {}});
  Reader of_empty(empty.message.bytes());
  static_cast<void>(wire::read_header(of_empty));
  CHECK_NOTHROW(wire::read_push(of_empty));
}
