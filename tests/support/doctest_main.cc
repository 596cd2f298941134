// The main() of every doctest program of this project.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <csignal>

namespace {

// As on a terminal: a run under nohup, or in the background of a script, ignores these, and so would all that
// a test starts.
[[maybe_unused]] const bool kTerminalsSignals = [] {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
  return true;
}();

}  // namespace
