#include "runtime/trainer/rank_mean.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "collective/cpu/flatten.h"
#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

namespace {

using collective::Call;
using collective::CallKind;
using collective::Communicator;
using collective::Operation;
using engine::StepGradient;
using engine::Tensor;
using WireType = collective::DataType;

std::size_t ranks_of(const Communicator& communicator) {
  return static_cast<std::size_t>(communicator.place().size);
}

/// Dense gradients behind each other.
class Bucket {
 public:
  Bucket(Communicator& communicator, bool half)
      : communicator_(&communicator), type_(half ? WireType::float16 : WireType::float32) {}

  void add(const StepGradient& gradient) {
    Tensor& tensor = *gradient.values;
    inputs_.push_back({tensor.data(), tensor.size(), WireType::float32});
    outputs_.push_back({tensor.data(), tensor.size(), WireType::float32});
    tensors_.push_back(&tensor);
  }
  /// Scaled on the way, where float16 would overflow.
  void start(double scale) {
    scale_ = type_ == WireType::float16 ? scale : 1.0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      inputs_[i].data = outputs_[i].data = tensors_[i]->data();
      inputs_[i].count = outputs_[i].count = tensors_[i]->size();
      count += tensors_[i]->size();
    }
    values_.resize(count * collective::size_of(type_));
    collective::flatten(inputs_, {values_.data(), count, type_}, scale_);
    work_ = communicator_->start({.kind = CallKind::all_reduce,
                                  .type = type_,
                                  .operation = Operation::avg,
                                  .input = values_.data(),
                                  .output = values_.data(),
                                  .count = count});
  }
  /// The mean of what ranks gave, times `scale`.
  void finish(double scale) {
    std::exchange(work_, nullptr)->wait();
    const std::size_t count = values_.size() / collective::size_of(type_);
    collective::unflatten({values_.data(), count, type_}, outputs_, scale / scale_);
  }

 private:
  Communicator* communicator_;
  WireType type_;
  double scale_ = 1.0;
  std::vector<Tensor*> tensors_;
  std::vector<collective::ConstBuffer> inputs_;
  std::vector<collective::Buffer> outputs_;
  std::vector<std::byte> values_;
  std::unique_ptr<collective::Work> work_;
};

/// One large gradient of which the largest values travel.
class Compressed {
 public:
  Compressed(const StepGradient& gradient, Communicator& communicator, const CompressionRule& rule,
             Momentum momentum)
      : gradient_(gradient), communicator_(communicator), rule_(rule), momentum_(momentum) {}

  /// The tensor's values times `scale` are this rank's gradient; they become the mean over the ranks.
  void exchange(double scale) {
    const auto values = gradient_.values->values<float>();
    for (float& value : values) value *= static_cast<float>(scale);
    const std::size_t step = step_++;
    if (step < rule_.begin_step) {
      collective::all_reduce(communicator_, {values.data(), values.size(), WireType::float32},
                             Operation::avg);
      return;
    }
    if (momentum_.velocity != nullptr) std::ranges::fill(momentum_.velocity->values<float>(), 0.0f);
    take(values);
    send(values,
         std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(static_cast<double>(values.size()) *
                                                                       (1.0 - rule_.sparsity_in(step))))));
  }

 private:
  void take(std::span<const float> values) {
    sums_.resize(values.size(), 0.0f);
    waiting_.resize(values.size(), 0.0f);
    const auto factor = static_cast<float>(momentum_.factor);
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums_[i] = factor * sums_[i] + values[i];
      waiting_[i] += sums_[i];
    }
  }

  void send(std::span<float> out, std::size_t count) {
    places_.resize(waiting_.size());
    std::iota(places_.begin(), places_.end(), 0);
    std::ranges::nth_element(places_, places_.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                             [this](std::int32_t a, std::int32_t b) {
                               const float x = std::fabs(waiting_[static_cast<std::size_t>(a)]);
                               const float y = std::fabs(waiting_[static_cast<std::size_t>(b)]);
                               return x != y ? x > y : a < b;
                             });
    const std::size_t ranks = ranks_of(communicator_);
    sent_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const auto place = static_cast<std::size_t>(places_[i]);
      sent_.push_back(waiting_[place]);
      sums_[place] = waiting_[place] = 0.0f;
    }
    all_places_.resize(ranks * count);
    all_values_.resize(ranks * count);
    collective::all_gather(communicator_, {places_.data(), count, WireType::int32},
                           {all_places_.data(), all_places_.size(), WireType::int32});
    collective::all_gather(communicator_, {sent_.data(), count, WireType::float32},
                           {all_values_.data(), all_values_.size(), WireType::float32});
    std::ranges::fill(out, 0.0f);
    for (std::size_t i = 0; i < all_places_.size(); ++i)
      out[static_cast<std::size_t>(all_places_[i])] += all_values_[i];
    for (float& value : out) value /= static_cast<float>(ranks);
  }

  StepGradient gradient_;
  Communicator& communicator_;
  CompressionRule rule_;
  Momentum momentum_;
  std::size_t step_ = 0;
  std::vector<float> sums_, waiting_, sent_, all_values_;
  std::vector<std::int32_t> places_, all_places_;
};

