// Sequences of labels without places in the input: the loss of all alignments with one, the labels of an
// alignment, and how far two sequences of labels are apart. Sums within a sequence are taken in double.
//
// A frame has a value for each label and for the blank; repeated labels of an alignment are one unless a
// blank is between them. Source: Graves et al., Connectionist temporal classification, 2006; Levenshtein,
// 1966.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return high == kNone ? kNone : high + std::log1p(std::exp(std::min(a, b) - high));
}

void expect_labels(const Inference& inference, std::size_t index) {
  if (inference.input(index).type != DataType::int32) inference.expect_type(index, DataType::int64);
}

std::int64_t label_at(const Tensor& labels, std::size_t index) {
  return labels.type() == DataType::int32 ? labels.values<std::int32_t>()[index]
                                          : labels.values<std::int64_t>()[index];
}

/// The values of some rows of labels, [rows, 1] or [n, most].
std::vector<std::int64_t> labels_of(const Tensor& labels, SequenceRows rows) {
  std::vector<std::int64_t> found(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) found[i] = label_at(labels, rows.begin + i);
  return found;
}

struct Ctc {
  enum : std::size_t { kLogits, kLabel, kFrames, kCount };
};

/// The alignments of one sequence with its labels.
class Alignments {
 public:
  /// `frames` rows of `classes` values, `step` values apart.
  Alignments(const float* logits, std::size_t step, std::size_t frames, std::size_t classes,
             const std::vector<std::int64_t>& labels, std::size_t blank)
      : frames_(frames), classes_(classes), logs_(frames * classes), path_(2 * labels.size() + 1, blank) {
    for (std::size_t i = 0; i < labels.size(); ++i) path_[2 * i + 1] = static_cast<std::size_t>(labels[i]);
    for (std::size_t t = 0; t < frames; ++t) {
      const float* row = logits + t * step;
      const double high = *std::max_element(row, row + classes);
      double total = 0.0;
      for (std::size_t k = 0; k < classes; ++k) total += std::exp(static_cast<double>(row[k]) - high);
      for (std::size_t k = 0; k < classes; ++k) logs_[t * classes + k] = row[k] - high - std::log(total);
    }
  }

  /// -log of the chance of all alignments; 0 where there is none, as the frames are too few.
  double loss() {
    const std::size_t size = path_.size();
    before_.assign(frames_ * size, kNone);
    for (std::size_t t = 0; t < frames_; ++t) {
      for (std::size_t s = 0; s < size; ++s) {
        double sum = t == 0 && s < 2 ? 0.0 : kNone;
        if (t > 0) {
          const double* last = &before_[(t - 1) * size];
          sum = s > 0 ? log_sum(last[s], last[s - 1]) : last[s];
          if (may_skip(s)) sum = log_sum(sum, last[s - 2]);
        }
        before_[t * size + s] = sum + log_of(t, s);
      }
    }
    total_ = frames_ == 0 ? (size == 1 ? 0.0 : kNone) : end_of(&before_[(frames_ - 1) * size]);
    return total_ == kNone ? 0.0 : -total_;
  }

  /// After loss(): that by the logits, times `factor`, into rows `step` values apart.
  void gradient(float factor, float* to, std::size_t step) const {
    const std::size_t size = path_.size();
    std::vector<double> behind(size, kNone), next, share(classes_);
    for (std::size_t t = frames_; t-- > 0;) {
      next = behind;
      for (std::size_t s = 0; s < size; ++s) {
        double sum = t + 1 == frames_ && s + 2 >= size ? 0.0 : kNone;
        if (t + 1 < frames_) {
          const auto along = [&](std::size_t to) { return next[to] + log_of(t + 1, to); };
          sum = s + 1 < size ? log_sum(along(s), along(s + 1)) : along(s);
          if (s + 2 < size && may_skip(s + 2)) sum = log_sum(sum, along(s + 2));
        }
        behind[s] = sum;
      }
      std::fill(share.begin(), share.end(), 0.0);
      for (std::size_t s = 0; s < size; ++s) {
        share[path_[s]] += std::exp(before_[t * size + s] + behind[s] - total_);
      }
      for (std::size_t k = 0; k < classes_; ++k) {
        const double slope = total_ == kNone ? 0.0 : std::exp(logs_[t * classes_ + k]) - share[k];
        to[t * step + k] = factor * static_cast<float>(slope);
      }
    }
  }

