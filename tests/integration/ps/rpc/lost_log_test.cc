// A server whose disk has lost what the log was given: some of what it was asked is never answered.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>

#include "ps/rpc/rpc_server.h"
#include "runtime/base/error.h"
#include "tests/integration/ps/saving/file_faults.h"
#include "tests/support/port_lease.h"
#include "tests/support/ps_connect.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;
using fleetrun::Error;

TEST_CASE("a server whose disk has lost its log ends, and the next one answers what it was asked") {
  const TempDir directory;
  const PortLease port(SO_REUSEPORT);
  const std::vector<TableConfig> tables{sparse_table(0, "count", 1)};
  ServerOptions options{.rank = 0, .servers = 1, .trainers = 1, .mode = Mode::async, .tables = tables};
  options.durability.directory = directory.file("kept");
  options.durability.interval = std::chrono::milliseconds(0);
  options.durability.sync = LogSync::power;
  options.recover_within = std::chrono::minutes(2);
  const std::string mine = options.durability.directory + "/server-00000";
  const auto make = [&] {
    return std::make_unique<RpcServer>(options, port.endpoint(), RpcServerOptions{.held_by_launcher = true});
  };
  watch_files(mine, FileFault::none, 0);
  auto server = make();
  const auto client = connect_as_told({port.endpoint()}, {.trainer = 0, .trainers = 1, .tables = tables},
                                      {.recover_within = std::chrono::minutes(2)});
  const std::vector<std::uint64_t> keys{5};
  const std::vector<float> ones{1.0f};
  client->push({.sparse = {{0, keys, ones}}, .dense = {}});
  watch_files(mine, FileFault::io_error, 2);  // the push is written, and not synced
  const auto pending = client->push_async({.sparse = {{0, keys, ones}}, .dense = {}});
  std::promise<std::string> said;
  std::thread waiting([&] {
    try {
      server->wait();
      said.set_value("nothing");
    } catch (const Error& error) {
      said.set_value(error.what());
    }
  });
  auto ended = said.get_future();
  REQUIRE(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  waiting.join();
  CHECK(ended.get().find("Input/output error") != std::string::npos);
  stop_watching_files();
  server.reset();
  server = make();
  pending->wait();
  std::vector<float> row(1);
  client->pull({.sparse = {{0, keys, row}}, .dense = {}});
  CHECK(row[0] == 2.0f);
}
