#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <random>

#include "ps/client/channel_client.h"
#include "ps/durable/log_format.h"
#include "ps/server/server.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::error_of;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;
using fleetrun::tests::three_tables;

namespace {

ServerOptions options(const TempDir& directory, Mode mode = Mode::async) {
  ServerOptions out{.rank = 0, .servers = 1, .trainers = 2, .mode = mode, .tables = three_tables()};
  out.durability.directory = directory.path().string();
  out.durability.interval = std::chrono::milliseconds(0);
  out.durability.log_bytes = 0;
  out.recover_within = std::chrono::minutes(1);
  return out;
}

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
    if (error != nullptr) return;
    const auto bytes = std::get<Message>(outcome).bytes();
    asked->bytes.assign(bytes.begin(), bytes.end());
  });
  return asked;
}

wire::Greeting hello(Server& server, std::uint32_t trainer, Mode mode = Mode::async) {
  const Message request = make_hello({trainer, 2, mode, three_tables()}, 7 + trainer, 0, 1);
  const auto asked = ask(server, request.bytes());
  REQUIRE(asked->text == "ok");
  return wire::read_greeting(Reader(asked->bytes));
}

Message push(std::uint32_t trainer, std::uint64_t sequence, std::uint64_t key, float gradient = 1.0f) {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, trainer, 0, 7 + trainer, 0, sequence},
                                           {.sparse = {{0, 1, 1}, {2, 1, 1}}, .dense = {}});
  for (std::size_t i = 0; i < 2; ++i) {
    draft.keys[i][0] = key;
    draft.gradients[i][0] = gradient;
  }
  return std::move(draft.message);
}

std::shared_ptr<Asked> begin(Server& server, std::uint32_t trainer, std::uint64_t number) {
  wire::Draft draft =
      wire::draft({wire::Method::begin_epoch, trainer, 0, 7 + trainer, 0, number}, sizeof(wire::BeginEpoch));
  draft.writer.value(wire::BeginEpoch{1});
  return ask(server, draft.message.bytes());
}

std::vector<float> rows(Server& server, std::uint32_t table) {
  wire::PullDraft draft =
      wire::draft_pull({wire::Method::pull, 0, 0, 7}, {.sparse = {{table, 1, 10}}, .dense = {}});
  for (std::uint64_t key = 0; key < 10; ++key) draft.keys[0][key] = key;
  const auto asked = ask(server, draft.message.bytes());
  REQUIRE(asked->text == "ok");
  std::vector<float> out(10);
  Reader(asked->bytes).read(out.data(), 40);
  return out;
}

}  // namespace

TEST_CASE("a server that was killed at any moment has every push that it answered, once, to the bit") {
  const TempDir directory;
  std::mt19937 random(5);
  Server witness({.rank = 0, .servers = 1, .trainers = 2, .mode = Mode::async, .tables = three_tables()});
  hello(witness, 0);
  hello(witness, 1);
  std::map<std::uint32_t, std::uint64_t> sequence;
  for (int life = 0; life < 40; ++life) {
    Server server(options(directory));
    REQUIRE(server.recovery().has_value() == (life > 0));
    for (const std::uint32_t trainer : {0u, 1u})
      REQUIRE(hello(server, trainer).next_change == sequence[trainer] + 1);
    REQUIRE(rows(server, 0) == rows(witness, 0));
    REQUIRE(rows(server, 2) == rows(witness, 2));
    const auto pushes = random() % 20;
    for (std::uint32_t i = 0; i < pushes; ++i) {
      const std::uint32_t trainer = random() % 2;
      const Message request =
          push(trainer, ++sequence[trainer], random() % 10, static_cast<float>(random() % 7));
      for (auto copies = random() % 2 + 1; copies > 0; --copies)
        REQUIRE(ask(server, request.bytes())->text == "ok");
      REQUIRE(ask(witness, request.bytes())->text == "ok");
      if (random() % 10 == 0) server.make_checkpoint();
    }
  }
}

TEST_CASE("rows that were assigned survive a kill, once, also in mode sync") {
  for (const Mode mode : {Mode::async, Mode::sync}) {
    const TempDir directory;
    wire::PushDraft draft = wire::draft_push({wire::Method::assign, 0, 0, 7, 0, 1},
                                             {.sparse = {{0, 1, 1}, {2, 1, 1}}, .dense = {}});
    for (std::size_t i = 0; i < 2; ++i) {
      draft.keys[i][0] = 4;
      draft.gradients[i][0] = 25.0f;
    }
    {
      Server server(options(directory, mode));
      for (const std::uint32_t trainer : {0u, 1u}) hello(server, trainer, mode);
      CHECK(ask(server, draft.message.bytes())->text == "ok");
      CHECK(rows(server, 2)[4] == 25.0f);
    }
    Server server(options(directory, mode));
    CHECK(hello(server, 0, mode).next_change == 2);
    CHECK(rows(server, 0)[4] == 25.0f);
    CHECK(ask(server, draft.message.bytes())->text == "ok");
    CHECK(rows(server, 2)[4] == 25.0f);
  }
}

