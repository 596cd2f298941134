#include "cli/data_command.h"

#include "cli/own_program.h"

namespace fleetrun::cli {

int run_data_command(const std::vector<std::string>& arguments, const Environ&) {
  const OwnProgram program{"fleetrun-data", "fleetrun data", "its datasets"};
  execute_own_program(program, find_own_program(program), arguments);
}

}  // namespace fleetrun::cli
