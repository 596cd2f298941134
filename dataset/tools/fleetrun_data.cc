// fleetrun-data: reads files of training data. `fleetrun data` runs it;
// it is a program of its own so that fleetrun stays small.
#include "dataset/tools/commands.h"
#include "runtime/base/tool_main.h"

int main(int argc, char** argv) {
  return fleetrun::run_tool_main("fleetrun data", [&] {
    return fleetrun::dataset::run_tool({argv + 1, argv + argc});
  });
}
