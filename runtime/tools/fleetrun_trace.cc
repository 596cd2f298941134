// fleetrun-trace: joins timelines and draws curves. `fleetrun trace` and `fleetrun plot` run it; it is a program of its own
// so that fleetrun stays small.
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tools/trace_command.h"

int main(int argc, char** argv) {
  using fleetrun::Error;
  constexpr int kRefused = 125;
  ::signal(SIGPIPE, SIG_IGN);
  Error refusal(fleetrun::ErrorKind::host, "");
  try {
    return fleetrun::trace::run_trace({argv + 1, argv + argc});
  } catch (const Error& error) {
    refusal = error;
  } catch (const std::exception& error) {
    refusal = Error(fleetrun::ErrorKind::host, error.what());
  }
  std::fputs((render(refusal, "fleetrun") + "\n").c_str(), stderr);
  return kRefused;
}
