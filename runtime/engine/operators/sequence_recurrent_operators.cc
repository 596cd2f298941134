// Recurrent layers over sequences of any lengths, float32, as Paddle 1.x has them: their input holds the
// products with the weights of the input already, and there is no padding.
//
// The sequences take their k-th steps together, the longest first, so that those that still go on lie side by
// side. Reserve has what the backward pass needs of every row. Sources: Cho et al., Learning phrase
// representations, 2014 (the reset gate before the product); Gers and Schmidhuber, Recurrent nets that time
// and count, 2000 (peepholes).

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/channels.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

// Activations by their names.

struct NamedActivation {
  float (*value)(float x);
  float (*slope)(float y);
};

NamedActivation activation_of(const Operator& op, const char* attribute_name, const char* usual) {
  const std::string name = attribute(op, attribute_name, std::string(usual));
  if (name == "sigmoid")
    return {[](float x) { return vector_math::sigmoid(x); }, [](float y) { return y * (1.0f - y); }};
  if (name == "tanh")
    return {[](float x) { return vector_math::tanh(x); }, [](float y) { return 1.0f - y * y; }};
  if (name == "relu")
    return {[](float x) { return std::max(x, 0.0f); }, [](float y) { return y > 0.0f ? 1.0f : 0.0f; }};
  if (name == "identity") return {[](float x) { return x; }, [](float) { return 1.0f; }};
  fail(op, "there is no activation '" + name + "'; use sigmoid, tanh, relu or identity");
}

/// Which rows of X are the k-th steps.
class Steps {
 public:
  Steps(const Operator& op, const Tensor& x) : reverse_(attribute(op, "is_reverse", false)) {
    if (x.offsets.empty()) fail(op, "'" + op.inputs[0] + "' has no sequences");
    const std::size_t n = x.offsets.size() - 1;
    starts_.assign(x.offsets.begin(), x.offsets.end());
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [this](std::size_t a, std::size_t b) { return length(a) > length(b); });
  }

  std::size_t sequences() const noexcept { return order_.size(); }
  std::size_t rows() const noexcept { return starts_.back(); }
  std::size_t count() const noexcept { return order_.empty() ? 0 : length(order_[0]); }
  /// The sequence that is the i-th longest.
  std::size_t sequence(std::size_t i) const noexcept { return order_[i]; }
  /// How many sequences have a k-th step.
  std::size_t active(std::size_t k) const noexcept {
    std::size_t n = 0;
    while (n < order_.size() && length(order_[n]) > k) ++n;
    return n;
  }
  std::size_t row(std::size_t i, std::size_t k) const noexcept {
    const std::size_t s = order_[i];
    return starts_[s] + (reverse_ ? length(s) - 1 - k : k);
  }

 private:
  std::size_t length(std::size_t s) const noexcept { return starts_[s + 1] - starts_[s]; }

  bool reverse_;
  std::vector<std::size_t> starts_, order_;
};

/// [n, width] in the order of the sequences <-> in that of their lengths; zeros for a first state that is not
/// given.
std::vector<float> sorted_rows(const Operator& op, const Steps& steps, const Tensor* first,
                               std::size_t width) {
  std::vector<float> rows(steps.sequences() * width, 0.0f);
  if (first == nullptr) return rows;
  check_size(op, first, rows.size(), "first state");
  for (std::size_t i = 0; i < steps.sequences(); ++i)
    std::copy_n(data_of(first) + steps.sequence(i) * width, width, rows.data() + i * width);
  return rows;
}

void unsorted_rows(const Steps& steps, const std::vector<float>& rows, Tensor* to, std::size_t width) {
  if (to == nullptr) return;
  to->resize(DataType::float32,
             {static_cast<std::int64_t>(steps.sequences()), static_cast<std::int64_t>(width)});
  for (std::size_t i = 0; i < steps.sequences(); ++i)
    std::copy_n(rows.data() + i * width, width, to->values<float>().data() + steps.sequence(i) * width);
}

