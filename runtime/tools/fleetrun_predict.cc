// fleetrun-predict: computes a saved model over files. `fleetrun predict` runs it; it is a program of its own so that
// fleetrun stays small.
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "dataset/tools/commands.h"
#include "runtime/base/error.h"
#include "runtime/tools/predict_command.h"

int main(int argc, char** argv) {
  using fleetrun::Error;
  constexpr int kRefused = 125;
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Error refusal(fleetrun::ErrorKind::host, "");
  try {
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
      fleetrun::dataset::print_text(fleetrun::inference::predict_help());
      return 0;
    }
    return fleetrun::inference::run_predict(arguments);
  } catch (const Error& error) {
    refusal = error;
  } catch (const std::exception& error) {
    refusal = Error(fleetrun::ErrorKind::host, error.what());
  }
  std::fputs((render(refusal, "fleetrun predict") + "\n").c_str(), stderr);
  return kRefused;
}
