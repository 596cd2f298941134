// Recurrent layers over whole sequences, float32. One operator is one direction of one layer,
// with its own backward pass through time.
//
// Reserve has what the backward pass needs of every step. Sources: Hochreiter and Schmidhuber, Long
// short-term memory, 1997; Cho et al., Learning phrase representations, 2014 (with the reset gate behind the
// product, as cuDNN has it).

#include <algorithm>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

enum Input : std::size_t { kX, kH0, kC0, kWeightIh, kWeightHh, kBiasIh, kBiasHh, kLengths, kInputs };

/// A step of one example. `kept` is its piece of Reserve: kKept values for each unit, H first.
struct Step {
  std::size_t hidden;
  const float *x, *h;
  const float *state, *cell;
  float* kept;
  float *out, *out_cell;
};

/// The same backwards: `up` and `up_cell` are the gradients of H' and C', the others are written.
struct StepBack {
  std::size_t hidden;
  const float* kept;
  const float *up, *up_cell;
  float *x, *h;
  float *state, *cell;
};

template <bool relu>
struct Plain {
  static constexpr std::size_t kGates = 1, kKept = 2;
  static constexpr bool kHasCell = false;

  [[gnu::always_inline]] static void forward(const Step& s) {
    for (std::size_t i = 0; i < s.hidden; ++i) {
      const float sum = s.x[i] + s.h[i];
      s.out[i] = relu ? (sum > 0.0f ? sum : 0.0f) : vector_math::tanh(sum);
      s.kept[i] = s.state[i];
      s.kept[s.hidden + i] = s.out[i];
    }
  }
  [[gnu::always_inline]] static void backward(const StepBack& s) {
    for (std::size_t i = 0; i < s.hidden; ++i) {
      const float y = s.kept[s.hidden + i];
      s.x[i] = s.h[i] = s.up[i] * (relu ? (y > 0.0f ? 1.0f : 0.0f) : 1.0f - y * y);
      s.state[i] = 0.0f;
    }
  }
};

struct Gru {
  static constexpr std::size_t kGates = 3, kKept = 5;
  static constexpr bool kHasCell = false;

  [[gnu::always_inline]] static void forward(const Step& s) {
    const std::size_t n = s.hidden;
    for (std::size_t i = 0; i < n; ++i) {
      const float r = vector_math::sigmoid(s.x[i] + s.h[i]),
                  z = vector_math::sigmoid(s.x[n + i] + s.h[n + i]);
      const float candidate = vector_math::tanh(s.x[2 * n + i] + r * s.h[2 * n + i]), state = s.state[i];
      s.out[i] = (state - candidate) * z + candidate;
      s.kept[i] = state;
      s.kept[n + i] = r;
      s.kept[2 * n + i] = z;
      s.kept[3 * n + i] = candidate;
      s.kept[4 * n + i] = s.h[2 * n + i];
    }
  }
  [[gnu::always_inline]] static void backward(const StepBack& s) {
    const std::size_t n = s.hidden;
    for (std::size_t i = 0; i < n; ++i) {
      const float state = s.kept[i], r = s.kept[n + i], z = s.kept[2 * n + i], candidate = s.kept[3 * n + i];
      const float to_candidate = s.up[i] * (1.0f - z) * (1.0f - candidate * candidate);
      const float to_z = s.up[i] * (state - candidate) * z * (1.0f - z);
      const float to_r = to_candidate * s.kept[4 * n + i] * r * (1.0f - r);
      s.x[i] = s.h[i] = to_r;
      s.x[n + i] = s.h[n + i] = to_z;
      s.x[2 * n + i] = to_candidate;
      s.h[2 * n + i] = to_candidate * r;
      s.state[i] = s.up[i] * z;
    }
  }
};

struct Lstm {
  static constexpr std::size_t kGates = 4, kKept = 7;
  static constexpr bool kHasCell = true;