/// A tensor of `rows` rows of zeros; null for null.
float* zero_rows(Tensor* tensor, std::size_t rows, std::size_t width) {
  if (tensor == nullptr) return nullptr;
  tensor->resize(DataType::float32, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)});
  std::fill_n(tensor->values<float>().data(), rows * width, 0.0f);
  return tensor->values<float>().data();
}

/// C += A^T B for the gradient of a weight; nothing where it is not asked for.
void add_weight(float* to, std::size_t rows, std::size_t inner, std::size_t columns, const float* a,
                const float* b) {
  if (to == nullptr || inner == 0) return;
  multiply({.transpose_a = true, .rows = rows, .columns = columns, .inner = inner, .accumulate = true}, a, b,
           to);
}

/// C += A B^T.
void add_back(float* to, std::size_t rows, std::size_t inner, std::size_t columns, const float* a,
              const float* b) {
  multiply({.transpose_b = true, .rows = rows, .columns = columns, .inner = inner, .accumulate = true}, a, b,
           to);
}

void infer_states(Inference& inference, std::size_t gates, std::size_t states) {
  inference.expect_type(0, DataType::float32);
  const Variable x = inference.input(0);
  const std::int64_t width = x.shape.size() == 2 ? x.shape[1] : -1;
  if (x.lod_level == 0) inference.fail("the input has no sequences");
  if (width < 1 || width % static_cast<std::int64_t>(gates) != 0) {
    inference.fail("the input is " + to_string(x.shape) + ", not [total, " + std::to_string(gates) +
                   " * hidden]");
  }
  const std::int64_t hidden = width / static_cast<std::int64_t>(gates);
  expect_size(inference, states + 1, width * hidden, "weight");
  for (std::size_t i = 0; i < states; ++i)
    inference.set_output(i, DataType::float32, {x.shape[0], hidden}, x.lod_level);
  inference.set_output(states, DataType::float32, {-1});
}

// Gru.

struct SequenceGru {
  enum : std::size_t { kX, kH0, kWeight, kBias, kInputs };

  explicit SequenceGru(const Operator& op)
      : gate(activation_of(op, "gate_activation", "sigmoid")),
        candidate(activation_of(op, "activation", "tanh")),
        keeps(attribute(op, "origin_mode", false)) {}

  /// What share of the state before goes on, from the update gate.
  float kept(float u) const noexcept { return keeps ? u : 1.0f - u; }

  NamedActivation gate, candidate;
  bool keeps;
};

void infer_sequence_gru(Inference& inference) {
  inference.expect_inputs(SequenceGru::kInputs, SequenceGru::kInputs);
  inference.expect_outputs(2, 2);
  infer_states(inference, 3, 1);
  expect_size(inference, SequenceGru::kBias, inference.input(0).shape[1], "bias");
}

