// Local SGD: ranks train apart and average their parameters every so many steps.
//
// s being the parameters of the last average, d = s - p of each rank: p = s - mean(d). Up to begin_step they
// do so in every step, which is synchronous SGD. The adaptive form chooses the number of steps after each
// average, from 1 to 16: ceil(sqrt(rate0 * loss / (rate * loss0) * k_steps)), rate0 and loss0 being those of
// the first step. Source: document 004, section 3; Lin et al., 2018; Wang and Joshi, 2019.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collective/base/communicator.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"

namespace fleetrun::runtime {

struct LocalStepOptions {
  std::size_t k_steps = 1;
  std::size_t begin_step = 1;
  bool adaptive = false;
};

/// All ranks make the same calls. Threads: one call at a time.
class LocalSteps {
 public:
  /// `program` has update operators, whose parameters in `scope` are averaged; scope and communicator are
  /// borrowed. A rank clips gradients of its own. Throws: Error(config) for a program with sparse_embedding,
  /// for optimizers other than SGD and Momentum, and for 0 steps.
  LocalSteps(const engine::Program& program, engine::Scope& scope, collective::Communicator& communicator,
             const LocalStepOptions& options);

  /// Before the first step, and as often as wanted: where no step was taken since the last average, the
  /// parameters are taken for those of an average. They are alike on all ranks.
  void begin();
  /// After a step in which this rank trained (or had no batch: its parameters then do not count), with its
  /// loss. false: an average was due, and no rank had trained since the one before.
  bool after_step(bool has_trained, double loss);
  /// The average now, as after the last step of a training. Nothing where it has just been made.
  void synchronize();
  /// Steps since the last average.
  std::size_t since_average() const noexcept { return step_ - last_; }
  std::size_t k_steps() const noexcept { return k_steps_; }

 private:
  bool average();
  double rate() const;
  double mean_over_ranks(double value);
  void adapt(double rate, double loss);

  std::vector<engine::Tensor*> parameters_;
  const engine::Tensor* rate_variable_ = nullptr;
  double rate_factor_ = 1.0;
  collective::Communicator& communicator_;
  LocalStepOptions options_;
  std::size_t k_steps_;
  std::size_t step_ = 0;
  std::size_t last_ = 0;  // the step of the last average
  bool has_trained_ = false;
  double first_rate_ = 0.0, first_loss_ = 0.0;
  std::vector<float> snapshot_, moved_;
};

}  // namespace fleetrun::runtime
