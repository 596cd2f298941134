// Beam search over beginnings of sequences: the best next ones, and the sequences at the end.
//
// A source has a number of beginnings, rows one behind the other. A step takes the best of all their
// continuations; those of one beginning are a sequence of the result, and the beginnings of a source a group.
// A beginning that has ended goes on as it is; a source whose beginnings have all ended has none any more.
// Source: Freitag and Al-Onaizan, Beam search strategies for neural machine translation, 2017.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

struct In {
  enum : std::size_t { kPreIds, kPreScores, kIds, kScores, kGroups, kInputs };
};
struct Out {
  enum : std::size_t { kIds, kScores, kParents, kGroups, kOutputs };
};

void infer_beam_search(Inference& inference) {
  inference.expect_inputs(In::kInputs, In::kInputs);
  inference.expect_outputs(Out::kOutputs, Out::kOutputs);
  for (const std::size_t i : {In::kPreIds, In::kGroups}) inference.expect_type(i, DataType::int64);
  for (const std::size_t i : {In::kPreScores, In::kScores}) inference.expect_type(i, DataType::float32);
  if (is_given(inference.op(), In::kIds)) inference.expect_type(In::kIds, DataType::int64);
  if (inference.input(In::kPreIds).lod_level == 0)
    inference.fail("its beginnings have no sequences", "feed the first ones with lod_level=2");
  if (inference.input(In::kScores).shape.size() != 2) inference.fail("its scores are not [rows, candidates]");
  inference.set_output(Out::kIds, DataType::int64, {-1, 1}, 1);
  inference.set_output(Out::kScores, DataType::float32, {-1, 1}, 1);
  inference.set_output(Out::kParents, DataType::int32, {-1});
  inference.set_output(Out::kGroups, DataType::int64, inference.input(In::kGroups).shape);
}

/// A continuation of a beginning.
struct Item {
  std::size_t row;
  std::int64_t id;
  float score;

  bool operator<(const Item& other) const noexcept {
    return score < other.score || (score == other.score && row < other.row);
  }
};

/// The best items, in order. Of equal ones those that came first are in front; behind a full beam the last
/// that came stays, as in Paddle.
class Beam {
 public:
  explicit Beam(std::size_t size) : size_(size) {}
  void add(const Item& item) {
    if (items_.size() == size_) {
      if (item < items_.back()) return;
      items_.pop_back();
    }
    const auto at = std::ranges::find_if(items_, [&item](const Item& there) { return there < item; });
    items_.insert(at, item);
  }
  const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::size_t size_;
  std::vector<Item> items_;
};

class Search {
 public:
  explicit Search(const Preparation& p)
      : op_(p.op),
        beam_(static_cast<std::size_t>(attribute(p.op, "beam_size", std::int64_t{1}))),
        end_(attribute(p.op, "end_id", std::int64_t{0})),
        is_accumulated_(attribute(p.op, "is_accumulated", true)) {
    if (beam_ == 0) fail(op_, "beam_size is 0", "take 1 or more");
    for (std::size_t i = 0; i < In::kInputs; ++i) in_[i] = p.input(i);
    for (std::size_t i = 0; i < Out::kOutputs; ++i) out_[i] = p.output(i);
  }

  void run() {
    const std::size_t rows = in_[In::kPreIds]->size();
    check_size(op_, in_[In::kPreScores], rows, "beginning");
    if (static_cast<std::size_t>(in_[In::kScores]->shape()[0]) != rows)
      fail(op_, "it has scores of " + std::to_string(in_[In::kScores]->shape()[0]) + " rows for " +
                    std::to_string(rows) + " beginnings");
    if (in_[In::kIds] != nullptr) check_size(op_, in_[In::kIds], in_[In::kScores]->size(), "score");
    chosen_.assign(rows, {});
    groups_.clear();
    std::size_t sequence = 0, begin = 0;
    const auto& offsets = in_[In::kPreIds]->offsets;
    for (const std::int64_t count : in_[In::kGroups]->values<std::int64_t>()) {
      sequence += static_cast<std::size_t>(count);
      if (sequence >= offsets.size()) fail(op_, "its groups have more sequences than there are");
      search(begin, offsets[sequence]);
      groups_.push_back(static_cast<std::int64_t>(offsets[sequence] - begin));
      begin = offsets[sequence];
    }
    if (begin != rows) fail(op_, "its groups have fewer sequences than there are");
    write();
  }

