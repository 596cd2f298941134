#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;

namespace {

const std::vector<TableConfig> kTables{sparse_table(0, "emb", 1), dense_table(1, "fc", 2)};

struct Asked {
  std::string text = "nothing";
  std::vector<std::byte> bytes;
};

std::shared_ptr<Asked> ask(Server& server, std::span<const std::byte> request) {
  auto asked = std::make_shared<Asked>();
  Reader reader(request);
  const wire::Header header = wire::read_header(reader);
  server.handle(header, std::move(reader), [asked](Outcome outcome) {
    const Error* error = std::get_if<Error>(&outcome);
    asked->text = error != nullptr ? error->what() : "ok";
    if (error == nullptr) {
      const auto bytes = std::get<Message>(outcome).bytes();
      asked->bytes.assign(bytes.begin(), bytes.end());
    }
  });
  return asked;
}

wire::HelloAnswer hello(Server& server, std::uint32_t trainer, std::uint64_t incarnation,
                        Mode mode = Mode::async, std::uint32_t trainers = 2) {
  const auto asked = ask(server, make_hello({trainer, trainers, mode, kTables}, incarnation, 0, 1).bytes());
  REQUIRE(asked->text == "ok");
  return wire::read_greeting(Reader(asked->bytes));
}

// Adds 1 to row `key`.
Message push(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t sequence, std::uint64_t key,
             float gradient = 1.0f) {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, trainer, 0, incarnation, 0, sequence},
                                           {.sparse = {{0, 1, 1}}, .dense = {}});
  draft.keys[0][0] = key;
  draft.gradients[0][0] = gradient;
  return std::move(draft.message);
}

float row(Server& server, std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t key) {
  wire::PullDraft draft =
      wire::draft_pull({wire::Method::pull, trainer, 0, incarnation}, {.sparse = {{0, 1, 1}}, .dense = {}});
  draft.keys[0][0] = key;
  const auto asked = ask(server, draft.message.bytes());
  REQUIRE(asked->text == "ok");
  return Reader(asked->bytes).value<float>();
}

}  // namespace

TEST_CASE("pushes that are duplicated and reordered are applied once") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  hello(server, 1, 8);
  std::vector<Message> messages;
  for (std::uint64_t n = 1; n <= 300; ++n) {
    for (int copies = 0; copies < 3; ++copies) {
      messages.push_back(push(0, 7, n, n % 5));
      messages.push_back(push(1, 8, n, n % 5));
    }
  }
  std::mt19937 random(11);
  std::shuffle(messages.begin(), messages.end(), random);
  for (const Message& message : messages) REQUIRE(ask(server, message.bytes())->text == "ok");
  for (std::uint64_t key = 0; key < 5; ++key) CHECK(row(server, 0, 7, key) == 120.0f);
  CHECK(hello(server, 0, 7).next_change == 301);
}

TEST_CASE("a push that was refused is refused again, and counts as done") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  const std::string nan = "table 'emb': a gradient is NaN; nothing of this push was applied";
  CHECK(ask(server, push(0, 7, 1, 3, std::nanf("")).bytes())->text == nan);
  CHECK(ask(server, push(0, 7, 1, 3).bytes())->text == nan);
  CHECK(row(server, 0, 7, 3) == 0.0f);
  CHECK(hello(server, 0, 7).next_change == 2);
}

TEST_CASE("set_dense is a change like any other: again it changes nothing") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  const auto set = [&](std::uint64_t sequence, float value) {
    wire::Draft draft =
        wire::draft({wire::Method::set_dense, 0, 0, 7, 0, sequence}, sizeof(wire::Floats) + 8);
    draft.writer.value(wire::Floats{1, 0, 2});
    draft.writer.array(std::span<const float>(std::array{value, value}));
    return ask(server, draft.message.bytes())->text;
  };
  CHECK(set(1, 5.0f) == "ok");
  CHECK(set(1, 9.0f) == "ok");
  wire::PullDraft draft =
      wire::draft_pull({wire::Method::pull, 0, 0, 7}, {.sparse = {}, .dense = {{1, 0, 2}}});
  CHECK(Reader(ask(server, draft.message.bytes())->bytes).value<float>() == 5.0f);
}

TEST_CASE("a trainer with another incarnation starts at 1, and the old one's pushes are refused") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  CHECK(ask(server, push(0, 7, 1, 1).bytes())->text == "ok");
  server.lost(0, 7);
  CHECK(hello(server, 0, 9).next_change == 1);
  CHECK(ask(server, push(0, 7, 2, 1).bytes())->text ==
        "trainer 0 is not known to server 0; was the server started again?");
  CHECK(ask(server, push(0, 9, 1, 1).bytes())->text == "ok");
  CHECK(row(server, 0, 9, 1) == 2.0f);
}

