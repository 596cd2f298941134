// A parameter server in a process of its own, for tests that kill it: serves one sparse table of width 1 with
// the rule sum for ARGV[1] trainers in mode ARGV[2], prints its endpoint on standard output, and waits.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ps/rpc/rpc_server.h"

int main(int argc, char** argv) {
  using namespace fleetrun::ps;
  if (argc != 3) return 2;
  TableConfig table;
  table.name = "sum";
  table.kind = TableConfig::Kind::sparse;
  table.width = 1;
  table.rule.kind = UpdateRule::Kind::sum;
  ServerOptions options;
  options.trainers = static_cast<std::uint32_t>(std::atoi(argv[1]));
  options.mode = std::string_view(argv[2]) == "sync" ? Mode::sync : Mode::async;
  options.tables = {table};
  RpcServer server(options, "127.0.0.1:0");
  std::printf("%s\n", server.endpoint().c_str());
  std::fflush(stdout);
  server.wait();
}
