#include "cli/predict_command.h"

#include "cli/own_program.h"

namespace fleetrun::cli {

int run_predict_command(const std::vector<std::string>& arguments, const Environ&) {
  const OwnProgram program{"fleetrun-predict", "fleetrun predict", "its engine"};
  execute_own_program(program, find_own_program(program), arguments);
}

}  // namespace fleetrun::cli