TEST_CASE("a checkpoint makes the log short, and what it replaces goes") {
  const TempDir directory;
  {
    Server server(options(directory));
    hello(server, 0);
    for (std::uint64_t n = 1; n <= 5; ++n) ask(server, push(0, n, n).bytes());
    server.make_checkpoint();
    ask(server, push(0, 6, 6).bytes());
  }
  Server server(options(directory));
  REQUIRE(server.recovery());
  CHECK(server.recovery()->checkpoint == 2);
  CHECK(server.recovery()->records == 1);
  CHECK(server.recovery()->awaited == std::vector<ClientId>{{0, 7}});
  std::size_t parts = 0, logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path().string() + "/server-00000")) {
    parts += entry.path().filename().string().starts_with("part-");
    logs += entry.path().filename().string().starts_with("log-");
  }
  CHECK(parts > 0);
  // That from the first checkpoint to the second, from there to the end, and the new one.
  CHECK(logs == 3);
}

TEST_CASE("steps, sums and passes go on where they were") {
  const TempDir directory;
  bool checkpointed = false;
  SUBCASE("by the log") {}
  SUBCASE("by a checkpoint in the middle of a step") {
    checkpointed = true;
  }
  {
    Server server(options(directory, Mode::sync));
    for (const std::uint32_t trainer : {0u, 1u}) hello(server, trainer, Mode::sync);
    const auto first = begin(server, 0, 1);
    CHECK(begin(server, 1, 1)->text == "ok");
    CHECK(first->text == "ok");
    const Message mine = push(0, 1, 3, 4.0f);
    const Message other = push(1, 1, 3, 2.0f);
    const auto pushed = ask(server, mine.bytes());
    if (checkpointed) server.make_checkpoint();
    CHECK(ask(server, other.bytes())->text == "ok");
    CHECK(pushed->text == "ok");
    // Half a step: never answered, so it comes again.
    CHECK(ask(server, push(0, 2, 3, 4.0f).bytes())->text == "nothing");
  }
  Server server(options(directory, Mode::sync));
  for (const std::uint32_t trainer : {0u, 1u}) {
    const wire::Greeting answer = hello(server, trainer, Mode::sync);
    CHECK(answer.next_change == 2);
    CHECK(answer.rounds[2] == 1);
  }
  CHECK(begin(server, 0, 1)->text == "ok");
  CHECK(rows(server, 2)[3] == 3.0f);
  CHECK(ask(server, push(1, 1, 3, 2.0f).bytes())->text == "ok");
  CHECK(rows(server, 2)[3] == 3.0f);
  const Message mine = push(0, 2, 3, 4.0f);
  const Message other = push(1, 2, 3, 2.0f);
  const auto pushed = ask(server, mine.bytes());
  CHECK(pushed->text == "nothing");
  CHECK(ask(server, other.bytes())->text == "ok");
  CHECK(pushed->text == "ok");
  CHECK(rows(server, 2)[3] == 6.0f);
}

TEST_CASE("a checkpoint made while the server stops has the epoch that trainers are in") {
  const TempDir directory;
  {
    Server server(options(directory, Mode::sync));
    for (const std::uint32_t trainer : {0u, 1u}) hello(server, trainer, Mode::sync);
    begin(server, 0, 1);
    begin(server, 1, 1);
    const auto waits = ask(server, push(0, 1, 3, 4.0f).bytes());
    server.close();
    CHECK(waits->text == "server 0 is stopping");
    server.make_checkpoint();
  }
  Server server(options(directory, Mode::sync));
  for (const std::uint32_t trainer : {0u, 1u}) hello(server, trainer, Mode::sync);
  const Message mine = push(0, 1, 3, 4.0f);
  const auto pushed = ask(server, mine.bytes());
  CHECK(pushed->text == "nothing");
  CHECK(ask(server, push(1, 1, 3, 2.0f).bytes())->text == "ok");
  CHECK(pushed->text == "ok");
}