Kernel prepare_sequence_gru(const Preparation& p) {
  std::array<const Tensor*, SequenceGru::kInputs> in{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  return [op = &p.op, in, out = p.output(0), reserve = p.output(1), cell = SequenceGru(p.op)] {
    const Steps steps(*op, *in[0]);
    const std::size_t d = static_cast<std::size_t>(in[0]->shape()[1]) / 3;
    check_size(*op, in[SequenceGru::kWeight], 3 * d * d, "weight");
    const float *x = data_of(in[0]), *bias = data_of(in[SequenceGru::kBias]);
    const float* weight = data_of(in[SequenceGru::kWeight]);
    float *to = zero_rows(out, steps.rows(), d), *kept = zero_rows(reserve, steps.rows(), 4 * d);
    out->offsets = in[0]->offsets;
    std::vector<float> state = sorted_rows(*op, steps, in[SequenceGru::kH0], d);
    std::vector<float> gates(steps.sequences() * 2 * d), candidates(steps.sequences() * d), reset(state);
    for (std::size_t k = 0; k < steps.count(); ++k) {
      const std::size_t n = steps.active(k);
      for (std::size_t i = 0; i < n; ++i) {
        const float* from = x + steps.row(i, k) * 3 * d;
        for (std::size_t j = 0; j < 3 * d; ++j) {
          float& at = j < 2 * d ? gates[i * 2 * d + j] : candidates[i * d + j - 2 * d];
          at = from[j] + (bias == nullptr ? 0.0f : bias[j]);
        }
      }
      multiply({.rows = n, .columns = 2 * d, .inner = d, .accumulate = true}, state.data(), weight,
               gates.data());
      for (float& gate : std::span(gates).first(n * 2 * d)) gate = cell.gate.value(gate);
      for (std::size_t i = 0; i < n * d; ++i) reset[i] = state[i] * gates[i / d * 2 * d + d + i % d];
      multiply({.rows = n, .columns = d, .inner = d, .accumulate = true}, reset.data(), weight + 2 * d * d,
               candidates.data());
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = steps.row(i, k);
        float* piece = kept + row * 4 * d;
        for (std::size_t j = 0; j < d; ++j) {
          const float u = gates[i * 2 * d + j], c = cell.candidate.value(candidates[i * d + j]);
          const float before = state[i * d + j], share = cell.kept(u);
          piece[j] = u;
          piece[d + j] = gates[i * 2 * d + d + j];
          piece[2 * d + j] = c;
          piece[3 * d + j] = before;
          to[row * d + j] = state[i * d + j] = share * before + (1.0f - share) * c;
        }
      }
    }
  };
}

/// The forward inputs, Reserve, dOut -> their gradients
Kernel prepare_sequence_gru_gradient(const Preparation& p) {
  std::array<const Tensor*, SequenceGru::kInputs + 2> in{};
  std::array<Tensor*, SequenceGru::kInputs> to{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = p.output(i);
  return [op = &p.op, in, to, cell = SequenceGru(p.op)] {
    const Steps steps(*op, *in[0]);
    const std::size_t d = static_cast<std::size_t>(in[0]->shape()[1]) / 3, all = steps.sequences();
    const float *weight = data_of(in[SequenceGru::kWeight]), *kept = data_of(in[SequenceGru::kInputs]),
                *up = data_of(in[SequenceGru::kInputs + 1]);
    float *to_x = zero_rows(to[0], steps.rows(), 3 * d), *to_bias = filled(to[SequenceGru::kBias], 3 * d);
    float* to_weight = zero_rows(to[SequenceGru::kWeight], d, 3 * d);
    std::vector<float> state(all * d, 0.0f), before(all * d), reset(all * d), to_reset(all * d),
        gates(all * 2 * d), candidates(all * d);
    for (std::size_t k = steps.count(); k-- > 0;) {
      const std::size_t n = steps.active(k);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = steps.row(i, k);
        const float* piece = kept + row * 4 * d;
        for (std::size_t j = 0; j < d; ++j) {
          const float u = piece[j], c = piece[2 * d + j], h = piece[3 * d + j], share = cell.kept(u);
          const float slope = up[row * d + j] + state[i * d + j];
          before[i * d + j] = h;
          reset[i * d + j] = piece[d + j] * h;
          gates[i * 2 * d + j] = slope * (cell.keeps ? h - c : c - h) * cell.gate.slope(u);
          candidates[i * d + j] = slope * (1.0f - share) * cell.candidate.slope(c);
          state[i * d + j] = slope * share;
        }
      }
      std::fill(to_reset.begin(), to_reset.end(), 0.0f);
      add_back(to_reset.data(), n, d, d, candidates.data(), weight + 2 * d * d);
      for (std::size_t i = 0; i < n * d; ++i) {
        const float r = kept[steps.row(i / d, k) * 4 * d + d + i % d];
        gates[i / d * 2 * d + d + i % d] = to_reset[i] * before[i] * cell.gate.slope(r);
        state[i] += to_reset[i] * r;
      }
      add_back(state.data(), n, 2 * d, d, gates.data(), weight);
      add_weight(to_weight, d, n, 2 * d, before.data(), gates.data());
      add_weight(to_weight == nullptr ? nullptr : to_weight + 2 * d * d, d, n, d, reset.data(),
                 candidates.data());
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = steps.row(i, k);
        for (std::size_t j = 0; j < 3 * d; ++j) {
          const float slope = j < 2 * d ? gates[i * 2 * d + j] : candidates[i * d + j - 2 * d];
          if (to_x != nullptr) to_x[row * 3 * d + j] = slope;
          if (to_bias != nullptr) to_bias[j] += slope;
        }
      }
    }
    if (to[0] != nullptr) to[0]->offsets = in[0]->offsets;
    if (to[SequenceGru::kBias] != nullptr)
      to[SequenceGru::kBias]->resize(DataType::float32, in[SequenceGru::kBias]->shape());
    unsorted_rows(steps, state, to[SequenceGru::kH0], d);
  };
}

