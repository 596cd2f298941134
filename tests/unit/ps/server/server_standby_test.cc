#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "ps/base/key_partition.h"
#include "ps/client/channel_client.h"
#include "ps/memory/in_process.h"
#include "ps/server/server.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_link.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::ask;
using fleetrun::tests::DirectChannel;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;
using fleetrun::tests::three_tables;

namespace {

constexpr std::chrono::seconds kLong{60};

// The n-th key that is server 0's.
std::uint64_t key_of(std::uint64_t n) {
  std::uint64_t key = 0;
  for (;; ++key)
    if (server_of(key, 2) == 0 && n-- == 0) return key;
}

// Server 0, whose standby is on server 1.
struct Pair {
  TempDir directory;
  Mode mode;
  std::atomic<bool> is_cut{false};  // the way between them
  std::function<void(const FollowHead&)> before_holder;
  Server holder;

  explicit Pair(Mode in_mode = Mode::async) : mode(in_mode), holder(options(1)) {}

  ServerOptions options(std::uint32_t rank, const std::string& below = "kept") {
    ServerOptions out{.rank = rank, .servers = 2, .trainers = 1, .mode = mode, .tables = three_tables()};
    out.durability.directory = directory.file(below);
    out.durability.interval = std::chrono::milliseconds(0);
    out.recover_within = std::chrono::minutes(1);
    std::filesystem::create_directory(out.durability.directory);
    if (rank != 0) return out;
    out.standby.name = [] { return "server 1"; };
    out.standby.idle = std::chrono::milliseconds(1);
    out.standby.connect = [this](const std::atomic<bool>&) {
      return std::make_unique<DirectChannel>([this](Reader in, Respond respond) {
        if (is_cut) throw Error(ErrorKind::network, "nobody there");
        const wire::Header header = wire::read_header(in);
        if (before_holder && header.method == wire::Method::follow)
          before_holder(Reader(in).value<FollowHead>());
        holder.handle(header, std::move(in), std::move(respond));
      });
    };
    return out;
  }
};

void wait_until(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (!is_so()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
}

void wait_for_standby(const Server& server) {
  wait_until([&] { return server.stat().find("\"follows\":true") != std::string::npos; });
}

Message answer_of(Server& server, const Message& request) {
  std::future<Outcome> answer = ask(server, request);
  REQUIRE(answer.wait_for(kLong) == std::future_status::ready);
  Outcome outcome = answer.get();
  if (const Error* error = std::get_if<Error>(&outcome)) throw fleetrun::separate_copy(*error);
  return std::move(std::get<Message>(outcome));
}

wire::Greeting hello(Server& server, Mode mode) {
  return wire::read_greeting(
      Reader(answer_of(server, make_hello({0, 1, mode, three_tables()}, 7, 0, 2)).bytes()));
}

Message push(std::uint64_t sequence, std::uint64_t key) {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, 0, 0, 7, 0, sequence},
                                           {.sparse = {{0, 1, 1}, {2, 1, 1}}, .dense = {}});
  for (std::size_t i = 0; i < 2; ++i) {
    draft.keys[i][0] = key_of(key);
    draft.gradients[i][0] = 1.0f;
  }
  return std::move(draft.message);
}

std::vector<float> rows(Server& server, std::uint32_t table) {
  wire::PullDraft draft =
      wire::draft_pull({wire::Method::pull, 0, 0, 7}, {.sparse = {{table, 1, 10}}, .dense = {}});
  for (std::uint64_t n = 0; n < 10; ++n) draft.keys[0][n] = key_of(n);
  const Message answer = answer_of(server, draft.message);
  std::vector<float> out(10);
  Reader(answer.bytes()).read(out.data(), 40);
  return out;
}

}  // namespace

TEST_CASE("a server whose directory is gone goes on from its standby, to the bit, again and again") {
  for (const Mode mode : {Mode::async, Mode::sync}) {
    Pair pair(mode);
    std::uint64_t sequence = 0, number = 0;
    std::vector<float> before[2] = {std::vector<float>(10), std::vector<float>(10)};
    for (int life = 0; life < 4; ++life) {
      auto living = std::make_unique<Server>(pair.options(0));
      Server& server = *living;
      REQUIRE(server.recovery().has_value() == (life > 0));
      if (life > 0) REQUIRE(server.recovery()->standby == "server 1");
      const wire::Greeting greeting = hello(server, mode);
      REQUIRE(greeting.next_change == sequence + 1);
      if (life > 0) REQUIRE(greeting.server == number);
      number = greeting.server;
      if (life > 0) REQUIRE(rows(server, 0) == before[0]);
      if (life > 0) REQUIRE(rows(server, 2) == before[1]);
      wait_for_standby(server);
      if (mode == Mode::sync && life == 0) {
        wire::Draft draft = wire::draft({wire::Method::begin_epoch, 0, 0, 7, 0, 1}, sizeof(wire::BeginEpoch));
        draft.writer.value(wire::BeginEpoch{1});
        answer_of(server, draft.message);
      }
      for (int i = 0; i < 20; ++i) {
        ++sequence;
        answer_of(server, push(sequence, sequence * sequence % 10));
      }
      before[0] = rows(server, 0);
      before[1] = rows(server, 2);
      living.reset();
      std::filesystem::remove_all(pair.directory.file("kept") + "/server-00000");
    }
  }
}

