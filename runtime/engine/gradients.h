// Gradients of a program's values by its inputs, where no loss ends it: of the body of a loop.
#pragma once

#include <map>
#include <set>
#include <string>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Appends the operators that make the gradients by the variables `wanted`, given those by others: `given` is
/// {variable: its gradient, a variable of the same type}. Returns {wanted variable: its gradient} of those
/// that the given ones depend on. Rows of lookups get dense gradients.
std::map<std::string, std::string> append_gradients(Program& program,
                                                    const std::map<std::string, std::string>& given,
                                                    const std::set<std::string>& wanted);

}  // namespace fleetrun::engine