 private:
  void search(std::size_t begin, std::size_t end) {
    const auto pre_ids = in_[In::kPreIds]->values<std::int64_t>();
    const auto pre_scores = in_[In::kPreScores]->values<float>();
    const auto scores = in_[In::kScores]->values<float>();
    const auto width = static_cast<std::size_t>(in_[In::kScores]->shape()[1]);
    Beam beam(beam_);
    for (std::size_t row = begin; row < end; ++row) {
      if (pre_ids[row] == end_) {
        beam.add({row, end_, pre_scores[row]});
        continue;
      }
      for (std::size_t k = row * width; k < (row + 1) * width; ++k) {
        const auto id = in_[In::kIds] == nullptr ? static_cast<std::int64_t>(k - row * width)
                                                 : in_[In::kIds]->values<std::int64_t>()[k];
        beam.add({row, id, is_accumulated_ ? scores[k] : pre_scores[row] + std::log(scores[k])});
      }
    }
    const bool has_ended = std::ranges::all_of(
        beam.items(), [&](const Item& item) { return item.id == end_ && pre_ids[item.row] == end_; });
    if (has_ended) return;
    for (const Item& item : beam.items()) chosen_[item.row].push_back(item);
  }

  void write() {
    std::size_t n = 0;
    for (const auto& items : chosen_) n += items.size();
    const auto count = static_cast<std::int64_t>(n);
    Tensor &ids = *out_[Out::kIds], &scores = *out_[Out::kScores];
    ids.resize(DataType::int64, {count, 1});
    scores.resize(DataType::float32, {count, 1});
    if (out_[Out::kParents] != nullptr) out_[Out::kParents]->resize(DataType::int32, {count});
    std::vector<std::size_t> offsets{0};
    std::size_t at = 0;
    for (const auto& items : chosen_) {
      for (const Item& item : items) {
        ids.values<std::int64_t>()[at] = item.id;
        scores.values<float>()[at] = item.score;
        if (out_[Out::kParents] != nullptr)
          out_[Out::kParents]->values<std::int32_t>()[at] = static_cast<std::int32_t>(item.row);
        ++at;
      }
      offsets.push_back(at);
    }
    ids.offsets = scores.offsets = std::move(offsets);
    if (Tensor* groups = out_[Out::kGroups]) {
      groups->resize(DataType::int64, {std::ssize(groups_)});
      std::ranges::copy(groups_, groups->values<std::int64_t>().begin());
    }
  }

  const Operator& op_;
  std::size_t beam_;
  std::int64_t end_;
  bool is_accumulated_;
  const Tensor* in_[In::kInputs];
  Tensor* out_[Out::kOutputs];
  std::vector<std::vector<Item>> chosen_;
  std::vector<std::int64_t> groups_;
};

Kernel prepare_beam_search(const Preparation& p) {
  return [search = std::make_shared<Search>(p)] { search->run(); };
}

struct Steps {
  enum : std::size_t { kIds, kScores, kRows, kLengths, kSequences, kGroups, kSources, kInputs };
};

void infer_beam_search_decode(Inference& inference) {
  inference.expect_inputs(Steps::kInputs, Steps::kInputs);
  inference.expect_outputs(3, 3);
  for (std::size_t i = 0; i < Steps::kInputs; ++i)
    inference.expect_type(i, i == Steps::kScores ? DataType::float32 : DataType::int64);
  inference.set_output(0, DataType::int64, {-1, 1}, 1);
  inference.set_output(1, DataType::float32, {-1, 1}, 1);
  inference.set_output(2, DataType::int64, {-1});
}

/// A sequence, its last id first.
struct Hypothesis {
  std::vector<std::int64_t> ids;
  std::vector<float> scores;
  std::size_t row = 0;  // where in the step it is at

  float score() const noexcept {
    return scores.empty() ? -std::numeric_limits<float>::infinity() : scores.front();
  }
};

/// One step of the search: the offsets of its beginnings' continuations, and which are of a source.
struct Step {
  std::vector<std::size_t> offsets{0}, sources{0};
  std::size_t first = 0;  // of its continuations among those of all steps
};

class Decoding {
 public:
  explicit Decoding(const Preparation& p)
      : op_(p.op),
        beam_(static_cast<std::size_t>(attribute(p.op, "beam_size", std::int64_t{1}))),
        end_(attribute(p.op, "end_id", std::int64_t{0})) {
    for (std::size_t i = 0; i < Steps::kInputs; ++i) in_[i] = p.input(i);
    for (std::size_t i = 0; i < 3; ++i) out_[i] = p.output(i);
  }

  void run() {
    read();
    const std::size_t sources = steps_.empty() ? 0 : steps_.front().sources.size() - 1;
    ids_.clear();
    scores_.clear();
    offsets_.assign(1, 0);
    for (std::size_t source = 0; source < sources; ++source) decode(source);
    write(sources);
  }

 private:
  std::span<const std::int64_t> numbers(std::size_t i) const { return in_[i]->values<std::int64_t>(); }