  [[gnu::always_inline]] static void forward(const Step& s) {
    const std::size_t n = s.hidden;
    for (std::size_t k = 0; k < n; ++k) {
      const float i = vector_math::sigmoid(s.x[k] + s.h[k]),
                  f = vector_math::sigmoid(s.x[n + k] + s.h[n + k]);
      const float g = vector_math::tanh(s.x[2 * n + k] + s.h[2 * n + k]);
      const float o = vector_math::sigmoid(s.x[3 * n + k] + s.h[3 * n + k]);
      const float before = s.cell[k], cell = f * before + i * g, bounded = vector_math::tanh(cell);
      s.kept[k] = s.state[k];
      s.kept[n + k] = i;
      s.kept[2 * n + k] = f;
      s.kept[3 * n + k] = g;
      s.kept[4 * n + k] = o;
      s.kept[5 * n + k] = bounded;
      s.kept[6 * n + k] = before;
      s.out_cell[k] = cell;
      s.out[k] = o * bounded;
    }
  }
  [[gnu::always_inline]] static void backward(const StepBack& s) {
    const std::size_t n = s.hidden;
    for (std::size_t k = 0; k < n; ++k) {
      const float i = s.kept[n + k], f = s.kept[2 * n + k], g = s.kept[3 * n + k], o = s.kept[4 * n + k];
      const float bounded = s.kept[5 * n + k];
      const float cell = s.up_cell[k] + s.up[k] * o * (1.0f - bounded * bounded);
      s.x[k] = s.h[k] = cell * g * i * (1.0f - i);
      s.x[n + k] = s.h[n + k] = cell * s.kept[6 * n + k] * f * (1.0f - f);
      s.x[2 * n + k] = s.h[2 * n + k] = cell * i * (1.0f - g * g);
      s.x[3 * n + k] = s.h[3 * n + k] = s.up[k] * bounded * o * (1.0f - o);
      s.state[k] = 0.0f;
      s.cell[k] = cell * f;
    }
  }
};

std::size_t gates_of(const Inference& inference, const std::string& mode) {
  if (mode == "RNN_TANH" || mode == "RNN_RELU") return Plain<false>::kGates;
  if (mode == "GRU") return Gru::kGates;
  if (mode == "LSTM") return Lstm::kGates;
  inference.fail("there is no mode '" + mode + "'", "use RNN_TANH, RNN_RELU, GRU or LSTM");
}

void expect_shape(const Inference& inference, std::size_t index, const Shape& wanted, const char* what) {
  if (inference.op().inputs[index].empty()) return;
  inference.expect_type(index, DataType::float32);
  const Shape& shape = inference.input(index).shape;
  bool same = shape.size() == wanted.size();
  for (std::size_t d = 0; same && d < shape.size(); ++d) {
    same = shape[d] < 0 || wanted[d] < 0 || shape[d] == wanted[d];
  }
  if (!same) inference.fail(std::string(what) + " has not the shape " + to_string(wanted));
}

void infer_recurrent(Inference& inference) {
  const Operator& op = inference.op();
  inference.expect_inputs(kInputs, kInputs);
  inference.expect_outputs(4, 4);
  inference.expect_type(kX, DataType::float32);
  const Shape x = inference.input(kX).shape;
  const std::string mode = attribute<std::string>(op, "mode");
  const auto gates = static_cast<std::int64_t>(gates_of(inference, mode));
  const Shape& weight = inference.input(kWeightHh).shape;
  if (x.size() != 3) inference.fail("the input has not the shape [batch, steps, width]");
  if (op.inputs[kWeightIh].empty()) inference.fail("weight_ih is missing");
  if (weight.size() != 2) inference.fail("weight_hh has not two dimensions");
  const std::int64_t hidden = weight[1], batch = attribute(op, "time_major", false) ? x[1] : x[0];
  expect_shape(inference, kWeightHh, {gates * hidden, hidden}, "weight_hh");
  expect_shape(inference, kWeightIh, {gates * hidden, x[2]}, "weight_ih");
  expect_shape(inference, kBiasIh, {gates * hidden}, "bias_ih");
  expect_shape(inference, kBiasHh, {gates * hidden}, "bias_hh");
  expect_shape(inference, kH0, {batch, hidden}, "the first state");
  expect_shape(inference, kC0, {batch, hidden}, "the first cell");
  if (!op.inputs[kLengths].empty()) {
    const Variable& lengths = inference.input(kLengths);
    if (lengths.type != DataType::int64 && lengths.type != DataType::int32) {
      inference.fail("the lengths '" + lengths.name + "' are not int64 or int32");
    }
  }
  inference.set_output(0, DataType::float32, {x[0], x[1], hidden});
  inference.set_output(1, DataType::float32, {batch, hidden});
  inference.set_output(2, DataType::float32, {batch, hidden});
  inference.set_output(3, DataType::float32, {-1});
}

