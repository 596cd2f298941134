// The dense parameters of a trainer thread that runs ahead: each gradient leaves as soon as it is final,
// while the rest of the backward pass computes, and the new values follow it back. The next step starts with
// values that every push of this thread has made, and hardly waits for them.
//
// Where servers count a thread's steps, a step is one push: its gradients leave with those of its rows, and
// the new values are asked for behind it.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ps/client/step_client.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/exchange_queue.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

struct DenseOptions {
  /// The participant that pushes.
  std::uint32_t thread = 0;
  /// false: values are pulled once, and nothing is pushed.
  bool train = true;
  /// Steps from one pull of values to the next.
  std::uint32_t pull_every = 1;
  /// false: the caller pushes the gradients, with the others of the step.
  bool pushes = true;
};

class DenseExchange {
 public:
  /// The dense tables of `plan`. Borrows the queue.
  DenseExchange(const engine::Program& program, const TablePlan& plan, ExchangeQueue& queue,
                const DenseOptions& options);

  /// Asks for the values of the first step.
  void begin();
  /// Waits for the values that were asked for, and puts them into the executor.
  void finish(engine::Executor& executor);
  /// Tells that the step's next operator has run; pushes the gradients that no later one touches.
  void after_operator(engine::Executor& executor);
  /// The step's last operator has run, and what the caller pushes is pushed.
  void end_step();
  bool pushes() const noexcept { return options_.pushes; }
  /// Waits for all pushes.
  void drain();

 private:
  struct Parameter {
    std::uint32_t table;
    std::string name, gradient_name;
    engine::Shape shape;
    /// Operators that have run when the gradient is final.
    std::size_t final_after;
    engine::Tensor values, gradient;
  };
  /// Small parameters travel together. A group's gradients are at rest again when its values have come.
  struct Group {
    std::size_t final_after = 0;
    std::vector<Parameter> parameters;
    std::unique_ptr<ps::Pending> push, pull;
  };
  void begin_pull(Group& group);
  bool is_pull_due() const noexcept { return (steps_ + 1) % options_.pull_every == 0; }

  ExchangeQueue& queue_;
  DenseOptions options_;
  std::vector<Group> groups_;  // by final_after
  bool has_gradients_ = false;
  std::size_t operators_run_ = 0, next_group_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace fleetrun::runtime