TEST_CASE("that a trainer left its epoch survives a power failure once the trainer has been told") {
  const TempDir directory;
  ServerOptions mine = options(directory, Mode::sync);
  mine.durability.sync = LogSync::power;
  Server server(mine);
  const auto asked = [&server](const Message& request) {
    auto told = std::make_shared<std::promise<void>>();
    Reader reader(request.bytes());
    const wire::Header header = wire::read_header(reader);
    server.handle(header, std::move(reader), [told](Outcome) { told->set_value(); });
    return told->get_future();
  };
  const auto request = [](wire::Method method, std::uint32_t trainer) {
    const bool begins = method == wire::Method::begin_epoch;
    wire::Draft draft =
        wire::draft({method, trainer, 0, 7 + trainer, 0, 1}, begins ? sizeof(wire::BeginEpoch) : 4);
    if (begins) draft.writer.value(wire::BeginEpoch{1});
    return std::move(draft.message);
  };
  const Message hellos[] = {make_hello({0, 2, Mode::sync, three_tables()}, 7, 0, 1),
                            make_hello({1, 2, Mode::sync, three_tables()}, 8, 0, 1)};
  for (const Message& hello : hellos) asked(hello).get();
  const Message begins[] = {request(wire::Method::begin_epoch, 0), request(wire::Method::begin_epoch, 1)};
  auto first = asked(begins[0]);
  asked(begins[1]).get();
  first.get();
  for (const std::uint32_t trainer : {0u, 1u}) {
    const Message leave = wire::draft({wire::Method::leave_epoch, trainer, 0, 7 + trainer, 0, 1}, 0).message;
    asked(leave).get();
  }
  // The second record says how much of the log was safe when it was written: all before it.
  const std::string log = directory.path().string() + "/server-00000/log-0000000000000002";
  std::ifstream file(log, std::ios::binary);
  std::uint64_t at = sizeof(SegmentHead);
  RecordHead head, last;
  std::uint64_t begin_of_last = 0;
  while (file.seekg(static_cast<std::streamoff>(at)) &&
         file.read(reinterpret_cast<char*>(&head), sizeof head)) {
    last = head;
    begin_of_last = at;
    at += sizeof head + head.length;
  }
  CHECK(begin_of_last > sizeof(SegmentHead));
  CHECK(last.durable == begin_of_last);
}

TEST_CASE("a refusal is remembered, and dense values come back") {
  const TempDir directory;
  const auto set = [](Server& server, std::uint64_t sequence, float value) {
    wire::Draft draft =
        wire::draft({wire::Method::set_dense, 0, 0, 7, 0, sequence}, sizeof(wire::Floats) + 8);
    draft.writer.value(wire::Floats{1, 0, 2});
    draft.writer.value(value);
    draft.writer.value(value);
    return ask(server, draft.message.bytes())->text;
  };
  std::string refusal;
  {
    Server server(options(directory));
    hello(server, 0);
    CHECK(set(server, 1, 5.0f) == "ok");
    refusal = ask(server, push(0, 2, 1, std::numeric_limits<float>::infinity()).bytes())->text;
    CHECK(refusal == "table 'emb': a gradient is infinite; nothing of this push was applied");
  }
  Server server(options(directory));
  CHECK(hello(server, 0).next_change == 3);
  CHECK(ask(server, push(0, 2, 1).bytes())->text == refusal);
  CHECK(set(server, 1, 9.0f) == "ok");
  wire::PullDraft draft =
      wire::draft_pull({wire::Method::pull, 0, 0, 7}, {.sparse = {}, .dense = {{1, 0, 2}}});
  CHECK(Reader(ask(server, draft.message.bytes())->bytes).value<float>() == 5.0f);
}

TEST_CASE("who may come back is waited for, and lost when it does not") {
  const TempDir directory;
  {
    Server server(options(directory));
    hello(server, 0);
    hello(server, 1);
  }
  Server server(options(directory));
  hello(server, 0);
  const Message barrier = wire::draft({wire::Method::barrier, 0, 0, 7, 0, 1}, 0).message;
  const auto waits = ask(server, barrier.bytes());
  CHECK(waits->text == "nothing");
  server.give_up(1, 8);
  CHECK(waits->text == "trainer 1 is gone: its connection to server 0 ended without a goodbye");
}