// Lstm.

struct SequenceLstm {
  enum : std::size_t { kX, kH0, kC0, kWeight, kBias, kInputs };

  explicit SequenceLstm(const Operator& op)
      : gate(activation_of(op, "gate_activation", "sigmoid")),
        cell(activation_of(op, "cell_activation", "tanh")),
        candidate(activation_of(op, "candidate_activation", "tanh")),
        peeps(attribute(op, "use_peepholes", true)) {}

  std::size_t biases() const noexcept { return peeps ? 7 : 4; }

  NamedActivation gate, cell, candidate;
  bool peeps;
};

void infer_sequence_lstm(Inference& inference) {
  inference.expect_inputs(SequenceLstm::kInputs, SequenceLstm::kInputs);
  inference.expect_outputs(3, 3);
  if (inference.op().inputs[SequenceLstm::kBias].empty()) inference.fail("bias is missing");
  infer_states(inference, 4, 2);
  const auto biases = static_cast<std::int64_t>(SequenceLstm(inference.op()).biases());
  expect_size(inference, SequenceLstm::kBias, inference.input(0).shape[1] / 4 * biases, "bias");
}

Kernel prepare_sequence_lstm(const Preparation& p) {
  std::array<const Tensor*, SequenceLstm::kInputs> in{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  return [op = &p.op, in, out = p.output(0), cells = p.output(1), reserve = p.output(2),
          cell = SequenceLstm(p.op)] {
    const Steps steps(*op, *in[0]);
    const std::size_t d = static_cast<std::size_t>(in[0]->shape()[1]) / 4;
    check_size(*op, in[SequenceLstm::kWeight], 4 * d * d, "weight");
    check_size(*op, in[SequenceLstm::kBias], cell.biases() * d, "bias");
    const float *x = data_of(in[0]), *bias = data_of(in[SequenceLstm::kBias]), *peep = bias + 4 * d;
    float *to = zero_rows(out, steps.rows(), d), *to_cells = zero_rows(cells, steps.rows(), d),
          *kept = zero_rows(reserve, steps.rows(), 7 * d);
    out->offsets = cells->offsets = in[0]->offsets;
    std::vector<float> state = sorted_rows(*op, steps, in[SequenceLstm::kH0], d),
                       inner = sorted_rows(*op, steps, in[SequenceLstm::kC0], d),
                       gates(steps.sequences() * 4 * d);
    for (std::size_t k = 0; k < steps.count(); ++k) {
      const std::size_t n = steps.active(k);
      for (std::size_t i = 0; i < n * 4 * d; ++i)
        gates[i] = x[steps.row(i / (4 * d), k) * 4 * d + i % (4 * d)] + bias[i % (4 * d)];
      multiply({.rows = n, .columns = 4 * d, .inner = d, .accumulate = true}, state.data(),
               data_of(in[SequenceLstm::kWeight]), gates.data());
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = steps.row(i, k);
        const float* g = gates.data() + i * 4 * d;
        float* piece = kept + row * 7 * d;
        for (std::size_t j = 0; j < d; ++j) {
          const float before = inner[i * d + j], c = cell.candidate.value(g[j]);
          const float enters = cell.gate.value(g[d + j] + (cell.peeps ? before * peep[j] : 0.0f));
          const float stays = cell.gate.value(g[2 * d + j] + (cell.peeps ? before * peep[d + j] : 0.0f));
          const float now = c * enters + before * stays, bounded = cell.cell.value(now);
          const float leaves = cell.gate.value(g[3 * d + j] + (cell.peeps ? now * peep[2 * d + j] : 0.0f));
          const float values[] = {c, enters, stays, leaves, bounded, before, state[i * d + j]};
          for (std::size_t v = 0; v < 7; ++v) piece[v * d + j] = values[v];
          to_cells[row * d + j] = inner[i * d + j] = now;
          to[row * d + j] = state[i * d + j] = leaves * bounded;
        }
      }
    }
  };
}