 private:
  double log_of(std::size_t t, std::size_t s) const { return logs_[t * classes_ + path_[s]]; }
  /// Whether the blank before a label may be left out.
  bool may_skip(std::size_t s) const { return s % 2 == 1 && s >= 2 && path_[s] != path_[s - 2]; }
  double end_of(const double* row) const {
    const std::size_t size = path_.size();
    return size > 1 ? log_sum(row[size - 1], row[size - 2]) : row[0];
  }

  std::size_t frames_, classes_;
  std::vector<double> logs_;
  std::vector<std::size_t> path_;  // the labels with a blank around each
  std::vector<double> before_;  // of each frame and place of the path: log of the chance to have come there
  double total_ = kNone;
};

void infer_ctc_loss(Inference& inference) {
  inference.expect_inputs(2, 4);
  inference.expect_outputs(1, 1);
  inference.expect_type(Ctc::kLogits, DataType::float32);
  expect_labels(inference, Ctc::kLabel);
  const Operator& op = inference.op();
  const bool padded = is_given(op, Ctc::kFrames);
  if (padded != is_given(op, Ctc::kCount))
    inference.fail("lengths of the input or of the labels are missing");
  const Variable& logits = inference.input(Ctc::kLogits);
  if (logits.shape.size() != (padded ? 3 : 2)) {
    inference.fail(padded ? "with lengths the input is [most, n, C]" : "without lengths it is [total, C]");
  }
  if (!padded && (logits.lod_level == 0 || inference.input(Ctc::kLabel).lod_level == 0)) {
    inference.fail("the input or the labels have no sequences", "give lengths of both");
  }
  inference.set_output(0, DataType::float32, {padded ? logits.shape[1] : -1, 1});
}

/// body(sequence, alignments, where its values begin, how far its rows are apart, its frames).
template <class Body>
void for_each_alignment(const Operator& op, const Preparation& p, const Body& body) {
  const Tensor &logits = *p.input(Ctc::kLogits), &labels = *p.input(Ctc::kLabel);
  const Tensor *frames = p.input(Ctc::kFrames), *counts = p.input(Ctc::kCount);
  const bool padded = is_given(op, Ctc::kFrames);
  const Shape& shape = logits.shape();
  const auto classes = static_cast<std::size_t>(shape.back());
  const auto n = padded ? static_cast<std::size_t>(shape[1]) : std::size_t{0};
  const auto most = static_cast<std::size_t>(shape[0]);
  const auto rows = sequence_rows(op, Ctc::kLogits, logits, padded ? frames : nullptr, n, most);
  const auto lines =
      sequence_rows(op, Ctc::kLabel, labels, padded ? counts : nullptr, n, n == 0 ? 0 : labels.size() / n);
  if (rows.size() != lines.size()) {
    fail(op, std::to_string(rows.size()) + " sequences and labels of " + std::to_string(lines.size()));
  }
  const auto blank = attribute(op, "blank", std::int64_t{0});
  if (blank < 0 || blank >= shape.back()) fail(op, "the blank is none of the classes");
  const std::size_t step = padded ? n * classes : classes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<std::int64_t> wanted = labels_of(labels, lines[i]);
    for (const std::int64_t label : wanted) {
      if (label >= 0 && label < shape.back()) continue;
      fail_on_data(op,
                   "label " + std::to_string(label) + " is outside of [0, " + std::to_string(classes) + ")",
                   "the last axis of the input has one value for each label and one for the blank");
    }
    const std::size_t begin = padded ? i * classes : rows[i].begin * classes;
    body(i,
         Alignments(logits.values<float>().data() + begin, step, rows[i].count, classes, wanted,
                    static_cast<std::size_t>(blank)),
         begin, step, rows[i].count);
  }
}

Kernel prepare_ctc_loss(const Preparation& p) {
  return [op = &p.op, given = p, out = p.output(0)] {
    std::vector<float> losses;
    for_each_alignment(*op, given, [&](std::size_t, Alignments alignments, auto...) {
      losses.push_back(static_cast<float>(alignments.loss()));
    });
    out->resize(DataType::float32, {static_cast<std::int64_t>(losses.size()), 1});
    std::ranges::copy(losses, out->values<float>().begin());
  };
}

