#include "ps/table/memory_quota.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::Error;
using fleetrun::ErrorKind;

TEST_CASE("memory limit: amounts, and what is none") {
  const auto limit = [](const char* text) {
    return memory_limit_of(Environ{{"FLEETRUN_PS_MEMORY_LIMIT", text}});
  };
  CHECK(limit("1000") == 1000);
  CHECK(limit("3K") == 3072);
  CHECK(limit("2G") == std::uint64_t{2} << 30);
  CHECK(limit("0") == 0);
  for (const char* wrong : {"x", "1X", "1GB", "-1", "20000000T", " 1"}) CHECK_THROWS_AS(limit(wrong), Error);
}

TEST_CASE("memory quota: refuses beyond the limit, and says how much there is") {
  MemoryQuota none(0, "server 0", [] { return ~std::uint64_t{0}; });
  CHECK_FALSE(none.is_used_up());
  MemoryQuota enough(100 << 20, "server 0", [] { return std::uint64_t{100} << 20; });
  CHECK_FALSE(enough.is_used_up());
  MemoryQuota little(100 << 20, "server 3", [] { return std::uint64_t{120} << 20; });
  CHECK(little.is_used_up());
  try {
    little.refuse();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::host);
    CHECK(std::string(error.what()) == "server 3 has no memory for new rows: 120 MiB of 100 MiB");
  }
  CHECK(resident_bytes() > 1 << 20);
}

TEST_CASE("memory quota: a server beyond it serves the rows that are there, and refuses to make others") {
  TableConfig table;
  table.name = "sum";
  table.kind = TableConfig::Kind::sparse;
  table.width = 1;
  table.rule.kind = UpdateRule::Kind::sum;
  ServerOptions options;
  options.tables = {table};
  ClientOptions client;
  client.tables = options.tables;
  std::unique_ptr<Server> server;
  std::uint64_t change = 0;
  const auto ask = [&](const Message& request) {
    Outcome out = Error(ErrorKind::usage, "no answer");
    Reader body(request.bytes());
    const wire::Header header = wire::read_header(body);
    server->handle(header, std::move(body), [&out](Outcome outcome) { out = std::move(outcome); });
    return out;
  };
  const auto rows_of = [](std::size_t keys) {
    wire::Rows rows;
    rows.width = 1;
    rows.keys = keys;
    return rows;
  };
  const auto pull = [&](std::vector<std::uint64_t> keys) {
    wire::PullDraft draft = wire::draft_pull({wire::Method::pull, 0, 0, 5}, {{rows_of(keys.size())}, {}});
    std::ranges::copy(keys, draft.keys[0].begin());
    return ask(draft.message);
  };
  const auto push = [&](std::vector<std::uint64_t> keys) {
    wire::PushDraft draft =
        wire::draft_push({wire::Method::push, 0, 0, 5, 0, ++change}, {{rows_of(keys.size())}, {}});
    std::ranges::copy(keys, draft.keys[0].begin());
    std::ranges::fill(draft.gradients[0], 1.0f);
    return ask(draft.message);
  };
  const auto refused = [](const Outcome& outcome) {
    const auto* error = std::get_if<Error>(&outcome);
    return error != nullptr && error->kind() == ErrorKind::host;
  };
  std::uint64_t used = 50;
  options.memory_limit = 100;
  options.memory_used = [&used] { return used; };
  server = std::make_unique<Server>(options);
  CHECK(std::holds_alternative<Message>(ask(make_hello(client, 5, 0, 1))));
  CHECK(std::holds_alternative<Message>(push({1, 2})));
  used = 120;
  // The server looks at its memory every few milliseconds.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (std::uint64_t key = 100; !refused(pull({key})) && std::chrono::steady_clock::now() < deadline;) ++key;
  CHECK(std::holds_alternative<Message>(pull({1, 2})));
  CHECK(std::holds_alternative<Message>(push({2, 1})));
  CHECK(refused(pull({1, 3})));
  CHECK(refused(push({3})));
  const Message one = std::get<Message>(pull({1}));
  Reader answer(one.bytes());
  CHECK(answer.value<float>() == 2.0f);
  CHECK(std::holds_alternative<Message>(ask(wire::draft({wire::Method::goodbye, 0, 0, 5}, 0).message)));
}
