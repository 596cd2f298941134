// fleetrun data convert: writes columnar files (dataset/columnar/format.h),
// which are read again without parsing.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::dataset {

std::string convert_help();
/// Throws: Error(usage), Error(data) naming a bad line, Error(host) where a file cannot be written.
int run_convert(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
