#include "runtime/base/tool_main.h"

#include <signal.h>

#include <cstdio>
#include <exception>

#include "runtime/base/error.h"

namespace fleetrun {

int run_tool_main(const std::string& name, const std::function<int()>& work) {
  constexpr int kRefused = 125;
  ::signal(SIGPIPE, SIG_IGN);
  Error refusal(ErrorKind::host, "");
  try {
    return work();
  } catch (const Error& error) {
    refusal = error;
  } catch (const std::exception& error) {
    refusal = Error(ErrorKind::host, error.what());
  }
  std::fputs((render(refusal, name) + "\n").c_str(), stderr);
  return kRefused;
}

}  // namespace fleetrun
