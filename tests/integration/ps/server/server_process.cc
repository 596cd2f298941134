// A parameter server in a process of its own, for tests that stop and kill it: serves one sparse table of
// width 1 with the rule sum, prints its endpoint on standard output, and waits.
//
//   server_process TRAINERS MODE [RANK SERVERS [MILLISECONDS FOR TRAINERS TO COME BACK [MORE MEMORY FOR ROWS,
//                  IN MiB [DIRECTORY OF CHECKPOINTS [ENDPOINT]]]]]
//
// Checkpoints are made all the time.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ps/rpc/rpc_server.h"
#include "ps/table/memory_quota.h"

int main(int argc, char** argv) {
  using namespace fleetrun::ps;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2) return 2;
  const auto number = [&](std::size_t place, unsigned standard) {
    return place < arguments.size() ? static_cast<std::uint32_t>(std::stoul(arguments[place])) : standard;
  };
  TableConfig table;
  table.name = "sum";
  table.kind = TableConfig::Kind::sparse;
  table.width = 1;
  table.rule.kind = UpdateRule::Kind::sum;
  ServerOptions options;
  options.trainers = number(0, 1);
  options.mode = arguments[1] == "sync" ? Mode::sync : Mode::async;
  options.rank = number(2, 0);
  options.servers = number(3, 1);
  options.recover_within = std::chrono::milliseconds(number(4, 0));
  if (const std::uint64_t more = number(5, 0)) options.memory_limit = resident_bytes() + (more << 20);
  if (arguments.size() > 6) options.durability.directory = arguments[6];
  options.durability.interval = std::chrono::milliseconds(50);
  options.tables = {table};
  RpcServer server(options, arguments.size() > 7 ? arguments[7] : "127.0.0.1:0");
  std::printf("%s\n", server.endpoint().c_str());
  std::fflush(stdout);
  server.wait();
}