/// The sizes of one run, and which row of X and Out an example's step is.
struct Sequence {
  Sequence(const Operator& op, const Tensor& x, const Tensor& weight_hh, const Tensor* lengths)
      : lengths(lengths),
        time_major(attribute(op, "time_major", false)),
        reverse(attribute(op, "reverse", false)),
        zero_padding(attribute(op, "zero_padding", true)),
        batch(static_cast<std::size_t>(x.shape()[time_major ? 1 : 0])),
        steps(static_cast<std::size_t>(x.shape()[time_major ? 0 : 1])),
        width(static_cast<std::size_t>(x.shape()[2])),
        hidden(static_cast<std::size_t>(weight_hh.shape()[1])) {
    if (lengths != nullptr && lengths->size() != batch) {
      fail(op, std::to_string(lengths->size()) + " lengths for " + std::to_string(batch) + " sequences");
    }
  }

  std::size_t rows() const noexcept { return batch * steps; }
  std::size_t row(std::size_t example, std::size_t step) const noexcept {
    return time_major ? step * batch + example : example * steps + step;
  }
  /// The step that is taken as the k-th.
  std::size_t at(std::size_t k) const noexcept { return reverse ? steps - 1 - k : k; }
  bool inside(std::size_t example, std::size_t step) const {
    if (lengths == nullptr) return true;
    const std::int64_t length = lengths->type() == DataType::int64 ? lengths->values<std::int64_t>()[example]
                                                                   : lengths->values<std::int32_t>()[example];
    return static_cast<std::int64_t>(step) < length;
  }

  const Tensor* lengths;
  bool time_major, reverse, zero_padding;
  std::size_t batch, steps, width, hidden;
};

/// Of parameters whose sizes were not known when the operator was appended.
void check_parameters(const Operator& op, const std::vector<const Tensor*>& in, const Sequence& sequence,
                      std::size_t gates) {
  const auto rows = static_cast<std::int64_t>(gates), width = static_cast<std::int64_t>(sequence.width),
             hidden = static_cast<std::int64_t>(sequence.hidden);
  const std::pair<Input, Shape> wanted[] = {
      {kWeightIh, {rows, width}}, {kWeightHh, {rows, hidden}}, {kBiasIh, {rows}}, {kBiasHh, {rows}}};
  for (const auto& [input, shape] : wanted) {
    if (in[input] == nullptr || in[input]->shape() == shape) continue;
    fail(op, "'" + op.inputs[input] + "' is " + to_string(in[input]->shape()) + ", not " + to_string(shape));
  }
}

/// One row after the other, each the bias, or 0.
void fill_rows(float* to, const Tensor* bias, std::size_t rows, std::size_t width) {
  for (std::size_t r = 0; r < rows; ++r, to += width) {
    if (bias != nullptr) {
      std::copy_n(bias->values<float>().data(), width, to);
    } else {
      std::fill_n(to, width, 0.0f);
    }
  }
}

void start_from(std::vector<float>& state, const Tensor* first, std::size_t size, const Operator& op) {
  if (first != nullptr && first->size() != size) {
    fail(op,
         "a first state of " + to_string(first->shape()) + " has not " + std::to_string(size) + " values");
  }
  state.assign(size, 0.0f);
  if (first != nullptr) std::copy_n(first->values<float>().data(), size, state.data());
}