/// The forward inputs, Cell, Reserve, dOut, dCell -> the gradients of the forward inputs
Kernel prepare_sequence_lstm_gradient(const Preparation& p) {
  std::array<const Tensor*, SequenceLstm::kInputs + 4> in{};
  std::array<Tensor*, SequenceLstm::kInputs> to{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = p.output(i);
  return [op = &p.op, in, to, cell = SequenceLstm(p.op)] {
    const Steps steps(*op, *in[0]);
    const std::size_t d = static_cast<std::size_t>(in[0]->shape()[1]) / 4, all = steps.sequences();
    const float* peep = data_of(in[SequenceLstm::kBias]) + 4 * d;
    const float *cells = data_of(in[SequenceLstm::kInputs]), *kept = data_of(in[SequenceLstm::kInputs + 1]),
                *up = data_of(in[SequenceLstm::kInputs + 2]),
                *up_cell = data_of(in[SequenceLstm::kInputs + 3]);
    float *to_x = zero_rows(to[0], steps.rows(), 4 * d),
          *to_bias = filled(to[SequenceLstm::kBias], cell.biases() * d),
          *to_weight = zero_rows(to[SequenceLstm::kWeight], d, 4 * d);
    std::vector<float> state(all * d, 0.0f), inner(all * d, 0.0f), before(all * d), gates(all * 4 * d);
    for (std::size_t k = steps.count(); k-- > 0;) {
      const std::size_t n = steps.active(k);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = steps.row(i, k);
        const float* piece = kept + row * 7 * d;
        float* g = gates.data() + i * 4 * d;
        for (std::size_t j = 0; j < d; ++j) {
          const float c = piece[j], enters = piece[d + j], stays = piece[2 * d + j],
                      leaves = piece[3 * d + j];
          const float bounded = piece[4 * d + j], past = piece[5 * d + j], now = cells[row * d + j];
          const float slope = state[i * d + j] + (up == nullptr ? 0.0f : up[row * d + j]);
          before[i * d + j] = piece[6 * d + j];
          g[3 * d + j] = slope * bounded * cell.gate.slope(leaves);
          const float of_cell = inner[i * d + j] + (up_cell == nullptr ? 0.0f : up_cell[row * d + j]) +
                                slope * leaves * cell.cell.slope(bounded) +
                                (cell.peeps ? g[3 * d + j] * peep[2 * d + j] : 0.0f);
          g[j] = of_cell * enters * cell.candidate.slope(c);
          g[d + j] = of_cell * c * cell.gate.slope(enters);
          g[2 * d + j] = of_cell * past * cell.gate.slope(stays);
          inner[i * d + j] = of_cell * stays;
          if (cell.peeps) inner[i * d + j] += g[d + j] * peep[j] + g[2 * d + j] * peep[d + j];
          if (cell.peeps && to_bias != nullptr) {
            to_bias[4 * d + j] += g[d + j] * past;
            to_bias[5 * d + j] += g[2 * d + j] * past;
            to_bias[6 * d + j] += g[3 * d + j] * now;
          }
        }
        for (std::size_t j = 0; j < 4 * d; ++j) {
          if (to_x != nullptr) to_x[row * 4 * d + j] = g[j];
          if (to_bias != nullptr) to_bias[j] += g[j];
        }
      }
      std::fill_n(state.begin(), n * d, 0.0f);
      add_back(state.data(), n, 4 * d, d, gates.data(), data_of(in[SequenceLstm::kWeight]));
      add_weight(to_weight, d, n, 4 * d, before.data(), gates.data());
    }
    if (to[0] != nullptr) to[0]->offsets = in[0]->offsets;
    if (to[SequenceLstm::kBias] != nullptr)
      to[SequenceLstm::kBias]->resize(DataType::float32, in[SequenceLstm::kBias]->shape());
    unsorted_rows(steps, state, to[SequenceLstm::kH0], d);
    unsorted_rows(steps, inner, to[SequenceLstm::kC0], d);
  };
}

