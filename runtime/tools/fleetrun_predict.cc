// fleetrun-predict: computes a saved model over files. `fleetrun predict` runs it, and `fleetrun replay` for
// the batches of a report; it is a program of its own so that fleetrun stays small.
#include <string>
#include <vector>

#include "dataset/tools/commands.h"
#include "runtime/base/tool_main.h"
#include "runtime/tools/failed_batches.h"
#include "runtime/tools/predict_command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--failed_batches") {
    return fleetrun::run_tool_main("fleetrun replay",
                                   [&] { return fleetrun::inference::run_failed_batches(arguments[1]); });
  }
  return fleetrun::run_tool_main("fleetrun predict", [&] {
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
      fleetrun::dataset::print_text(fleetrun::inference::predict_help());
      return 0;
    }
    return fleetrun::inference::run_predict(arguments);
  });
}