void set_matrix(Tensor* tensor, std::size_t rows, std::size_t columns, const std::vector<float>& values) {
  if (tensor == nullptr) return;
  tensor->resize(DataType::float32, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
  std::copy_n(values.data(), rows * columns, tensor->values<float>().data());
}

/// Buffers of a kernel that stay from run to run.
struct Buffers {
  std::vector<float> x, h, state, cell, fresh_cell, up, before;
};

template <class Cell>
void take_step(const Sequence& sequence, std::size_t k, Buffers& b, float* out, float* kept) {
  const std::size_t hidden = sequence.hidden, gates = Cell::kGates * hidden;
  for (std::size_t e = 0; e < sequence.batch; ++e) {
    const std::size_t step = sequence.at(k), row = sequence.row(e, step);
    const bool inside = sequence.inside(e, step);
    float *state = b.state.data() + e * hidden, *cell = b.cell.data() + (Cell::kHasCell ? e * hidden : 0);
    float *to = out + row * hidden, *fresh = b.fresh_cell.data();
    const Step s{hidden,
                 b.x.data() + row * gates,
                 b.h.data() + e * gates,
                 state,
                 cell,
                 kept + row * Cell::kKept * hidden,
                 to,
                 fresh};
    vectorized([&s]() __attribute__((always_inline)) { Cell::forward(s); });
    if (inside) {
      std::copy_n(to, hidden, state);
      if (Cell::kHasCell) std::copy_n(fresh, hidden, cell);
    } else if (sequence.zero_padding) {
      std::fill_n(to, hidden, 0.0f);
    }
  }
}

template <class Cell>
Kernel prepare_recurrent_of(const Preparation& p) {
  std::vector<const Tensor*> in(kInputs);
  for (std::size_t i = 0; i < kInputs; ++i) in[i] = p.input(i);
  return [op = &p.op, in = std::move(in), out = p.output(0), last = p.output(1), last_cell = p.output(2),
          reserve = p.output(3), b = Buffers()]() mutable {
    const Sequence sequence(*op, *in[kX], *in[kWeightHh], in[kLengths]);
    const std::size_t rows = sequence.rows(), hidden = sequence.hidden, gates = Cell::kGates * hidden;
    check_parameters(*op, in, sequence, gates);
    out->resize(DataType::float32,
                {in[kX]->shape()[0], in[kX]->shape()[1], static_cast<std::int64_t>(hidden)});
    reserve->resize(DataType::float32, {static_cast<std::int64_t>(rows * Cell::kKept * hidden)});
    b.x.resize(rows * gates);
    b.h.resize(sequence.batch * gates);
    b.fresh_cell.resize(hidden);
    start_from(b.state, in[kH0], sequence.batch * hidden, *op);
    if (Cell::kHasCell) start_from(b.cell, in[kC0], sequence.batch * hidden, *op);
    fill_rows(b.x.data(), in[kBiasIh], rows, gates);
    multiply(
        {.transpose_b = true, .rows = rows, .columns = gates, .inner = sequence.width, .accumulate = true},
        in[kX]->values<float>().data(), in[kWeightIh]->values<float>().data(), b.x.data());
    for (std::size_t k = 0; k < sequence.steps; ++k) {
      fill_rows(b.h.data(), in[kBiasHh], sequence.batch, gates);
      multiply({.transpose_b = true,
                .rows = sequence.batch,
                .columns = gates,
                .inner = hidden,
                .accumulate = true},
               b.state.data(), in[kWeightHh]->values<float>().data(), b.h.data());
      take_step<Cell>(sequence, k, b, out->values<float>().data(), reserve->values<float>().data());
    }
    set_matrix(last, sequence.batch, hidden, b.state);
    set_matrix(last_cell, sequence.batch, hidden, Cell::kHasCell ? b.cell : b.state);
  };
}

template <template <class> class Prepare>
Kernel for_mode(const Preparation& p) {
  const std::string mode = attribute<std::string>(p.op, "mode");
  if (mode == "LSTM") return Prepare<Lstm>::kernel(p);
  if (mode == "GRU") return Prepare<Gru>::kernel(p);
  if (mode == "RNN_RELU") return Prepare<Plain<true>>::kernel(p);
  return Prepare<Plain<false>>::kernel(p);
}

template <class Cell>
struct Forward {
  static Kernel kernel(const Preparation& p) { return prepare_recurrent_of<Cell>(p); }
};

/// From the gradients of H' and C' behind step k (b.state, b.cell) to those before it;
/// b.x and b.h get the gates'.
template <class Cell>
void step_back(const Sequence& sequence, std::size_t k, Buffers& b, const Tensor* out_gradient,
               const float* kept) {
  const std::size_t hidden = sequence.hidden, gates = Cell::kGates * hidden;
  for (std::size_t e = 0; e < sequence.batch; ++e) {
    const std::size_t step = sequence.at(k), row = sequence.row(e, step);
    const bool inside = sequence.inside(e, step), has_out = inside || !sequence.zero_padding;
    float *state = b.state.data() + e * hidden, *cell = b.cell.data() + (Cell::kHasCell ? e * hidden : 0);
    float *up = b.up.data(), *up_cell = up + hidden, *new_state = up_cell + hidden,
          *new_cell = new_state + hidden;
    const float* piece = kept + row * Cell::kKept * hidden;
    std::copy_n(piece, hidden, b.before.data() + e * hidden);
    const float* from_out =
        has_out && out_gradient != nullptr ? out_gradient->values<float>().data() + row * hidden : nullptr;
    for (std::size_t i = 0; i < hidden; ++i) {
      up[i] = (from_out != nullptr ? from_out[i] : 0.0f) + (inside ? state[i] : 0.0f);
      up_cell[i] = Cell::kHasCell && inside ? cell[i] : 0.0f;
    }
    const StepBack s{hidden,    piece,   up, up_cell, b.x.data() + row * gates, b.h.data() + e * gates,
                     new_state, new_cell};
    vectorized([&s]() __attribute__((always_inline)) { Cell::backward(s); });
    // Behind its end a sequence's state is handed on unchanged.
    for (std::size_t i = 0; i < hidden; ++i) {
      state[i] = new_state[i] + (inside ? 0.0f : state[i]);
      if (Cell::kHasCell) cell[i] = new_cell[i] + (inside ? 0.0f : cell[i]);
    }
  }
}

float* zeros_like(Tensor* tensor, const Tensor* like) {
  if (tensor == nullptr) return nullptr;
  tensor->resize(DataType::float32, like->shape());
  std::fill_n(tensor->values<float>().data(), tensor->size(), 0.0f);
  return tensor->values<float>().data();
}

void add_rows(float* to, const float* from, std::size_t rows, std::size_t width) {
  for (std::size_t r = 0; to != nullptr && r < rows; ++r) {
    for (std::size_t i = 0; i < width; ++i) to[i] += from[r * width + i];
  }
}

/// The forward inputs, Reserve, dOut, dLastH, dLastC -> the gradients of the forward inputs but Lengths.
template <class Cell>
Kernel prepare_recurrent_gradient_of(const Preparation& p) {
  std::vector<const Tensor*> in(kInputs + 4);
  std::vector<Tensor*> to(kLengths);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = p.input(i);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = p.output(i);
  return [op = &p.op, in = std::move(in), to = std::move(to), b = Buffers()]() mutable {
    const Sequence sequence(*op, *in[kX], *in[kWeightHh], in[kLengths]);
    const std::size_t batch = sequence.batch, hidden = sequence.hidden, gates = Cell::kGates * hidden;
    const std::size_t rows = sequence.rows();
    const float* weight_hh = in[kWeightHh]->values<float>().data();
    b.x.resize(rows * gates);
    b.h.resize(batch * gates);
    b.up.resize(4 * hidden);
    b.before.resize(batch * hidden);
    start_from(b.state, in[kInputs + 2], batch * hidden, *op);
    if (Cell::kHasCell) start_from(b.cell, in[kInputs + 3], batch * hidden, *op);
    float* to_weight = zeros_like(to[kWeightHh], in[kWeightHh]);
    float* to_bias = zeros_like(to[kBiasHh], in[kBiasHh]);
    for (std::size_t k = sequence.steps; k-- > 0;) {
      step_back<Cell>(sequence, k, b, in[kInputs + 1], in[kInputs]->values<float>().data());
      multiply({.rows = batch, .columns = hidden, .inner = gates, .accumulate = true}, b.h.data(), weight_hh,
               b.state.data());
      if (to_weight != nullptr) {
        multiply({.transpose_a = true, .rows = gates, .columns = hidden, .inner = batch, .accumulate = true},
                 b.h.data(), b.before.data(), to_weight);
      }
      add_rows(to_bias, b.h.data(), batch, gates);
    }
    set_matrix(to[kH0], batch, hidden, b.state);
    if (Cell::kHasCell) set_matrix(to[kC0], batch, hidden, b.cell);
    add_rows(zeros_like(to[kBiasIh], in[kBiasIh]), b.x.data(), rows, gates);
    if (float* weight = zeros_like(to[kWeightIh], in[kWeightIh]); weight != nullptr) {
      multiply({.transpose_a = true, .rows = gates, .columns = sequence.width, .inner = rows}, b.x.data(),
               in[kX]->values<float>().data(), weight);
    }
    if (float* x = zeros_like(to[kX], in[kX]); x != nullptr) {
      multiply({.rows = rows, .columns = sequence.width, .inner = gates}, b.x.data(),
               in[kWeightIh]->values<float>().data(), x);
    }
  };
}

template <class Cell>
struct Backward {
  static Kernel kernel(const Preparation& p) { return prepare_recurrent_gradient_of<Cell>(p); }
};

void recurrent_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  Operator back{.type = "recurrent_grad", .inputs = op.inputs, .outputs = {}, .attributes = op.attributes};
  back.inputs.push_back(op.outputs[3]);
  for (std::size_t i = 0; i < 3; ++i) back.inputs.push_back(builder.output_gradient(i));
  for (std::size_t i = 0; i < kLengths; ++i) back.outputs.push_back(builder.input_gradient(i));
  builder.append(std::move(back));
}

}  // namespace

