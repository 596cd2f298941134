#include "runtime/engine/operators/all_operators.h"

namespace fleetrun::engine {

std::span<const OperatorGroup> operator_groups() {
  constexpr std::string_view kAnyType = "Any type; gradients for float32.";
  static const OperatorGroup groups[] = {
      {"Values of two tensors",
       "A dimension of 1 is repeated, and gradients are summed over repeated dimensions. Types are equal; "
       "gradients for float32.",
       elementwise_operators()},
      {"Values of one tensor", "float32, value by value; Out has the shape of X, and its offsets.",
       unary_operators()},
      {"Activations and functions", "float32, value by value; Out has the shape of X, and its offsets.",
       activation_operators()},
      {"Matrix products", "float32.", matrix_operators()},
      {"Einstein sums", "float32.", einsum_operators()},
      {"Rows by id", "Outputs of lookups keep the offsets of their ids.", lookup_operators()},
      {"Values by index",
       "Any type; gradients for float32. Indices are int64 or int32; one that is outside is an error naming "
       "it.",
       index_operators()},
      {"Tensors side by side", kAnyType, join_operators()},
      {"Shapes and orders",
       "Any type; gradients for float32. A negative axis counts from the end. `numbers` are tensors of one "
       "integer: the attribute NAME_from says of each number in NAME which of these inputs holds it instead, "
       "-1 for none.",
       layout_operators()},
      {"Repeated and generated values", kAnyType, repeat_operators()},
      {"Values made one", "float32; the result over all axes has the shape [].", reduce_operators()},
      {"Order", "float32, int64, int32; gradients for float32.", order_operators()},
      {"Values up to each along an axis", "float32, int64, int32; gradients for float32.",
       running_operators()},
      {"Losses", "float32. Gradients are for the first input only, except for square_error_cost.",
       loss_operators()},
      {"Linear chains", "float32. Sums within a sequence are taken in double.", crf_operators()},
      {"Sequences of labels without places", "Sums within a sequence are taken in double.",
       alignment_operators()},
      {"Beam search", "", beam_operators()},
      {"Metrics", "", metric_operators()},
      {"Pieces of labelled sequences", "", chunk_operators()},
      {"First values",
       "For startup programs. Random values are float32, and a function of the seed, the name of Out and the "
       "position; the seed is the attribute `seed` when it is not 0, else the program's random_seed; when "
       "that is 0 too, each executor draws one.",
       initializer_operators()},
      {"Random numbers", "New ones in every run, with seeds as for first values.", random_operators()},
      {"Statistics of rows", "", statistics_operators()},
      {"Optimizer steps",
       "float32, in place. lr is learning_rate, times Rate (float32 [1]) when given; g is the gradient plus "
       "l1_decay * sign(w) + l2_decay * w. With Keys, Gradient is [n, width]: gradients of the rows that "
       "they name. Those of equal keys are added up first, in order; rows without a key do not change, "
       "except that momentum and rmsprop, and adam without lazy_rows, move every row by its state, as if its "
       "gradient were 0.",
       update_operators()},
      {"Gradient clipping", "float32, between the backward operators and the updates.", clip_operators()},
      {"Convolutions", "float32.", convolution_operators()},
      {"Pooling", "float32.", pooling_operators()},
      {"Other sizes", "float32.", resize_operators()},
      {"Normalization", "float32. Variances are divided by the number of values.", normalization_operators()},
      {"Batch normalization", "float32. Variances are divided by the number of values.",
       batch_norm_operators()},
      {"Normalization by all data", "float32.", data_norm_operators()},
      {"Recurrent layers", "float32.", recurrent_operators()},
      {"Recurrent layers over sequences", "float32.", sequence_recurrent_operators()},
      {"Trees of items", "Nodes are whole numbers; 0 is none.", tree_operators()},
      {"Boxes in pictures", "float32.", box_operators()},
      {"Boxes that learn from others", "", match_operators()},
      {"Boxes that are found", "float32.", suppression_operators()},
      {"Loops", "", loop_operators()},
      {"Output", "", print_operators()},
      {"Functions of the script", "Any type.", call_operators()},
      {"Made by passes alone", "A pass puts them in place of others; see fleetrun-design(7).",
       fused_operators()},
  };
  return groups;
}

bool add_all_operators() {
  for (const OperatorGroup& group : operator_groups()) add_operators(group.operators);
  return true;
}

}  // namespace fleetrun::engine
