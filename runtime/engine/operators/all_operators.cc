#include "runtime/engine/operators/all_operators.h"

namespace fleetrun::engine {

bool add_all_operators() {
  for (const auto group :
       {elementwise_operators(), unary_operators(),         activation_operators(),  matrix_operators(),
        einsum_operators(),      lookup_operators(),        index_operators(),       join_operators(),
        layout_operators(),      repeat_operators(),        reduce_operators(),      order_operators(),
        loss_operators(),        metric_operators(),        initializer_operators(), random_operators(),
        statistics_operators(),  update_operators(),        clip_operators(),        convolution_operators(),
        pooling_operators(),     normalization_operators(), batch_norm_operators(),  recurrent_operators(),
        print_operators(),       fused_operators()}) {
    add_operators(group);
  }
  return true;
}

}  // namespace fleetrun::engine
