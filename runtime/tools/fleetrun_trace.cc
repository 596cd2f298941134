// fleetrun-trace: joins timelines and draws curves. `fleetrun trace` and `fleetrun plot` run it; it is a
// program of its own so that fleetrun stays small.
#include "runtime/base/tool_main.h"
#include "runtime/tools/trace_command.h"

int main(int argc, char** argv) {
  return fleetrun::run_tool_main("fleetrun", [&] {
    return fleetrun::trace::run_trace({argv + 1, argv + argc});
  });
}
