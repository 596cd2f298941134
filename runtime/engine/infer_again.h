// Types and shapes of a program whose inputs got other shapes.
#pragma once

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Infers the outputs of all operators once more, in their order, from the shapes that the inputs have now.
/// Throws: Error(config) of an operator that cannot take them; the program is of no use then.
void infer_again(Program& program);

}  // namespace fleetrun::engine
