// What one trainer thread exchanges with the tables around each step: the rows and dense parameters that the
// step reads, and the gradients that it made.
//
//   begin_pull(feed) ──▶ finish_pull() ──▶ executor.run(feed) ──▶ push()      one step
//                        begin_pull(next feed) may come before run: pulls run ahead of computing by one step
//
// With runs_ahead, pulls and pushes are done in order by a thread of their own (exchange_queue.h), so that
// nothing of one trainer thread races: a step computes with the dense values that all its earlier pushes made
// (dense_exchange.h), and with rows that lack at most the step before it. One step of delay in dense values
// was measured to make Adam overshoot; in rows it was not.
//
// Rows: all lookups of one table make one key list, in program order, and one pull; a lookup whose ids are
// computed from other values (not a fed variable, reshaped at most) is pulled when the program reaches it.
//
// Threads: one; several exchanges share a client, whose calls may be made from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ps/client/step_client.h"
#include "runtime/base/timeline.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/batch_feed.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

struct ExchangeOptions {
  std::uint32_t thread = 0;
  /// false: nothing is pushed, dense parameters are pulled once, and unknown keys get no rows.
  bool train = true;
  /// push() returns at once, and a pull may be begun a step ahead. false: push() returns when it was applied.
  bool runs_ahead = false;
  /// Pushes between two pulls of the dense parameters.
  std::uint32_t pull_dense_every = 1;
  /// Where waiting for servers is drawn; may be null.
  Track* track = nullptr;
  /// Rows are pulled for a step that trains; dense values and pushes are left to the caller.
  bool rows_only = false;
};

class ParameterExchange final : public engine::RowSource {
 public:
  /// `client` may be null when the plan has no tables. Borrows its arguments.
  ParameterExchange(const engine::Program& program, const TablePlan& plan, ps::StepClient* client,
                    const ExchangeOptions& options);
  ~ParameterExchange() override;
  ParameterExchange(const ParameterExchange&) = delete;
  ParameterExchange& operator=(const ParameterExchange&) = delete;

  /// Parameters of dense tables: each pull replaces their values in the executor.
  std::set<std::string> dense_parameters() const;
  /// The executor of the steps, made with this exchange as its row source. Borrowed.
  void attach(engine::Executor& executor);

  void begin_pull(const Feed& feed);
  /// Waits for the pull begun first, and puts its dense values into the executor.
  void finish_pull();
  /// Tells that the step's next operator has run: for every operator of a step, when it runs ahead.
  void after_operator();
  /// Takes the step's gradients out of the executor and pushes them.
  /// Nothing when the program has no gradients.
  void push();
  /// Waits for all pushes.
  void drain();

  void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                 std::span<float> rows) override;

 private:
  void push_gradients();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