TEST_CASE("another process of a trainer is told when what the one before pushed is forgotten") {
  ServerOptions options{.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables};
  options.recover_within = std::chrono::hours(1);
  Server server(options);
  CHECK(hello(server, 0, 7).finds == 0);
  server.lost(0, 7);
  CHECK(hello(server, 0, 8).finds == 0);
  CHECK(ask(server, push(0, 8, 1, 1).bytes())->text == "ok");
  CHECK(hello(server, 0, 8).finds == 0);
  CHECK(hello(server, 1, 9).finds == 0);
  server.lost(0, 8);
  CHECK(hello(server, 0, 10).finds == wire::kForgotten);

  // One that says goodbye and fails after it is started again, too.
  CHECK(ask(server, push(0, 10, 1, 1).bytes())->text == "ok");
  CHECK(ask(server, wire::draft({wire::Method::goodbye, 0, 0, 10}, 0).message.bytes())->text == "ok");
  ClientOptions again{0, 2, Mode::async, kTables};
  again.begins_anew = true;
  const auto greeted = ask(server, make_hello(again, 11, 0, 1).bytes());
  CHECK(wire::read_greeting(Reader(greeted->bytes)).finds == 0);
  CHECK(ask(server, push(0, 11, 1, 1).bytes())->text == "ok");
  CHECK(ask(server, wire::draft({wire::Method::goodbye, 0, 0, 11}, 0).message.bytes())->text == "ok");
  CHECK(hello(server, 0, 12).finds == wire::kForgotten);
}

TEST_CASE("a push of a step that comes again takes part once, and both are answered") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::sync, .tables = kTables});
  std::array<std::shared_ptr<Asked>, 2> begun;
  for (std::uint32_t trainer = 0; trainer < 2; ++trainer) {
    hello(server, trainer, 7 + trainer, Mode::sync);
    wire::Draft draft =
        wire::draft({wire::Method::begin_epoch, trainer, 0, 7 + trainer, 0, 1}, sizeof(wire::BeginEpoch));
    draft.writer.value(wire::BeginEpoch{1});
    begun[trainer] = ask(server, draft.message.bytes());
  }
  CHECK(begun[0]->text == "ok");
  const Message mine = push(0, 7, 1, 4, 3.0f);
  const Message other = push(1, 8, 1, 4, 1.0f);
  const auto first = ask(server, mine.bytes());
  const auto again = ask(server, mine.bytes());
  CHECK(first->text == "nothing");
  CHECK(again->text == "nothing");
  CHECK(ask(server, other.bytes())->text == "ok");
  CHECK(first->text == "ok");
  CHECK(again->text == "ok");
  CHECK(ask(server, mine.bytes())->text == "ok");
  CHECK(row(server, 0, 7, 4) == 2.0f);
}

TEST_CASE("a barrier or a sum that comes again is the same one") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  hello(server, 1, 8);
  const auto sum = [&](std::uint32_t trainer, std::uint64_t number, double value) {
    const Message request = [&] {
      wire::Draft draft = wire::draft({wire::Method::all_reduce, trainer, 0, 7 + trainer, 0, number}, 16);
      draft.writer.value(std::uint64_t{1});
      draft.writer.value(value);
      return std::move(draft.message);
    }();
    return ask(server, request.bytes());
  };
  const auto first = sum(0, 1, 5.0);
  const auto again = sum(0, 1, 5.0);
  CHECK(first->text == "nothing");
  CHECK(again->text == "nothing");
  CHECK(Reader(sum(1, 1, 2.0)->bytes).value<double>() == 7.0);
  CHECK(Reader(first->bytes).value<double>() == 7.0);
  CHECK(Reader(again->bytes).value<double>() == 7.0);
  CHECK(Reader(sum(1, 1, 2.0)->bytes).value<double>() == 7.0);
  CHECK(sum(0, 2, 1.0)->text == "nothing");
  CHECK(hello(server, 1, 8).rounds == std::array<std::uint64_t, 3>{0, 1, 0});
}

TEST_CASE("a goodbye may be said twice") {
  Server server({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables});
  hello(server, 0, 7);
  const Message goodbye = wire::draft({wire::Method::goodbye, 0, 0, 7}, 0).message;
  CHECK(ask(server, goodbye.bytes())->text == "ok");
  CHECK(ask(server, goodbye.bytes())->text == "ok");
  CHECK(ask(server, push(0, 7, 1, 1).bytes())->text == "trainer 0 has said goodbye to server 0 already");
}