TEST_CASE(
    "another program is refused, what another run has left is not removed unasked, and one directory is one "
    "server's") {
  const TempDir directory;
  {
    Server server(options(directory));
    hello(server, 0);
    ask(server, push(0, 1, 3).bytes());
    CHECK(text_of([&] { Server(options(directory)); }) ==
          directory.path().string() + "/server-00000 is in use by another server");
  }
  ServerOptions wider = options(directory);
  wider.tables[2].width = 4;
  const Error error = error_of([&] { Server{wider}; });
  CHECK(error.kind() == ErrorKind::config);
  const std::string was = describe(three_tables()[2]), is = describe(wider.tables[2]);
  CHECK(std::string(error.what()) ==
        "the checkpoint in " + directory.path().string() + "/server-00000 is of " + was + ", this is " + is);
  ServerOptions other = options(directory);
  other.durability.run = "another-0";
  const Error refusal = error_of([&] { Server{other}; });
  CHECK(refusal.kind() == ErrorKind::config);
  CHECK(std::string(refusal.what()) ==
        directory.path().string() +
            "/server-00000 has the checkpoint of an earlier run: server 0 of 1, mode async");
  CHECK(refusal.hint().find("--ps_checkpoint_found=resume") != std::string::npos);
  CHECK(Server(options(directory)).recovery().has_value());
  other.durability.found = FoundCheckpoint::replace;
  Server server(other);
  CHECK_FALSE(server.recovery());
  CHECK(hello(server, 0).next_change == 1);
  CHECK(rows(server, 2)[3] == 0.0f);
}

TEST_CASE(
    "a trainer that was killed and came as another, and then a server that was killed: it goes on with that "
    "one") {
  const TempDir directory;
  const Message another = make_hello({0, 2, Mode::async, three_tables()}, 99, 0, 1);
  {
    Server server(options(directory));
    hello(server, 0);
    CHECK(ask(server, push(0, 1, 3).bytes())->text == "ok");
    CHECK(server.lost(0, 7));
    CHECK(ask(server, another.bytes())->text == "ok");
  }
  Server server(options(directory));
  REQUIRE(server.recovery());
  CHECK(server.recovery()->awaited == std::vector<ClientId>{{0, 99}});
  CHECK(wire::read_greeting(Reader(ask(server, another.bytes())->bytes)).next_change == 1);
  CHECK(ask(server, push(0, 2, 3).bytes())->text != "ok");
}

TEST_CASE("a later attempt of a run begins anew without being asked to") {
  const TempDir directory;
  ServerOptions first = options(directory);
  first.durability.run = "77-0";
  {
    Server server(first);
    hello(server, 0);
    ask(server, push(0, 1, 3).bytes());
  }
  first.durability.run = "77-1";
  Server server(first);
  CHECK_FALSE(server.recovery());
  hello(server, 0);
  CHECK(rows(server, 2)[3] == 0.0f);
}

TEST_CASE("a run that is to go on from another has its tables and changes; its trainers meet anew") {
  const TempDir directory;
  for (std::uint64_t run = 1; run <= 4; ++run) {
    CAPTURE(run);
    ServerOptions mine = options(directory);
    mine.durability.run = std::to_string(run) + "-0";
    mine.durability.found = FoundCheckpoint::resume;
    Server server(mine);
    CHECK(server.recovery().has_value() == (run > 1));
    if (run > 1) CHECK(server.recovery()->awaited.empty());
    // A barrier of the run before, which trainer 1 never came to, is nobody's.
    CHECK(hello(server, 1).rounds[0] == 0);
    // Trainer 0 comes back with its identity, and 1 as somebody else.
    CHECK(hello(server, 0).next_change == 2 * run - 1);
    CHECK(rows(server, 2)[3] == static_cast<float>(2 * run - 2));
    CHECK(ask(server, push(0, 2 * run - 1, 3).bytes())->text == "ok");
    if (run % 2 == 0) server.make_checkpoint();
    CHECK(ask(server, push(0, 2 * run - 1, 3).bytes())->text == "ok");
    CHECK(ask(server, push(0, 2 * run, 3).bytes())->text == "ok");
    ask(server, wire::draft({wire::Method::barrier, 0, 0, 7, 0, 1}, 0).message.bytes());
  }
}

TEST_CASE("a run that is to go on from nothing begins with empty tables and says so, or is refused") {
  const TempDir directory;
  const std::string nothing = directory.path().string() + "/server-00000 has no checkpoint to go on from";
  ServerOptions mine = options(directory);
  mine.durability.found = FoundCheckpoint::require;
  const Error refusal = error_of([&] { Server{mine}; });
  CHECK(refusal.kind() == ErrorKind::config);
  CHECK(std::string(refusal.what()) == nothing);
  mine.durability.found = FoundCheckpoint::resume;
  std::vector<std::string> said;
  const auto listen = [&](const Error& error, bool is_fatal) {
    CHECK_FALSE(is_fatal);
    said.emplace_back(error.what());
  };
  CHECK_FALSE(Server(
                  mine, [] {}, listen)
                  .recovery()
                  .has_value());
  CHECK(said == std::vector<std::string>{nothing + "; its tables start empty"});
  mine.durability.found = FoundCheckpoint::require;
  mine.durability.run = "2-0";
  CHECK(Server(
            mine, [] {}, listen)
            .recovery()
            .has_value());
  CHECK(said.size() == 1);
}

