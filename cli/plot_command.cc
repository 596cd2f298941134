#include "cli/plot_command.h"

#include "cli/own_program.h"

namespace fleetrun::cli {

int run_plot_command(const std::vector<std::string>& arguments, const Environ&) {
  const OwnProgram program{"fleetrun-trace", "fleetrun plot", "its engine"};
  std::vector<std::string> words = arguments.empty() ? std::vector<std::string>{"--help"} : arguments;
  words.insert(words.begin(), "plot");
  execute_own_program(program, find_own_program(program), words);
}

}  // namespace fleetrun::cli
