// Linear chains: the loss of a sequence of labels and the best one, by forward-backward and Viterbi. float32;
// sums within a sequence are taken in double.
//
// Transition[C + 2, C] has a weight for beginning with each label, one for ending with it, and then row i for
// going from label i to the others. Sequences are those of X [total, C], or, with Length, the first rows of
// X [n, most, C]. Source: Lafferty, McCallum and Pereira, Conditional random fields, 2001.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

struct In {
  enum : std::size_t { kX, kTransition, kLabel, kLength, kInputs };
};

/// The labels C and what is wrong with the shapes.
void check_shapes(const Inference& inference) {
  const bool padded = is_given(inference.op(), In::kLength);
  inference.expect_type(In::kX, DataType::float32);
  inference.expect_type(In::kTransition, DataType::float32);
  const Variable &x = inference.input(In::kX), &transition = inference.input(In::kTransition);
  if (x.shape.size() != (padded ? 3 : 2)) {
    inference.fail(padded ? "with lengths the input is [n, most, C]" : "without lengths it is [total, C]");
  }
  if (!padded && x.lod_level == 0) inference.fail("the input has no sequences", "give it lengths");
  const std::int64_t tags = x.shape.back();
  if (tags < 1 || transition.shape != Shape{tags + 2, tags}) {
    inference.fail("the transitions are not [C + 2, C] with C = " + std::to_string(tags));
  }
  if (is_given(inference.op(), In::kLabel)) inference.expect_type(In::kLabel, DataType::int64);
  if (padded) inference.expect_type(In::kLength, DataType::int64);
}

/// Which rows of C values each sequence has.
std::vector<SequenceRows> rows_of(const Operator& op, const Tensor& x, const Tensor* length) {
  const auto size = [&x](std::size_t axis) { return static_cast<std::size_t>(x.shape()[axis]); };
  return sequence_rows(op, In::kX, x, length, size(0), size(1));
}

/// The labels of X's rows. Throws: Error(data) for one that is none of the C.
const std::int64_t* checked_labels(const Operator& op, const Tensor& x, const Tensor& label,
                                   const std::vector<SequenceRows>& sequences) {
  const auto tags = static_cast<std::size_t>(x.shape().back());
  check_size(op, &label, x.size() / tags, "label");
  const std::int64_t* labels = label.values<std::int64_t>().data();
  for (const SequenceRows& rows : sequences) {
    for (std::size_t r = rows.begin; r < rows.begin + rows.count; ++r) {
      if (labels[r] >= 0 && static_cast<std::size_t>(labels[r]) < tags) continue;
      fail_on_data(op,
                   "label " + std::to_string(labels[r]) + " in '" + op.inputs[In::kLabel] +
                       "' is outside of [0, " + std::to_string(tags) + ")",
                   "map labels into it");
    }
  }
  return labels;
}

void scale_to_one(double* row, std::size_t size, double total) {
  for (std::size_t i = 0; i < size; ++i) row[i] /= total;
}

double sum_of(const double* row, std::size_t size) {
  double total = 0.0;
  for (std::size_t i = 0; i < size; ++i) total += row[i];
  return total;
}

/// The chances of one sequence under the weights.
class Chain {
 public:
  Chain(const Tensor& x, const Tensor& transition)
      : tags_(static_cast<std::size_t>(x.shape().back())),
        x_(x.values<float>().data()),
        weights_(transition.values<float>().data()),
        factors_(transition.size()) {
    std::transform(weights_, weights_ + factors_.size(), factors_.begin(),
                   [](float w) { return std::exp(static_cast<double>(w)); });
  }

  std::size_t tags() const noexcept { return tags_; }

  /// The log of the sum over all labellings; fills the chances of each label after the rows up to its own.
  double forward(SequenceRows rows) {
    if (rows.count == 0) return 0.0;
    emitted_.resize(rows.count * tags_);
    forward_.resize(rows.count * tags_);
    double log_sum = 0.0;
    for (std::size_t k = 0; k < rows.count; ++k) {
      const float* x = x_ + (rows.begin + k) * tags_;
      double *emitted = &emitted_[k * tags_], *to = &forward_[k * tags_];
      const float most = *std::max_element(x, x + tags_);
      for (std::size_t j = 0; j < tags_; ++j) {
        emitted[j] = std::exp(static_cast<double>(x[j]) - static_cast<double>(most));
        double before = k == 0 ? factors_[j] : 0.0;
        for (std::size_t i = 0; k > 0 && i < tags_; ++i) before += to[i - tags_] * go(i, j);
        to[j] = before * emitted[j];
      }
      const double total = sum_of(to, tags_);
      scale_to_one(to, tags_, total);
      log_sum += static_cast<double>(most) + std::log(total);
    }
    const double* last = &forward_[(rows.count - 1) * tags_];
    double ended = 0.0;
    for (std::size_t i = 0; i < tags_; ++i) ended += last[i] * factors_[tags_ + i];
    return log_sum + std::log(ended);
  }

