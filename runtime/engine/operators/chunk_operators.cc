// Pieces of labelled sequences, counted: how many there are in a labelling, how many in the right one, and
// how many are the same. No gradients.
//
// A label is type · (places of the scheme) + place; the number of types times that of places stands outside
// of every piece. Source: the scheme of CoNLL-2000's conlleval.

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

/// What a label says of the place in its piece, under a scheme's numbers; -2 where the scheme has it not.
struct Places {
  std::int64_t count, begin, inside, end, single;
};

Places places_of(const Operator& op) {
  const std::string scheme = attribute(op, "chunk_scheme", std::string("IOB"));
  if (scheme == "IOB") return {2, 0, 1, -2, -2};
  if (scheme == "IOE") return {2, -2, 0, 1, -2};
  if (scheme == "IOBES") return {4, 0, 1, 2, 3};
  if (scheme == "plain") return {1, -2, -2, -2, -2};
  fail(op, "there is no scheme '" + scheme + "'", "use IOB, IOE, IOBES or plain");
}

struct Piece {
  std::size_t begin, end;
  std::int64_t type;
  auto operator<=>(const Piece&) const = default;
};

class Scheme {
 public:
  explicit Scheme(const Operator& op)
      : op_(op),
        places_(places_of(op)),
        types_(attribute<std::int64_t>(op, "num_chunk_types")),
        excluded_(attribute(op, "excluded_chunk_types", std::vector<std::int64_t>())) {}

  /// The pieces of one sequence, but those of excluded types.
  std::vector<Piece> pieces(std::span<const std::int64_t> labels) const {
    std::vector<Piece> found;
    Label before{-1, types_};
    std::size_t begin = 0;
    const auto close = [&](std::size_t end) {
      if (before.type < types_ && std::ranges::find(excluded_, before.type) == excluded_.end())
        found.push_back({begin, end, before.type});
    };
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const Label now = label(labels[k]);
      if (is_new(before, now)) {
        close(k);
        begin = k;
      }
      before = now;
    }
    close(labels.size());
    return found;
  }

 private:
  struct Label {
    std::int64_t place, type;
  };

  Label label(std::int64_t number) const {
    if (number < 0 || number > types_ * places_.count) {
      fail_on_data(op_,
                   "label " + std::to_string(number) + " is outside of [0, " +
                       std::to_string(types_ * places_.count) + "]",
                   "num_chunk_types is " + std::to_string(types_));
    }
    return {number % places_.count, number / places_.count};
  }

  /// Whether one piece, or what lies between, ends before this label.
  bool is_new(const Label& before, const Label& now) const {
    if (before.type != now.type) return true;
    if (now.type >= types_) return false;
    return now.place == places_.begin || now.place == places_.single || before.place == places_.end ||
           before.place == places_.single;
  }

  const Operator& op_;
  Places places_;
  std::int64_t types_;
  std::vector<std::int64_t> excluded_;
};

void infer_chunk_eval(Inference& inference) {
  inference.expect_inputs(2, 3);
  inference.expect_outputs(6, 6);
  for (std::size_t i = 0; i < inference.op().inputs.size(); ++i) {
    if (!inference.op().inputs[i].empty()) inference.expect_type(i, DataType::int64);
  }
  static_cast<void>(Scheme(inference.op()));
  const bool padded = inference.op().inputs.size() > 2 && !inference.op().inputs[2].empty();
  if (!padded && inference.input(0).lod_level == 0) {
    inference.fail("the input has no sequences", "give it seq_length");
  }
  for (std::size_t i = 0; i < 6; ++i)
    inference.set_output(i, i < 3 ? DataType::float32 : DataType::int64, {1});
}

float ratio(double part, double whole) {
  return whole == 0.0 ? 0.0f : static_cast<float>(part / whole);
}

Kernel prepare_chunk_eval(const Preparation& p) {
  std::array<Tensor*, 6> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = p.output(i);
  return [op = &p.op, found = p.input(0), right = p.input(1), length = p.input(2), out] {
    const Scheme scheme(*op);
    check_size(*op, right, found->size(), "label");
    std::array<std::int64_t, 3> counts{};  // found, right, both
    const std::size_t n = length == nullptr ? 0 : length->size();
    for (const auto [begin, rows] :
         sequence_rows(*op, 0, *found, length, n, n == 0 ? 0 : found->size() / n)) {
      const auto a = scheme.pieces(found->values<std::int64_t>().subspan(begin, rows));
      const auto b = scheme.pieces(right->values<std::int64_t>().subspan(begin, rows));
      std::vector<Piece> both;
      std::ranges::set_intersection(a, b, std::back_inserter(both));
      counts[0] += static_cast<std::int64_t>(a.size());
      counts[1] += static_cast<std::int64_t>(b.size());
      counts[2] += static_cast<std::int64_t>(both.size());
    }
    const auto both = static_cast<double>(counts[2]);
    const std::array<float, 3> shares{
        ratio(both, static_cast<double>(counts[0])), ratio(both, static_cast<double>(counts[1])),
        ratio(2.0 * both, static_cast<double>(counts[0]) + static_cast<double>(counts[1]))};
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i]->resize(i < 3 ? DataType::float32 : DataType::int64, {1});
      if (i < 3) out[i]->values<float>()[0] = shares[i];
      if (i >= 3) out[i]->values<std::int64_t>()[0] = counts[i - 3];
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> chunk_operators() {
  static constexpr OperatorDefinition all[] = {
      {"chunk_eval",
       infer_chunk_eval,
       prepare_chunk_eval,
       nullptr,
       {"(Found int64, Label int64, [Length int64 [n]]) -> Precision [1], Recall [1], F1 [1], Pieces found, "
        "in Label, in both int64 [1]",
        "the pieces of two labellings, of sequences or, with Length, of the first values of rows [n, most]",
        "chunk_scheme = IOB, IOE, IOBES or plain; num_chunk_types; excluded_chunk_types = []"}},
  };
  return all;
}

}  // namespace fleetrun::engine
