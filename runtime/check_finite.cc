#include "runtime/check_finite.h"

#include <cmath>

#include "runtime/base/error.h"

namespace fleetrun::runtime {

void check_finite(const engine::Operator& op,
                  const std::function<const engine::Tensor&(const std::string&)>& tensor,
                  const BatchPlace& place) {
  for (const std::string& name : op.outputs) {
    if (name.empty() || tensor(name).type() != engine::DataType::float32) continue;
    for (const float value : tensor(name).values<float>()) {
      if (std::isfinite(value)) continue;
      throw Error(ErrorKind::data,
                  std::string(op.type) + " made " + (std::isnan(value) ? "NaN" : "an infinity") + " in '" +
                      name + "', in batch " + std::to_string(place.batch) + " of thread " +
                      std::to_string(place.thread),
                  "lower the learning rate, clip gradients, or look at that batch; without "
                  "FLAGS_check_nan_inf training goes on");
    }
  }
}

}  // namespace fleetrun::runtime
