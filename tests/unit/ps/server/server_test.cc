#include "ps/server/server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "ps/client/channel_client.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

const std::vector<TableConfig> kTables{sparse_table(0, "emb", 2), dense_table(1, "fc", 3)};

// "nothing" while there is no answer, "ok", or the error's text.
std::string ask(Server& server, std::span<const std::byte> request) {
  auto text = std::make_shared<std::string>("nothing");
  Reader reader(request);
  const wire::Header header = wire::read_header(reader);
  server.handle(header, std::move(reader), [text](Outcome outcome) {
    const Error* error = std::get_if<Error>(&outcome);
    *text = error != nullptr ? error->what() : "ok";
  });
  return *text;
}

std::string ask(Server& server, wire::Method method, std::uint64_t incarnation = 7) {
  return ask(server, wire::draft({method, 0, 0, incarnation}, 0).message.bytes());
}

struct Known {
  Server server{{.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = kTables}};

  Known() { REQUIRE(ask(server, make_hello({0, 1, Mode::async, kTables}, 7, 0, 1).bytes()) == "ok"); }
};

Message make_push() {
  wire::PushDraft draft =
      wire::draft_push({wire::Method::push, 0, 0, 7}, {.sparse = {{0, 2, 2}}, .dense = {}});
  draft.keys[0][0] = 1;
  draft.keys[0][1] = 2;
  std::fill(draft.gradients[0].begin(), draft.gradients[0].end(), 1.0f);
  return std::move(draft.message);
}

}  // namespace

TEST_CASE("options that cannot work are refused") {
  CHECK(text_of([] { Server({2, 2, 1, Mode::async, {}}); }) == "server rank 2 among 2 servers");
  CHECK(text_of([] { Server({0, 1, 0, Mode::async, {}}); }) == "a parameter server for 0 trainers");
  CHECK(text_of([] {
          Server({0, 1, 1, Mode::async, {sparse_table(0, "t", 0)}});
        }) == "table 't': its width is 0");
}

TEST_CASE("nobody is served without a hello, and a bad one is refused whole") {
  Server server({.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = kTables});
  const std::string unknown = "trainer 0 is not known to server 0; was the server started again?";
  CHECK(ask(server, make_push().bytes()) == unknown);
  const Message hello = make_hello({0, 1, Mode::async, kTables}, 7, 0, 1);
  for (std::size_t size = 40; size < hello.size(); ++size) {
    REQUIRE(ask(server, hello.bytes().first(size)).starts_with("the message is cut short"));
  }
  CHECK(ask(server, make_push().bytes()) == unknown);
  CHECK(ask(server, hello.bytes()) == "ok");
  CHECK(ask(server, make_push().bytes()) == "ok");
  CHECK(ask(server, wire::Method::goodbye, 8) == unknown);
}

TEST_CASE("requests of every method that are cut short are answered, not obeyed") {
  for (std::uint16_t method = 0; method < wire::kMethodCount; ++method) {
    Known known;
    const auto which = static_cast<wire::Method>(method);
    CHECK(wire::to_string(which) != ask(known.server, which));
  }
  Known known;
  CHECK(ask(known.server, wire::Method::load_commit) == "server 0 has nothing loaded to take over");
  CHECK(ask(known.server, wire::Method::save_part).starts_with("the message is cut short"));
  CHECK(ask(known.server, wire::Method::rows).starts_with("the message is cut short"));
}

TEST_CASE("a push with random bytes changed is applied or refused, and never more") {
  const Message push = make_push();
  std::mt19937 random(5);
  Known known;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(push.bytes().begin(), push.bytes().end());
    for (int i = 0; i < 1 + round % 3; ++i)
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<std::byte>(random());
    if (round % 5 == 0) bytes.resize(40 + random() % (bytes.size() - 40));
    const std::string text = ask(known.server, bytes);
    REQUIRE(text != "nothing");
    refused += text != "ok";
  }
  CHECK(refused > 1000);
  CHECK(refused < 20000);
}

TEST_CASE("too many threads are refused before anything is made for them") {
  Server server({.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::sync, .tables = {}});
  REQUIRE(ask(server, make_hello({0, 1, Mode::sync, {}}, 7, 0, 1).bytes()) == "ok");
  wire::Draft draft = wire::draft({wire::Method::begin_epoch, 0, 0, 7}, sizeof(wire::BeginEpoch));
  draft.writer.value(wire::BeginEpoch{4000000000});
  CHECK(ask(server, draft.message.bytes()) == "begin_epoch with 4000000000 threads; at most 960 fit");
}

