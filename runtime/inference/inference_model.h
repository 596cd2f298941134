// A saved model, to be computed in C++: what save_inference_model wrote, without Python.
//
//   const InferenceModel model = InferenceModel::load("out/model");
//   Predictor predictor(model);
//   predictor.run({{"x", &x}});
//   const engine::Tensor& y = predictor.tensor(model.fetches()[0]);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::inference {

/// Threads: any number of predictors may share a model.
class InferenceModel {
 public:
  /// `path`: the PREFIX of PREFIX.pdmodel and PREFIX.pdiparams, or the folder that fleet.save_inference_model
  /// wrote (model.pdmodel, model.pdiparams, and tables/ with the rows of sparse_embedding).
  /// Throws: Error(data) naming the file that is missing or damaged.
  static InferenceModel load(const std::string& path);
  InferenceModel(InferenceModel&&) noexcept;
  ~InferenceModel();

  const engine::Program& program() const noexcept;
  /// Names of what is fed and fetched, in the order in which the model was saved with them.
  const std::vector<std::string>& feeds() const noexcept;
  const std::vector<std::string>& fetches() const noexcept;

 private:
  friend class Predictor;
  struct State;
  explicit InferenceModel(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Threads: one call at a time.
class Predictor {
 public:
  /// Borrows the model.
  explicit Predictor(const InferenceModel& model);

  /// Throws: Error(config) naming what is not fed, or whose type or shape disagrees.
  void run(const std::map<std::string, const engine::Tensor*>& feed) { executor_.run(feed); }
  /// A value of the last run. Throws: Error(config) for a name that the model does not have.
  const engine::Tensor& tensor(const std::string& name) const { return executor_.tensor(name); }

 private:
  engine::Executor executor_;
};

}  // namespace fleetrun::inference