/// Inputs, the outputs from `first` on, and the gradients of those before the last -> the inputs' gradients.
void append_sequence_gradient(GradientBuilder& builder, std::size_t first) {
  const Operator& op = builder.op();
  Operator back{.type = op.type + "_grad", .inputs = op.inputs, .outputs = {}, .attributes = op.attributes};
  back.inputs.insert(back.inputs.end(), op.outputs.begin() + static_cast<std::ptrdiff_t>(first),
                     op.outputs.end());
  for (std::size_t i = 0; i + 1 < op.outputs.size(); ++i) back.inputs.push_back(builder.output_gradient(i));
  for (std::size_t i = 0; i < op.inputs.size(); ++i) back.outputs.push_back(builder.input_gradient(i));
  builder.append(std::move(back));
}

void sequence_gru_gradient(GradientBuilder& builder) {
  append_sequence_gradient(builder, 1);
}
void sequence_lstm_gradient(GradientBuilder& builder) {
  append_sequence_gradient(builder, 1);
}

}  // namespace

std::span<const OperatorDefinition> sequence_recurrent_operators() {
  static constexpr OperatorDefinition all[] = {
      {"sequence_gru",
       infer_sequence_gru,
       prepare_sequence_gru,
       sequence_gru_gradient,
       {"(X [total, 3 * hidden] with sequences, H0 [n, hidden], Weight, Bias [3 * hidden]) -> Out [total, "
        "hidden], Reserve",
        "X, Bias and Weight are cut into u, r and c; Weight has [hidden, 2 * hidden] of u and r, then "
        "[hidden, hidden] of c. u = gate(u + H * Wu), r = gate(r + H * Wr), c = act(c + (r * H) * Wc), H' = "
        "(1 - u) * H + u * c. H0 and Bias may be empty names: 0",
        "is_reverse = false; origin_mode = false: true makes H' = u * H + (1 - u) * c; gate_activation = "
        "sigmoid, activation = tanh: or relu, identity"}},
      {"sequence_gru_grad", infer_gradient, prepare_sequence_gru_gradient, nullptr},
      {"sequence_lstm",
       infer_sequence_lstm,
       prepare_sequence_lstm,
       sequence_lstm_gradient,
       {"(X [total, 4 * hidden] with sequences, H0 [n, hidden], C0 [n, hidden], Weight [hidden, 4 * hidden], "
        "Bias [4 * hidden or 7 * hidden]) -> Out [total, hidden], Cell [total, hidden], Reserve",
        "with g = X + H * Weight + Bias cut into c, i, f, o: C' = act(c) * gate(i + C * Pi) + C * gate(f + C "
        "* Pf), H' = gate(o + C' * Po) * cell(C'); Pi, Pf and Po are the last of Bias. H0 and C0 may be "
        "empty "
        "names: 0",
        "is_reverse = false; use_peepholes = true: false has no P; gate_activation = sigmoid, "
        "cell_activation "
        "= tanh, candidate_activation = tanh: or relu, identity"}},
      {"sequence_lstm_grad", infer_gradient, prepare_sequence_lstm_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
