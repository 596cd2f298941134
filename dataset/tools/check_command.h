// fleetrun data check: reads files from beginning to end,
// and says what is in them and what is wrong with them.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::dataset {

std::string check_help();
/// 1 where there are more bad lines than are allowed. Throws: Error(usage), Error(data), Error(spawn).
int run_check(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
