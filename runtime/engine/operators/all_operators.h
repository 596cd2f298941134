// All operators that scripts and saved models use. Who builds programs includes this header:
// that adds them to the table.
#pragma once

#include <span>
#include <string_view>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

std::span<const OperatorDefinition> elementwise_operators();
std::span<const OperatorDefinition> unary_operators();
std::span<const OperatorDefinition> activation_operators();
std::span<const OperatorDefinition> matrix_operators();
std::span<const OperatorDefinition> einsum_operators();
std::span<const OperatorDefinition> lookup_operators();
std::span<const OperatorDefinition> index_operators();
std::span<const OperatorDefinition> join_operators();
std::span<const OperatorDefinition> layout_operators();
std::span<const OperatorDefinition> repeat_operators();
std::span<const OperatorDefinition> reduce_operators();
std::span<const OperatorDefinition> order_operators();
std::span<const OperatorDefinition> running_operators();
std::span<const OperatorDefinition> loss_operators();
std::span<const OperatorDefinition> metric_operators();
std::span<const OperatorDefinition> initializer_operators();
std::span<const OperatorDefinition> random_operators();
std::span<const OperatorDefinition> statistics_operators();
std::span<const OperatorDefinition> update_operators();
std::span<const OperatorDefinition> clip_operators();
std::span<const OperatorDefinition> convolution_operators();
std::span<const OperatorDefinition> chunk_operators();
std::span<const OperatorDefinition> crf_operators();
std::span<const OperatorDefinition> alignment_operators();
std::span<const OperatorDefinition> beam_operators();
std::span<const OperatorDefinition> data_norm_operators();
std::span<const OperatorDefinition> box_operators();
std::span<const OperatorDefinition> match_operators();
std::span<const OperatorDefinition> suppression_operators();
std::span<const OperatorDefinition> pooling_operators();
std::span<const OperatorDefinition> resize_operators();
std::span<const OperatorDefinition> normalization_operators();
std::span<const OperatorDefinition> batch_norm_operators();
std::span<const OperatorDefinition> recurrent_operators();
std::span<const OperatorDefinition> sequence_recurrent_operators();
std::span<const OperatorDefinition> tree_operators();
std::span<const OperatorDefinition> loop_operators();
std::span<const OperatorDefinition> print_operators();
std::span<const OperatorDefinition> call_operators();
/// What passes make of others.
std::span<const OperatorDefinition> fused_operators();

struct OperatorGroup {
  std::string_view title;
  std::string_view about;  // what holds for all of them
  std::span<const OperatorDefinition> operators;
};

/// Every group above, in the order of the manual.
std::span<const OperatorGroup> operator_groups();

/// Adds all of them to the table. Always true, so that it can initialize a variable.
bool add_all_operators();

inline const bool kAllOperatorsAdded = add_all_operators();

}  // namespace fleetrun::engine