  double score(SequenceRows rows, const std::int64_t* labels) const {
    double total = 0.0;
    for (std::size_t r = rows.begin; r < rows.begin + rows.count; ++r) {
      const auto label = static_cast<std::size_t>(labels[r]);
      total += static_cast<double>(x_[r * tags_ + label]);
      if (r == rows.begin) total += static_cast<double>(weights_[label]);
      if (r > rows.begin) total += static_cast<double>(weights_[at(labels[r - 1], label)]);
      if (r + 1 == rows.begin + rows.count) total += static_cast<double>(weights_[tags_ + label]);
    }
    return total;
  }

  /// Adds scale · d(log sum - score) to the gradients of the rows and of the weights; after forward().
  void add_gradient(SequenceRows rows, const std::int64_t* labels, double scale, float* dx,
                    std::vector<double>& weights) {
    std::vector<double> backward(factors_.begin() + static_cast<std::ptrdiff_t>(tags_),
                                 factors_.begin() + static_cast<std::ptrdiff_t>(2 * tags_));
    std::vector<double> chances(tags_), pairs(tags_ * tags_);
    for (std::size_t k = rows.count; k-- > 0;) {
      const std::size_t row = rows.begin + k;
      const auto label = static_cast<std::size_t>(labels[row]);
      for (std::size_t i = 0; i < tags_; ++i) chances[i] = forward_[k * tags_ + i] * backward[i];
      scale_to_one(chances.data(), tags_, sum_of(chances.data(), tags_));
      chances[label] -= 1.0;
      for (std::size_t i = 0; i < tags_; ++i) {
        if (dx != nullptr) dx[row * tags_ + i] = static_cast<float>(scale * chances[i]);
        if (k == 0) weights[i] += scale * chances[i];
        if (k + 1 == rows.count) weights[tags_ + i] += scale * chances[i];
      }
      if (k == 0) break;
      for (std::size_t j = 0; j < tags_; ++j) backward[j] *= emitted_[k * tags_ + j];
      for (std::size_t i = 0; i < tags_; ++i) {
        for (std::size_t j = 0; j < tags_; ++j) {
          pairs[i * tags_ + j] = forward_[(k - 1) * tags_ + i] * go(i, j) * backward[j];
        }
      }
      const double all = sum_of(pairs.data(), pairs.size());
      for (std::size_t i = 0; i < pairs.size(); ++i) weights[2 * tags_ + i] += scale * pairs[i] / all;
      weights[at(labels[row - 1], label)] -= scale;
      step_back(backward);
    }
  }

  /// The labelling with the highest score; of equal ones the first label.
  void best(SequenceRows rows, std::int64_t* to) {
    if (rows.count == 0) return;
    std::vector<float> scores(rows.count * tags_);
    std::vector<std::size_t> from(rows.count * tags_);
    for (std::size_t k = 0; k < rows.count; ++k) {
      const float* x = x_ + (rows.begin + k) * tags_;
      for (std::size_t j = 0; j < tags_; ++j) {
        const auto after = [&](std::size_t i) { return scores[(k - 1) * tags_ + i] + weights_[at(i, j)]; };
        std::size_t best = 0;
        for (std::size_t i = 1; k > 0 && i < tags_; ++i) best = after(i) > after(best) ? i : best;
        from[k * tags_ + j] = best;
        scores[k * tags_ + j] = (k == 0 ? weights_[j] : after(best)) + x[j];
      }
    }
    const float* last = &scores[(rows.count - 1) * tags_];
    std::size_t label = 0;
    for (std::size_t i = 1; i < tags_; ++i)
      label = last[i] + weights_[tags_ + i] > last[label] + weights_[tags_ + label] ? i : label;
    for (std::size_t k = rows.count; k-- > 0; label = from[k * tags_ + label])
      to[rows.begin + k] = static_cast<std::int64_t>(label);
  }

 private:
  /// Where the weight for going from one label to another lies.
  template <class Label>
  std::size_t at(Label from, std::size_t to) const noexcept {
    return (static_cast<std::size_t>(from) + 2) * tags_ + to;
  }
  double go(std::size_t from, std::size_t to) const noexcept { return factors_[at(from, to)]; }

  /// The chances of what follows, one row earlier.
  void step_back(std::vector<double>& backward) const {
    std::vector<double> before(tags_, 0.0);
    for (std::size_t i = 0; i < tags_; ++i) {
      for (std::size_t j = 0; j < tags_; ++j) before[i] += go(i, j) * backward[j];
    }
    scale_to_one(before.data(), tags_, sum_of(before.data(), tags_));
    backward = std::move(before);
  }

  std::size_t tags_;
  const float *x_, *weights_;
  std::vector<double> factors_, emitted_, forward_;
};

void infer_linear_chain_crf(Inference& inference) {
  inference.expect_inputs(In::kLabel + 1, In::kInputs);
  inference.expect_outputs(1, 1);
  check_shapes(inference);
  const bool padded = is_given(inference.op(), In::kLength);
  inference.set_output(0, DataType::float32, {padded ? inference.input(In::kX).shape[0] : -1, 1});
}

