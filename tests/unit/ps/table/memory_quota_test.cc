#include "ps/table/memory_quota.h"

#include <doctest/doctest.h>

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
  CHECK_NOTHROW(none.check());
  MemoryQuota enough(100 << 20, "server 0", [] { return std::uint64_t{100} << 20; });
  CHECK_NOTHROW(enough.check());
  MemoryQuota little(100 << 20, "server 3", [] { return std::uint64_t{120} << 20; });
  try {
    little.check();
    FAIL("it was not refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::host);
    CHECK(std::string(error.what()) == "server 3 has used its memory up: 120 MiB of 100 MiB");
  }
  CHECK(resident_bytes() > 1 << 20);
}

TEST_CASE("memory quota: a server beyond it refuses pulls and pushes, and answers all else") {
  TableConfig table;
  table.name = "sum";
  table.kind = TableConfig::Kind::sparse;
  table.width = 1;
  table.rule.kind = UpdateRule::Kind::sum;
  ServerOptions options;
  options.tables = {table};
  options.memory_limit = 1;
  Server server(options);
  const auto ask = [&](const Message& request) {
    Outcome out = Error(ErrorKind::usage, "no answer");
    Reader body(request.bytes());
    const wire::Header header = wire::read_header(body);
    server.handle(header, std::move(body), [&out](Outcome outcome) { out = std::move(outcome); });
    return out;
  };
  ClientOptions client;
  client.tables = options.tables;
  CHECK(std::holds_alternative<Message>(ask(make_hello(client, 5, 0, 1))));
  wire::Rows rows;
  rows.width = 1;
  rows.keys = 1;
  wire::PullDraft pull = wire::draft_pull({wire::Method::pull, 0, 0, 5}, {{rows}, {}});
  pull.keys[0][0] = 1;
  CHECK(std::get<Error>(ask(pull.message)).kind() == ErrorKind::host);
  wire::PushDraft push = wire::draft_push({wire::Method::push, 0, 0, 5, 0, 1}, {{rows}, {}});
  push.keys[0][0] = 1;
  push.gradients[0][0] = 1;
  CHECK(std::get<Error>(ask(push.message)).kind() == ErrorKind::host);
  CHECK(std::holds_alternative<Message>(ask(wire::draft({wire::Method::goodbye, 0, 0, 5}, 0).message)));
}