TEST_CASE("a standby follows once it has all, and not before") {
  Pair pair;
  Server* asked = nullptr;
  std::atomic<int> on_the_way{0}, said_so{0};
  pair.before_holder = [&](const FollowHead& head) {
    if (head.what == FollowHead::records) return;
    ++on_the_way;
    if (asked->stat().find("\"follows\":true") != std::string::npos) ++said_so;
  };
  pair.is_cut = true;
  Server server(pair.options(0));
  asked = &server;
  hello(server, Mode::async);
  answer_of(server, push(1, 1));
  pair.is_cut = false;
  wait_for_standby(server);
  CHECK(on_the_way >= 3);  // its beginning, its pieces, and that answers wait for it
  CHECK(said_so == 0);
}

TEST_CASE("a standby that could not be reached has less than the directory, and is not asked") {
  Pair pair;
  {
    Server server(pair.options(0));
    hello(server, Mode::async);
    wait_for_standby(server);
    answer_of(server, push(1, 3));
    pair.is_cut = true;
    answer_of(server, push(2, 3));
    CHECK(server.stat().find("\"follows\":false") != std::string::npos);
  }
  pair.is_cut = false;
  CHECK(pair.holder.stat().find("\"whole\":true") != std::string::npos);
  Server server(pair.options(0));
  REQUIRE(server.recovery());
  CHECK(server.recovery()->standby.empty());
  CHECK(hello(server, Mode::async).next_change == 3);
  wait_for_standby(server);
  answer_of(server, push(3, 3));
}

TEST_CASE("who is superseded answers nothing any more, and ends") {
  Pair pair;
  std::promise<std::string> ended;
  Server first(
      pair.options(0), [] {},
      [&](const Error& error, bool is_fatal) {
        if (is_fatal) ended.set_value(error.what());
      });
  hello(first, Mode::async);
  wait_for_standby(first);
  answer_of(first, push(1, 3));
  Server second(pair.options(0, "elsewhere"));
  REQUIRE(second.recovery());
  CHECK(hello(second, Mode::async).next_change == 2);
  const std::future<Outcome> answer = ask(first, push(2, 3));
  auto said = ended.get_future();
  REQUIRE(said.wait_for(kLong) == std::future_status::ready);
  CHECK(said.get().find("another process of server 0 has taken its state from server 1") !=
        std::string::npos);
  CHECK(answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  answer_of(second, push(2, 4));
}

namespace {

std::string save_some(const Pair& pair) {
  const auto client = std::move(make_in_process(1, 1, Mode::async, three_tables()).front());
  client->set_dense(1, std::vector<float>{5.0f, 6.0f});
  std::vector<std::uint64_t> keys(10);
  for (std::uint64_t n = 0; n < 10; ++n) keys[n] = key_of(n);
  client->push({.sparse = {{2, keys, std::vector<float>(10, 2.0f)}}, .dense = {}});
  const std::string directory = pair.directory.file("saved");
  client->save(directory);
  return directory;
}

}  // namespace

TEST_CASE("a server that ended before it had loaded what it starts from loads it when it is started again") {
  for (const bool from_standby : {false, true}) {
    CAPTURE(from_standby);
    Pair pair;
    const std::string saved = save_some(pair);
    {
      Server server(pair.options(0));
      wait_for_standby(server);
    }
    if (from_standby) std::filesystem::remove_all(pair.directory.file("kept") + "/server-00000");
    std::vector<float> loaded;
    {
      Server server(pair.options(0));
      REQUIRE(server.recovery());
      server.load(saved);
      wait_for_standby(server);
      hello(server, Mode::async);
      loaded = rows(server, 2);
      CHECK(loaded != std::vector<float>(10));
    }
    Server server(pair.options(0));
    std::filesystem::remove_all(saved);  // somebody has come since then: it has more than the save
    server.load(saved);
    hello(server, Mode::async);
    CHECK(rows(server, 2) == loaded);
  }
}

TEST_CASE("tables that were loaded are what the standby hands back") {
  Pair pair;
  const std::string saved = save_some(pair);
  std::vector<float> loaded;
  {
    Server server(pair.options(0));
    wait_for_standby(server);
    server.load(saved);
    hello(server, Mode::async);
    wait_for_standby(server);
    loaded = rows(server, 2);
  }
  std::filesystem::remove_all(pair.directory.file("kept") + "/server-00000");
  Server server(pair.options(0));
  REQUIRE(server.recovery());
  hello(server, Mode::async);
  CHECK(rows(server, 2) == loaded);
  CHECK(loaded != std::vector<float>(10));
}

TEST_CASE("a server that may hold all that there is of another is not handed on") {
  Pair pair;
  const std::uint64_t offer = pair.holder.offer();
  REQUIRE(offer != 0);
  bool is_moved = false;
  const auto hand_on = [&] { return pair.holder.hand_on(offer, [&] { is_moved = true; }); };
  {
    Server server(pair.options(0));
    wait_for_standby(server);
  }
  for (int i = 0; i < 20; ++i) CHECK_FALSE(hand_on());
  std::filesystem::remove_all(pair.directory.file("kept") + "/server-00000");
  Server server(pair.options(0));
  CHECK(server.recovery()->standby == "server 1");
  wait_until(hand_on);
  CHECK(is_moved);
}

TEST_CASE("a standby is refused for what it cannot follow") {
  Pair pair;
  ServerOptions options = pair.options(0);
  options.tables[0].on_disk = true;
  CHECK(text_of([&] { Server server(options); }) ==
        "table 'emb' has rows on disk, which a standby cannot follow");
  options = pair.options(0);
  options.durability.directory.clear();
  CHECK(text_of([&] { Server server(options); }) == "a standby of a server that keeps nothing");
}