/// (Logits, Label, Frames, Count, dLoss) -> dLogits
Kernel prepare_ctc_loss_gradient(const Preparation& p) {
  return [op = &p.op, given = p, x = p.input(Ctc::kLogits), g = p.input(4), dx = p.output(0),
          by_frames = attribute(p.op, "norm_by_times", false)] {
    dx->resize(DataType::float32, x->shape());
    const auto to = dx->values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    for_each_alignment(
        *op, given,
        [&](std::size_t i, Alignments alignments, std::size_t begin, std::size_t step, std::size_t frames) {
          alignments.loss();
          const float slope = g->values<float>()[i];
          alignments.gradient(by_frames ? slope / static_cast<float>(frames) : slope, to.data() + begin,
                              step);
        });
  };
}

void ctc_loss_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (!builder.wants(Ctc::kLogits)) return;
  const auto input = [&op](std::size_t i) { return i < op.inputs.size() ? op.inputs[i] : std::string(); };
  builder.append({.type = "ctc_loss_grad",
                  .inputs = {input(0), input(1), input(2), input(3), builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(Ctc::kLogits)},
                  .attributes = op.attributes});
}

void infer_ctc_align(Inference& inference) {
  inference.expect_inputs(1, 2);
  const bool padded = is_given(inference.op(), 1);
  inference.expect_outputs(padded ? 2 : 1, padded ? 2 : 1);
  expect_labels(inference, 0);
  const Variable x = inference.input(0);
  if (!padded && x.lod_level == 0) inference.fail("the input has no sequences", "give it lengths");
  if (padded && x.shape.size() != 2) inference.fail("with lengths the input is [n, most]");
  inference.set_output(0, x.type, padded ? x.shape : Shape{-1, 1}, padded ? 0 : 1);
  if (padded) inference.set_output(1, DataType::int64, {x.shape[0], 1});
}

std::vector<std::int64_t> merged_labels(const std::vector<std::int64_t>& frames, std::int64_t blank,
                                        bool merge) {
  std::vector<std::int64_t> kept;
  std::int64_t last = -1;
  for (const std::int64_t label : frames) {
    if (label != blank && !(merge && label == last)) kept.push_back(label);
    last = label;
  }
  return kept;
}

void store(const std::vector<std::int64_t>& labels, std::size_t begin, Tensor& out) {
  if (out.type() == DataType::int64) {
    std::ranges::copy(labels, out.values<std::int64_t>().begin() + static_cast<std::ptrdiff_t>(begin));
    return;
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    out.values<std::int32_t>()[begin + i] = static_cast<std::int32_t>(labels[i]);
}

Kernel prepare_ctc_align(const Preparation& p) {
  const std::int64_t blank = attribute(p.op, "blank", std::int64_t{0});
  const bool merge = attribute(p.op, "merge_repeated", true);
  return [op = &p.op, x = p.input(0), length = p.input(1), out = p.output(0), counts = p.output(1), blank,
          merge, padding = attribute(p.op, "padding_value", std::int64_t{0})] {
    const std::size_t n = length == nullptr ? 0 : length->size();
    const auto all = sequence_rows(*op, 0, *x, length, n, n == 0 ? 0 : x->size() / n);
    std::vector<std::int64_t> labels;
    std::vector<std::size_t> offsets{0};
    for (const SequenceRows rows : all) {
      const auto kept = merged_labels(labels_of(*x, rows), blank, merge);
      labels.insert(labels.end(), kept.begin(), kept.end());
      offsets.push_back(labels.size());
    }
    if (length == nullptr) {
      // As in Paddle, whose tensors have a value at least.
      if (labels.empty()) labels.push_back(-1);
      out->resize(x->type(), {static_cast<std::int64_t>(labels.size()), 1});
      store(labels, 0, *out);
      out->offsets = std::move(offsets);
      return;
    }
    out->resize(x->type(), x->shape());
    counts->resize(DataType::int64, {static_cast<std::int64_t>(n), 1});
    store(std::vector<std::int64_t>(x->size(), padding), 0, *out);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = [&](std::size_t k) { return labels.begin() + static_cast<std::ptrdiff_t>(offsets[k]); };
      store({at(i), at(i + 1)}, i * (x->size() / n), *out);
      counts->values<std::int64_t>()[i] = static_cast<std::int64_t>(offsets[i + 1] - offsets[i]);
    }
  };
}