bool is_compressed(const StepGradient& gradient, const RankMeanOptions& options) {
  return options.compression && gradient.count >= options.compression->min_values;
}

/// Rows of all ranks behind each other, divided by `divisor`.
void gather_rows(Communicator& communicator, Tensor& keys, Tensor& values, float divisor) {
  const std::size_t ranks = ranks_of(communicator);
  std::vector<std::int64_t> rows(ranks);
  const std::int64_t own = keys.shape().at(0);
  collective::all_gather(communicator, {&own, 1, WireType::int64}, {rows.data(), ranks, WireType::int64});
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const std::int64_t width = values.shape().at(1);
  const auto gather = [&](Tensor& tensor, std::int64_t row, WireType type, const engine::Shape& shape) {
    std::vector<std::size_t> counts;
    for (const std::int64_t count : rows) counts.push_back(static_cast<std::size_t>(count * row));
    const auto* begin = static_cast<const std::byte*>(tensor.data());
    const std::vector<std::byte> given(begin, begin + tensor.bytes());
    tensor.resize(tensor.type(), shape);
    collective::all_gather(communicator, {given.data(), static_cast<std::size_t>(own * row), type},
                           {tensor.data(), static_cast<std::size_t>(all * row), type}, counts);
  };
  gather(keys, 1, WireType::int64, {all});
  gather(values, width, WireType::float32, {all, width});
  for (float& value : values.values<float>()) value /= divisor;
}

}  // namespace

double CompressionRule::sparsity_in(std::size_t step) const noexcept {
  if (sparsity.empty()) return 0.0;
  const std::size_t since = step < begin_step ? 0 : step - begin_step;
  return sparsity[std::min(since * sparsity.size() / std::max<std::size_t>(ramp_steps, 1),
                           sparsity.size() - 1)];
}

std::map<std::string, Momentum> momentums_of(const engine::Program& program, engine::Scope& scope) {
  std::map<std::string, Momentum> momentums;
  for (const engine::Operator& op : program.operators()) {
    if (!engine::is_update(op)) continue;
    Momentum& momentum = momentums[op.inputs.at(0)];
    if (op.type == "momentum") {
      momentum = {engine::attribute(op, "momentum", 0.9), &scope.tensor(op.outputs.at(1))};
    } else if (op.type != "sgd") {
      throw Error(ErrorKind::config,
                  "deep gradient compression with " + op.type + ": it is for SGD and Momentum",
                  "use one of these, or leave DistributedStrategy.dgc at False");
    }
  }
  return momentums;
}

