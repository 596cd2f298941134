// fleetrun predict: a saved model over files of examples.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::inference {

std::string predict_help();

/// Returns the exit status. Throws: Error.
int run_predict(const std::vector<std::string>& arguments);

}  // namespace fleetrun::inference