void infer_edit_distance(Inference& inference) {
  inference.expect_inputs(2, 4);
  inference.expect_outputs(2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    expect_labels(inference, i);
    if (!is_given(inference.op(), 2 + i) && inference.input(i).lod_level == 0) {
      inference.fail("'" + inference.op().inputs[i] + "' has no sequences", "give the lengths of both");
    }
  }
  inference.set_output(0, DataType::float32, {-1, 1});
  inference.set_output(1, DataType::int64, {1});
}

/// How many labels are put in, left out or replaced to make one of the other.
std::size_t distance(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t replaced = corner + (a[i] == b[k] ? 0 : 1);
      corner = row[k + 1];
      row[k + 1] = std::min({corner + 1, row[k] + 1, replaced});
    }
  }
  return row.back();
}

Kernel prepare_edit_distance(const Preparation& p) {
  return [op = &p.op, found = p.input(0), right = p.input(1), lengths = p.input(2), counts = p.input(3),
          out = p.output(0), number = p.output(1), normalized = attribute(p.op, "normalized", false),
          ignored = attribute(p.op, "ignored_tokens", std::vector<std::int64_t>())] {
    const auto rows = [&](std::size_t index, const Tensor& x, const Tensor* length) {
      const std::size_t n = length == nullptr ? 0 : length->size();
      return sequence_rows(*op, index, x, length, n, n == 0 ? 0 : x.size() / n);
    };
    const auto kept = [&](const Tensor& x, SequenceRows of) {
      std::vector<std::int64_t> labels = labels_of(x, of);
      std::erase_if(labels, [&](std::int64_t label) { return std::ranges::count(ignored, label) > 0; });
      return labels;
    };
    const auto a = rows(0, *found, lengths), b = rows(1, *right, counts);
    if (a.size() != b.size()) {
      fail(*op, std::to_string(a.size()) + " sequences, and " + std::to_string(b.size()) + " right ones");
    }
    out->resize(DataType::float32, {static_cast<std::int64_t>(a.size()), 1});
    number->resize(DataType::int64, {1});
    number->values<std::int64_t>()[0] = static_cast<std::int64_t>(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto wanted = kept(*right, b[i]);
      const auto apart = static_cast<float>(distance(kept(*found, a[i]), wanted));
      if (normalized && wanted.empty()) {
        fail_on_data(*op, "right sequence " + std::to_string(i) + " is empty, and the distance by its length",
                     "leave such examples out, or normalized");
      }
      out->values<float>()[i] = normalized ? apart / static_cast<float>(wanted.size()) : apart;
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> alignment_operators() {
  static constexpr OperatorDefinition all[] = {
      {"ctc_loss",
       infer_ctc_loss,
       prepare_ctc_loss,
       ctc_loss_gradient,
       {"(Logits, Label int32 or int64, [Frames [n]], [Count [n]]) -> Loss [n, 1]",
        "the negative logarithm of the chance of Label under all alignments, 0 where the frames are too few; "
        "Logits [total, C] and Label in sequences, or Logits [most, n, C] and Label [n, most] with the "
        "lengths "
        "of both",
        "blank = 0; norm_by_times = false: gradients are divided by the frames"}},
      {"ctc_loss_grad", infer_gradient, prepare_ctc_loss_gradient, nullptr},
      {"ctc_align",
       infer_ctc_align,
       prepare_ctc_align,
       nullptr,
       {"(X int32 or int64, [Length [n]]) -> Out, [Count int64 [n, 1]]",
        "the labels of an alignment: repeated ones made one, blanks left out; of X in sequences, or of X [n, "
        "most], whose rows end with the padding",
        "blank = 0; merge_repeated = true; padding_value = 0"}},
      {"edit_distance",
       infer_edit_distance,
       prepare_edit_distance,
       nullptr,
       {"(Found, Right, [Lengths of Found [n]], [of Right [n]]) -> Distance [n, 1], Sequences int64 [1]",
        "how many labels of int32 or int64 to put in, leave out or replace",
        "normalized = false: true divides by the right one's length; ignored_tokens = []"}},
  };
  return all;
}

}  // namespace fleetrun::engine