void check_collective(const engine::Program& program) {
  for (const engine::Operator& op : program.operators()) {
    if (op.type != "sparse_embedding") continue;
    throw Error(ErrorKind::config, "collective training of a program with sparse_embedding",
                "use paddle.nn.Embedding, or train with a parameter server");
  }
}

std::vector<std::vector<std::size_t>> buckets_of(std::span<const StepGradient> gradients,
                                                 const RankMeanOptions& options) {
  std::vector<collective::GradientShape> shapes;
  std::vector<std::size_t> dense;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const StepGradient& gradient = gradients[i];
    if (!gradient.keys_name.empty() || is_compressed(gradient, options)) continue;
    dense.push_back(i);
    shapes.push_back({gradient.parameter, gradient.count, WireType::float32, false});
  }
  auto buckets = collective::plan_buckets(shapes, options.rule);
  for (auto& bucket : buckets) {
    for (std::size_t& index : bucket) index = dense[index];
  }
  std::ranges::stable_sort(buckets, {}, [&](const std::vector<std::size_t>& bucket) {
    std::size_t last = 0;
    for (const std::size_t index : bucket) last = std::max(last, gradients[index].last_writer);
    return last;
  });
  return buckets;
}

struct RankMean::State {
  std::vector<Communicator*> communicators;
  std::vector<Bucket> buckets;
  std::vector<std::pair<Tensor*, Tensor*>> rows;  // keys, values
  std::vector<Compressed> compressed;

  /// `sum_scale`: what makes a rank's mean of its sum; the mean over ranks is divided by `divisor`.
  void finish_rest(double sum_scale, double divisor) {
    Communicator& first = *communicators.front();
    const auto ranks = static_cast<double>(ranks_of(first));
    for (const auto& [keys, values] : rows)
      gather_rows(first, *keys, *values, static_cast<float>(ranks * divisor));
    for (Compressed& gradient : compressed) gradient.exchange(sum_scale);
  }
};

RankMean::RankMean(std::span<const StepGradient> gradients, std::vector<Communicator*> communicators,
                   const RankMeanOptions& options, const std::map<std::string, Momentum>& momentums)
    : state_(new State{std::move(communicators), {}, {}, {}}) {
  for (const StepGradient& gradient : gradients) {
    if (gradient.keys != nullptr) {
      state_->rows.emplace_back(gradient.keys, gradient.values);
    } else if (is_compressed(gradient, options)) {
      state_->compressed.emplace_back(gradient, *state_->communicators.front(), *options.compression,
                                      momentums.at(gradient.parameter));
    }
  }
  for (const auto& indices : buckets_of(gradients, options)) {
    Communicator* communicator = state_->communicators[state_->buckets.size() % state_->communicators.size()];
    Bucket& bucket = state_->buckets.emplace_back(*communicator, options.half);
    for (const std::size_t index : indices) bucket.add(gradients[index]);
  }
}

RankMean::~RankMean() = default;

void RankMean::start(std::size_t bucket) {
  state_->buckets.at(bucket).start(1.0);
}

void RankMean::finish(std::size_t bucket) {
  state_->buckets.at(bucket).finish(1.0);
}

void RankMean::finish_rest() {
  state_->finish_rest(1.0, 1.0);
}

bool RankMean::finish_sums(std::size_t batches, std::size_t max) {
  auto all = static_cast<std::int64_t>(batches);
  Communicator& first = *state_->communicators.front();
  collective::all_reduce(first, {&all, 1, WireType::int64}, Operation::sum);
  if (all == 0) return false;
  const double sum_scale = 1.0 / static_cast<double>(max);
  const double divisor = static_cast<double>(all) / static_cast<double>(ranks_of(first));
  for (Bucket& bucket : state_->buckets) bucket.start(sum_scale);
  for (Bucket& bucket : state_->buckets) bucket.finish(1.0 / divisor);
  state_->finish_rest(sum_scale, divisor);
  return true;
}

std::size_t RankMean::buckets() const noexcept {
  return state_->buckets.size();
}

}  // namespace fleetrun::runtime
