#include "runtime/base/tool_main.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "runtime/base/error.h"
#include "runtime/base/terminal_text.h"

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
  std::fputs(text_for(STDERR_FILENO, render(refusal, name) + "\n").c_str(), stderr);
  return kRefused;
}

}  // namespace fleetrun
