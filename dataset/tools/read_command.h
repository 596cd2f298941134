// fleetrun data read: delimited text to MultiSlot text by a schema.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::dataset {

std::string read_help();
/// Throws: Error(usage), Error(config) for a schema that is none, Error(data) naming FILE:LINE:COLUMN of a
/// bad line, after the text of the lines before it.
int run_read(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
