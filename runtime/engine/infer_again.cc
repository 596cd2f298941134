#include "runtime/engine/infer_again.h"

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

void infer_again(Program& program) {
  for (const Operator& op : program.operators()) {
    const OperatorDefinition* definition = find_operator(op.type);
    if (definition == nullptr) fail(op, "there is no such operator");
    Inference inference(program, op);
    definition->infer(inference);
  }
}

}  // namespace fleetrun::engine