TEST_CASE("the last goodbye is reported") {
  int done = 0;
  Server server({.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = {}}, [&] { ++done; });
  REQUIRE(ask(server, make_hello({0, 1, Mode::async, {}}, 7, 0, 1).bytes()) == "ok");
  CHECK(ask(server, wire::Method::goodbye) == "ok");
  CHECK(done == 1);
}

TEST_CASE("a stale trainer changes nothing, is told so, and is counted") {
  Server server(
      {.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = kTables, .generation = 3});
  server.update({3, true, {{0, "a"}, {1, "b"}}});
  ClientOptions sleeper{0, 2, Mode::async, kTables, 3, "a"};
  ClientOptions other{1, 2, Mode::async, kTables, 3, "b"};
  REQUIRE(ask(server, make_hello(sleeper, 7, 0, 1).bytes()) == "ok");
  REQUIRE(ask(server, make_hello(other, 8, 0, 1).bytes()) == "ok");
  const auto push = [&](std::uint64_t generation) {
    wire::PushDraft draft =
        wire::draft_push({wire::Method::push, 0, 0, 7, generation}, {.sparse = {{0, 2, 1}}, .dense = {}});
    draft.keys[0][0] = 1;
    std::fill(draft.gradients[0].begin(), draft.gradients[0].end(), 1.0f);
    return ask(server, draft.message.bytes());
  };
  CHECK(push(3) == "ok");
  CHECK(server.stale_requests() == 0);
  server.update({5, true, {{1, "b"}}});
  CHECK(push(3) == "trainer 0 comes with stale epoch 3, the job is at 5");
  CHECK(ask(server, wire::draft({wire::Method::barrier, 0, 0, 7, 3}, 0).message.bytes())
            .starts_with("trainer 0 comes with stale epoch 3"));
  CHECK(ask(server, make_hello(sleeper, 9, 0, 1).bytes()).starts_with("trainer 0 comes with stale epoch 3"));
  CHECK(server.stale_requests() == 3);
  CHECK(ask(server, wire::draft({wire::Method::barrier, 1, 0, 8, 3}, 0).message.bytes()) == "ok");
}

TEST_CASE("trainers that save at once do so one after the other") {
  const TempDir dir;
  Server server({.rank = 0, .servers = 1, .trainers = 3, .mode = Mode::async, .tables = kTables});
  std::map<std::uint32_t, std::string> answers;
  const auto send = [&](std::uint32_t trainer, const Message& request) {
    Reader reader(request.bytes());
    const wire::Header header = wire::read_header(reader);
    answers[trainer] = "nothing";
    server.handle(header, std::move(reader), [&answers, trainer](Outcome outcome) {
      const Error* error = std::get_if<Error>(&outcome);
      answers[trainer] = error != nullptr ? error->what() : "ok";
    });
    return answers[trainer];
  };
  const auto begin = [&](std::uint32_t trainer, const std::string& directory) {
    wire::Draft draft = wire::draft({wire::Method::save_begin, trainer, 0, 7}, wire::text_size(directory));
    wire::write_text(draft.writer, directory);
    return send(trainer, draft.message);
  };
  const auto end = [&](std::uint32_t trainer) {
    wire::Draft draft = wire::draft({wire::Method::save_end, trainer, 0, 7}, sizeof(std::uint32_t));
    draft.writer.value(std::uint32_t{0});
    return send(trainer, draft.message);
  };
  for (std::uint32_t trainer = 0; trainer < 3; ++trainer)
    send(trainer, make_hello({trainer, 3, Mode::async, kTables}, 7, 0, 1));
  REQUIRE(answers == std::map<std::uint32_t, std::string>{{0, "ok"}, {1, "ok"}, {2, "ok"}});
  const std::string directory = dir.file("saved");
  CHECK(begin(0, directory) == "ok");
  CHECK(begin(1, directory) == "nothing");
  CHECK(begin(2, directory) == "nothing");
  // Who is not saving ends nobody's save.
  CHECK(end(1) == "ok");
  CHECK(begin(1, directory) == "nothing");
  CHECK(end(0) == "ok");
  CHECK(answers[1] == "ok");
  CHECK(answers[2] == "nothing");
  server.close();
  CHECK(answers[2] == "server 0 is ending");
}
