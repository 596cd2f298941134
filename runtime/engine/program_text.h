// A program as a list of words, which another program's operator can carry as an attribute: the body of a
// loop. What is written is read again as an equal program.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

std::vector<std::string> to_words(const Program& program);
/// Throws: Error(data) for words that no program was written as.
Program program_of_words(const std::vector<std::string>& words);

}  // namespace fleetrun::engine