Kernel prepare_linear_chain_crf(const Preparation& p) {
  return [op = &p.op, x = p.input(In::kX), transition = p.input(In::kTransition), label = p.input(In::kLabel),
          length = p.input(In::kLength), out = p.output(0)] {
    const std::vector<SequenceRows> sequences = rows_of(*op, *x, length);
    const std::int64_t* labels = checked_labels(*op, *x, *label, sequences);
    out->resize(DataType::float32, {static_cast<std::int64_t>(sequences.size()), 1});
    float* to = out->values<float>().data();
    Chain chain(*x, *transition);
    for (const SequenceRows& rows : sequences)
      *to++ = static_cast<float>(chain.forward(rows) - chain.score(rows, labels));
  };
}

/// (X, Transition, Label, Length, dOut) -> dX, dTransition
Kernel prepare_linear_chain_crf_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(In::kX), transition = p.input(In::kTransition), label = p.input(In::kLabel),
          length = p.input(In::kLength), g = p.input(In::kInputs), dx = p.output(0), dweights = p.output(1)] {
    const std::vector<SequenceRows> sequences = rows_of(*op, *x, length);
    const std::int64_t* labels = checked_labels(*op, *x, *label, sequences);
    if (dx != nullptr) {
      dx->resize(DataType::float32, x->shape());
      dx->offsets = x->offsets;
      std::ranges::fill(dx->values<float>(), 0.0f);
    }
    Chain chain(*x, *transition);
    std::vector<double> weights(transition->size(), 0.0);
    const float* scale = g->values<float>().data();
    for (const SequenceRows& rows : sequences) {
      static_cast<void>(chain.forward(rows));
      chain.add_gradient(rows, labels, static_cast<double>(*scale++),
                         dx == nullptr ? nullptr : dx->values<float>().data(), weights);
    }
    if (dweights == nullptr) return;
    dweights->resize(DataType::float32, transition->shape());
    std::ranges::transform(weights, dweights->values<float>().begin(),
                           [](double w) { return static_cast<float>(w); });
  };
}

void linear_chain_crf_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "linear_chain_crf_grad",
                  .inputs = {op.inputs[In::kX], op.inputs[In::kTransition], op.inputs[In::kLabel],
                             is_given(op, In::kLength) ? op.inputs[In::kLength] : std::string(),
                             builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(In::kX), builder.input_gradient(In::kTransition)},
                  .attributes = {}});
}

void infer_crf_decoding(Inference& inference) {
  inference.expect_inputs(In::kTransition + 1, In::kInputs);
  inference.expect_outputs(1, 1);
  check_shapes(inference);
  const Variable& x = inference.input(In::kX);
  const bool padded = is_given(inference.op(), In::kLength);
  inference.set_output(0, DataType::int64, {x.shape[0], padded ? x.shape[1] : 1}, x.lod_level);
}

Kernel prepare_crf_decoding(const Preparation& p) {
  return [op = &p.op, x = p.input(In::kX), transition = p.input(In::kTransition), label = p.input(In::kLabel),
          length = p.input(In::kLength), out = p.output(0)] {
    const std::vector<SequenceRows> sequences = rows_of(*op, *x, length);
    out->resize(DataType::int64, {x->shape()[0], length == nullptr ? 1 : x->shape()[1]});
    out->offsets = x->offsets;
    const auto path = out->values<std::int64_t>();
    std::ranges::fill(path, std::int64_t{0});
    Chain chain(*x, *transition);
    for (const SequenceRows& rows : sequences) chain.best(rows, path.data());
    if (label == nullptr) return;
    check_size(*op, label, path.size(), "label");
    const std::int64_t* right = label->values<std::int64_t>().data();
    for (const SequenceRows& rows : sequences) {
      for (std::size_t r = rows.begin; r < rows.begin + rows.count; ++r)
        path[r] = path[r] == right[r] ? 1 : 0;
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> crf_operators() {
  static constexpr OperatorDefinition all[] = {
      {"linear_chain_crf",
       infer_linear_chain_crf,
       prepare_linear_chain_crf,
       linear_chain_crf_gradient,
       {"(X, Transition [C + 2, C], Label int64, [Length int64 [n]]) -> Out [n, 1]",
        "log of the sum over all labellings of exp(score), less the score of Label; 0 for a sequence without "
        "rows. X [total, C] in sequences; with Length [n, most, C]"}},
      {"linear_chain_crf_grad", infer_gradient, prepare_linear_chain_crf_gradient, nullptr},
      {"crf_decoding",
       infer_crf_decoding,
       prepare_crf_decoding,
       nullptr,
       {"(X, Transition [C + 2, C], [Label int64], [Length int64 [n]]) -> Path int64 [total, 1] or [n, most]",
        "the labelling with the highest score, 0 behind the length; with Label whether it is the same, 1 or "
        "0"}},
  };
  return all;
}

}  // namespace fleetrun::engine