  void read() {
    steps_.assign(numbers(Steps::kRows).size(), {});
    std::size_t row = 0, sequence = 0, source = 0;
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      Step& step = steps_[t];
      step.first = row;
      const auto accumulate = [](std::vector<std::size_t>& to, std::span<const std::int64_t> all,
                                 std::size_t& from, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i, ++from)
          to.push_back(to.back() + static_cast<std::size_t>(all[from]));
      };
      accumulate(step.offsets, numbers(Steps::kLengths), sequence, numbers(Steps::kSequences)[t]);
      accumulate(step.sources, numbers(Steps::kGroups), source, numbers(Steps::kSources)[t]);
      row += static_cast<std::size_t>(numbers(Steps::kRows)[t]);
      if (step.sources.size() != steps_.front().sources.size() ||
          step.sources.back() >= step.offsets.size() || step.first + step.offsets.back() != row)
        fail(op_, "step " + std::to_string(t) + " has other sequences than a beam_search makes");
    }
    check_size(op_, in_[Steps::kScores], in_[Steps::kIds]->size(), "id");
  }

  void decode(std::size_t source) {
    std::vector<Hypothesis> found;
    for (std::size_t t = steps_.size(); t-- > 0;) {
      const Step& step = steps_[t];
      const std::size_t begin = step.sources[source], end = step.sources[source + 1];
      if (found.empty()) {
        for (std::size_t sequence = begin; sequence < end; ++sequence) {
          for (std::size_t row = step.offsets[sequence]; row < step.offsets[sequence + 1]; ++row) {
            if (found.size() == beam_)
              fail(op_, "a source has more than " + std::to_string(beam_) + " of a beam");
            found.emplace_back();
            take(found.back(), step, row);
            found.back().row = sequence;
          }
        }
        continue;
      }
      for (Hypothesis& one : found) {
        const std::size_t row = one.row;
        // Ends behind the first are left out.
        if (numbers(Steps::kIds)[step.first + row] != end_ || one.ids.empty()) take(one, step, row);
        const auto above = std::ranges::upper_bound(step.offsets, row);
        one.row = static_cast<std::size_t>(above - step.offsets.begin()) - 1;
      }
    }
    found.resize(beam_);
    std::ranges::stable_sort(found, std::greater<>(), &Hypothesis::score);
    for (const Hypothesis& one : found) {
      ids_.insert(ids_.end(), one.ids.rbegin(), one.ids.rend());
      scores_.insert(scores_.end(), one.scores.rbegin(), one.scores.rend());
      offsets_.push_back(ids_.size());
    }
  }

  void take(Hypothesis& one, const Step& step, std::size_t row) const {
    one.ids.push_back(numbers(Steps::kIds)[step.first + row]);
    one.scores.push_back(in_[Steps::kScores]->values<float>()[step.first + row]);
  }

  void write(std::size_t sources) {
    const auto count = static_cast<std::int64_t>(ids_.size());
    if (out_[0] != nullptr) {
      out_[0]->resize(DataType::int64, {count, 1});
      std::ranges::copy(ids_, out_[0]->values<std::int64_t>().begin());
      out_[0]->offsets = offsets_;
    }
    if (out_[1] != nullptr) {
      out_[1]->resize(DataType::float32, {count, 1});
      std::ranges::copy(scores_, out_[1]->values<float>().begin());
      out_[1]->offsets = offsets_;
    }
    if (out_[2] == nullptr) return;
    out_[2]->resize(DataType::int64, {static_cast<std::int64_t>(sources)});
    std::ranges::fill(out_[2]->values<std::int64_t>(), static_cast<std::int64_t>(beam_));
  }

  const Operator& op_;
  std::size_t beam_;
  std::int64_t end_;
  const Tensor* in_[Steps::kInputs];
  Tensor* out_[3];
  std::vector<Step> steps_;
  std::vector<std::int64_t> ids_;
  std::vector<float> scores_;
  std::vector<std::size_t> offsets_;
};

Kernel prepare_beam_search_decode(const Preparation& p) {
  return [decoding = std::make_shared<Decoding>(p)] { decoding->run(); };
}

}  // namespace

std::span<const OperatorDefinition> beam_operators() {
  static constexpr OperatorDefinition all[] = {
      {"beam_search",
       infer_beam_search,
       prepare_beam_search,
       nullptr,
       {"(PreIds int64 [rows, 1], PreScores [rows, 1], [Ids int64 [rows, K]], Scores [rows, K], Groups int64 "
        "[sources]) -> Ids int64 [n, 1], Scores [n, 1], Parents int32 [n], Groups int64 [sources]",
        "the beam_size best continuations of each source's rows, those of one row a sequence",
        "beam_size, end_id; is_accumulated = true: else Scores are chances of one id"}},
      {"beam_search_decode",
       infer_beam_search_decode,
       prepare_beam_search_decode,
       nullptr,
       {"(Ids int64, Scores, Rows int64 [steps], Lengths int64, Sequences int64 [steps], Groups int64, "
        "Sources "
        "int64 [steps]) -> Ids int64 [n, 1], Scores [n, 1], Groups int64 [sources]",
        "what beam_search has made in all steps, one behind the other, as whole sequences, the best first",
        "beam_size, end_id"}},
  };
  return all;
}

}  // namespace fleetrun::engine