std::span<const OperatorDefinition> recurrent_operators() {
  static constexpr OperatorDefinition all[] = {
      {"recurrent",
       infer_recurrent,
       for_mode<Forward>,
       recurrent_gradient,
       {"(X [n, steps, in], H0 [n, hidden], C0 [n, hidden], WeightIh [gates, in], WeightHh [gates, "
        "hidden], BiasIh [gates], BiasHh [gates], Lengths [n] int64 or int32) -> Out [n, steps, hidden], "
        "LastH [n, hidden], LastC [n, hidden], Reserve",
        "one direction of one recurrent layer; all inputs but X and the weights may be empty names: then "
        "they are 0, and every sequence has all steps; C0 belongs to LSTM alone; in other modes LastC is "
        "LastH. With x = X * WeightIh^T + BiasIh and h = H * WeightHh^T + BiasHh, cut into the gates named "
        "here: `RNN_TANH`, `RNN_RELU`: H' = tanh (relu) of x + h; `GRU` (r, z, c): r = sigmoid(x + h), z = "
        "sigmoid(x + h), c = tanh(x + r * h), H' = z * H + (1 - z) * c; `LSTM` (i, f, g, o): C' = "
        "sigmoid(f) * C + sigmoid(i) * tanh(g), H' = sigmoid(o) * tanh(C')",
        "mode; reverse = false: true goes from the last step to the first; time_major = false: with true X "
        "and Out are [steps, n, ..]; zero_padding = true: Out is 0 behind a sequence's end (the state "
        "stays as it is there either way)"}},
      {"recurrent_grad", infer_gradient, for_mode<Backward>, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
