// fleetrun-data: reads files of training data. `fleetrun data` runs it; it is a program of its own so that fleetrun stays
// small.
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string>

#include "dataset/tools/commands.h"
#include "runtime/base/error.h"

int main(int argc, char** argv) {
  using fleetrun::Error;
  constexpr int kRefused = 125;
  ::signal(SIGPIPE, SIG_IGN);
  Error refusal(fleetrun::ErrorKind::host, "");
  try {
    return fleetrun::dataset::run_tool({argv + 1, argv + argc});
  } catch (const Error& error) {
    refusal = error;
  } catch (const std::exception& error) {
    refusal = Error(fleetrun::ErrorKind::host, error.what());
  }
  std::fputs((render(refusal, "fleetrun data") + "\n").c_str(), stderr);
  return kRefused;
}
