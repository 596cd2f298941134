// Samples from a tree of items, layer by layer, for retrieval models.
//
// Source: Zhu et al., Learning tree-based deep model for recommender systems, 2018; names and results are
// those of Paddle's operator.

#include <algorithm>
#include <memory>
#include <numeric>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/random.h"

namespace fleetrun::engine {

namespace {

/// How many nodes each layer gives, and which ones it has.
struct Layers {
  explicit Layers(const Operator& op)
      : negatives(attribute<std::vector<std::int64_t>>(op, "neg_samples_num_list")),
        offsets(attribute<std::vector<std::int64_t>>(op, "layer_offset_lod")),
        positives(attribute(op, "output_positive", true) ? 1 : 0) {
    if (offsets.size() != negatives.size() + 1)
      fail(op, "neg_samples_num_list has " + std::to_string(negatives.size()) + " layers, the tree " +
                   std::to_string(std::ssize(offsets) - 1));
    for (std::size_t i = 0; i < negatives.size(); ++i) {
      if (negatives[i] < 0 || negatives[i] >= offsets[i + 1] - offsets[i])
        fail(op, "layer " + std::to_string(i) + " has " + std::to_string(offsets[i + 1] - offsets[i]) +
                     " nodes, and " + std::to_string(negatives[i]) + " others than the item's are asked for");
    }
  }

  std::int64_t width() const {
    return std::accumulate(negatives.begin(), negatives.end(),
                           positives * static_cast<std::int64_t>(negatives.size()));
  }

  std::vector<std::int64_t> negatives, offsets;
  std::int64_t positives;
};

DataType made_type(const Operator& op) {
  return parse_data_type(attribute(op, "dtype", std::string("int32")));
}

void expect_whole(const Inference& inference, std::size_t index) {
  const DataType type = inference.input(index).type;
  if (type != DataType::int64 && type != DataType::int32) inference.expect_type(index, DataType::int64);
}

void infer_tdm_sampler(Inference& inference) {
  inference.expect_inputs(3, 3);
  inference.expect_outputs(3, 3);
  for (std::size_t i = 0; i < 3; ++i) expect_whole(inference, i);
  const Operator& op = inference.op();
  const Layers layers(op);
  const Shape travel = inference.input(1).shape;
  if (travel.size() != 2 || travel[1] != static_cast<std::int64_t>(layers.negatives.size()))
    inference.fail("the ways to the items must have a node for each layer");
  if (count(inference.input(2).shape) != layers.offsets.back())
    inference.fail("the layers must have " + std::to_string(layers.offsets.back()) + " nodes");
  const std::int64_t items = inference.input(0).shape.empty() ? 1 : inference.input(0).shape[0];
  for (std::size_t i = 0; i < 3; ++i) inference.set_output(i, made_type(op), {items, layers.width()});
}

std::int64_t whole_at(const Tensor& tensor, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  return tensor.type() == DataType::int64 ? tensor.values<std::int64_t>()[at]
                                          : tensor.values<std::int32_t>()[at];
}

class Sampler {
 public:
  explicit Sampler(const Preparation& p)
      : op_(p.op), layers_(p.op), items_(p.input(0)), ways_(p.input(1)), nodes_(p.input(2)), seed_(p.seed) {
    for (std::size_t i = 0; i < 3; ++i) made_.push_back(p.output(i));
  }

  void run() {
    const auto items = static_cast<std::int64_t>(items_->size());
    for (Tensor* one : made_) {
      if (one != nullptr) one->resize(made_type(op_), {items, layers_.width()});
    }
    place_ = 0;
    for (std::int64_t i = 0; i < items; ++i) {
      const std::int64_t item = whole_at(*items_, i);
      if (item < 0 || item >= ways_->shape()[0]) {
        fail_on_data(op_,
                     "item " + std::to_string(item) + " of '" + op_.inputs[0] + "' is not among the " +
                         std::to_string(ways_->shape()[0]) + " items of the tree",
                     "number the items from 0");
      }
      for (std::size_t layer = 0; layer < layers_.negatives.size(); ++layer) sample(item, layer);
    }
  }

 private:
  void put(std::int64_t node, std::int64_t label, std::int64_t mask) {
    const std::int64_t values[] = {node, label, mask};
    for (std::size_t i = 0; i < 3; ++i) {
      if (made_[i] == nullptr) continue;
      if (made_[i]->type() == DataType::int64) {
        made_[i]->values<std::int64_t>()[place_] = values[i];
      } else {
        made_[i]->values<std::int32_t>()[place_] = static_cast<std::int32_t>(values[i]);
      }
    }
    ++place_;
  }

  /// The item's node, and others of its layer, each once. An item that lies higher has none in it.
  void sample(std::int64_t item, std::size_t layer) {
    const std::int64_t own = whole_at(*ways_, item * ways_->shape()[1] + static_cast<std::int64_t>(layer));
    const std::int64_t wanted = layers_.negatives[layer];
    if (own == 0) {
      for (std::int64_t k = 0; k < wanted + layers_.positives; ++k) put(0, 0, 0);
      return;
    }
    if (layers_.positives == 1) put(own, 1, 1);
    const std::int64_t first = layers_.offsets[layer], size = layers_.offsets[layer + 1] - first;
    drawn_.clear();
    while (std::ssize(drawn_) < wanted) {
      const auto at = first + static_cast<std::int64_t>(uniform(seed_, draws_++) * double(size));
      const std::int64_t node = whole_at(*nodes_, at);
      if (node == own || std::ranges::find(drawn_, at) != drawn_.end()) continue;
      drawn_.push_back(at);
      put(node, 0, 1);
    }
  }

  const Operator& op_;
  Layers layers_;
  const Tensor *items_, *ways_, *nodes_;
  std::vector<Tensor*> made_;
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::size_t place_ = 0;
  std::vector<std::int64_t> drawn_;
};

Kernel prepare_tdm_sampler(const Preparation& p) {
  return [sampler = std::make_shared<Sampler>(p)] { sampler->run(); };
}

}  // namespace

std::span<const OperatorDefinition> tree_operators() {
  static constexpr OperatorDefinition all[] = {
      {"tdm_sampler",
       infer_tdm_sampler,
       prepare_tdm_sampler,
       nullptr,
       {"(Items [n, 1], Ways [items, layers], Nodes [nodes, 1]) -> Out, Labels, Mask [n, samples]",
        "of each layer the node on the item's way, whose label is 1, and others of the layer, each once; "
        "mask "
        "0 where the way ends higher",
        "neg_samples_num_list: how many others of each layer; layer_offset_lod: where a layer's nodes begin; "
        "output_positive = true; dtype = int32; seed = 0"}},
  };
  return all;
}

}  // namespace fleetrun::engine
