// fleetrun data head: shows the first rows of files.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::dataset {

std::string head_help();
/// Throws: Error(usage), Error(data) naming FILE:LINE:COLUMN of a bad line, after the rows before it.
int run_head(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