TEST_CASE("a server that has served does not begin with empty tables where what it kept is gone") {
  const TempDir directory;
  ServerOptions mine = options(directory);
  mine.durability.run = "1-0";
  const auto own = directory.path() / "server-00000";
  const auto is_lost = [&] {
    std::filesystem::remove_all(own);
    const Error error = error_of([&] { Server{mine}; });
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.hint().find("--ps_replicas=1") != std::string::npos);
    return std::string(error.what()) ==
           "server 0 has lost its tables: what its earlier process kept in " + own.string() + " is gone";
  };
  { Server server(mine); }
  mine.durability.served = "1-0";
  CHECK(Server(mine).recovery());
  CHECK(is_lost());
  CHECK(is_lost());  // and the next process does not take what that one left for its own
  // All are started again together: with nothing, unless they are to go on with what there was.
  mine.durability.run = "1-1";
  CHECK_FALSE(Server(mine).recovery());
  mine.durability.run = "1-2";
  for (const auto found : {FoundCheckpoint::resume, FoundCheckpoint::require}) {
    mine.durability.found = found;
    CHECK(is_lost());
  }
  mine.durability.served.clear();
  mine.durability.found = FoundCheckpoint::resume;
  CHECK_FALSE(Server(mine).recovery());
}

TEST_CASE("a trainer is told who goes on from an earlier run and who was to") {
  const TempDir directory;
  ServerOptions mine = options(directory);
  const auto finds = [&](const char* run, FoundCheckpoint found) {
    mine.durability.run = run;
    mine.durability.found = found;
    Server server(mine);
    return hello(server, 0).finds;
  };
  CHECK(finds("1-0", FoundCheckpoint::refuse) == 0);
  CHECK(finds("1-0", FoundCheckpoint::refuse) == 0);
  CHECK(finds("2-0", FoundCheckpoint::resume) == wire::kResumed);
  std::filesystem::remove_all(directory.path() / "server-00000");
  CHECK(finds("3-0", FoundCheckpoint::resume) == wire::kBeganEmpty);
}

TEST_CASE("a run that ended while it took another's checkpoint over is gone on from by the next") {
  const TempDir directory;
  ServerOptions mine = options(directory);
  mine.durability.run = "1-0";
  {
    Server server(mine);
    hello(server, 0);
    ask(server, push(0, 1, 3).bytes());
  }
  const auto owner = directory.path() / "server-00000" / "owner";
  const auto kept = directory.path() / "owner of the first";
  std::filesystem::copy_file(owner, kept);
  mine.durability.found = FoundCheckpoint::resume;
  mine.durability.run = "2-0";
  CHECK(Server(mine).recovery().has_value());
  // As if it had been killed between its checkpoint and its mark.
  std::filesystem::copy_file(kept, owner, std::filesystem::copy_options::overwrite_existing);
  mine.durability.run = "3-0";
  Server server(mine);
  hello(server, 0);
  CHECK(rows(server, 2)[3] == 1.0f);
}

TEST_CASE("memory and log stay small while a thousand incarnations of a trainer come and go") {
  const TempDir directory;
  ServerOptions mine = options(directory);
  mine.trainers = 1;
  mine.recover_within = std::chrono::milliseconds(0);
  Server server(mine);
  for (std::uint64_t incarnation = 1; incarnation <= 1000; ++incarnation) {
    REQUIRE(ask(server, make_hello({0, 1, Mode::async, three_tables()}, incarnation, 0, 1).bytes())->text ==
            "ok");
    for (std::uint64_t n = 1; n <= 3; ++n) {
      wire::PushDraft draft = wire::draft_push({wire::Method::push, 0, 0, incarnation, 0, 2 * n},
                                               {.sparse = {{2, 1, 1}}, .dense = {}});
      draft.keys[0][0] = 5;
      draft.gradients[0][0] = 1.0f;
      REQUIRE(ask(server, draft.message.bytes())->text == "ok");
    }
    CHECK_FALSE(server.lost(0, incarnation));
  }
  server.make_checkpoint();
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() / "server-00000")) {
    if (entry.path().filename().string().starts_with("part-")) bytes += entry.file_size();
  }
  CHECK(bytes < 4000);
}
