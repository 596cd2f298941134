// Runs a Program over a Scope.
//
// Threads: one run at a time per Executor; several executors may share a Scope (trainer threads do:
// parameters are then updated without locks, as Hogwild does), each keeping its temporary tensors to itself.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

/// Persistable tensors by name. Threads: adding a tensor is locked; tensors keep their address.
class Scope {
 public:
  Scope();
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The tensor of this name, made empty when it is not there.
  Tensor& tensor(const std::string& name);
  /// nullptr when there is none.
  Tensor* find(const std::string& name) noexcept;
  const Tensor* find(const std::string& name) const noexcept;
  std::vector<std::string> names() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where the rows of `sparse_embedding` come from (a parameter server, or one in this process), and where row
/// gradients go. Implemented by runtime/trainer/parameter_exchange; the engine knows no server.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// rows[keys.size(), width] of the table behind parameter `parameter`.
  virtual void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                         std::span<float> rows) = 0;
};

class Executor {
 public:
  /// `rows` may be null when the program has no sparse_embedding. The program is copied. Persistable
  /// variables named in `own` live in this executor instead of the scope (a trainer thread's copy of pulled
  /// parameters).
  Executor(const Program& program, Scope& scope, RowSource* rows = nullptr,
           const std::set<std::string>& own = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Feeds the `data` variables, runs every operator, and leaves all temporaries readable by tensor() until
  /// the next run. Throws: Error(config) naming a data variable that is not fed or whose type or shape
  /// disagrees, or a kept one that has no value or one of another type or shape; an operator's error, with
  /// the line of the script that appended it.
  void run(const std::map<std::string, const Tensor*>& feed);
  /// The same, and tells how many seconds each operator took.
  using Observer = std::function<void(const Operator&, double)>;
  void run(const std::map<std::string, const Tensor*>& feed, const Observer& observer);
  /// The same, and calls `before` with the index of each operator before it runs. `observer` may be empty.
  void run_with(const std::map<std::string, const Tensor*>& feed,
                const std::function<void(std::size_t)>& before, const Observer& observer = {});

  /// Throws: Error(data) naming the first output of `op`, which has just run, that holds NaN or an infinity;
  /// `run` says which run it was ("batch 3 of thread 0").
  void expect_finite(const Operator& op, const std::function<std::string()>& run) const;

  /// A variable's value after run(): temporary, persistable or fed. Throws: Error(config) when there is none.
  const Tensor& tensor(const std::string& name) const;
  Tensor& tensor(const std::string& name);

 private:
  struct State;
  void accept(const std::map<std::string, const Tensor*>& feed);
  void run_observed(std::size_t index, const Observer& observer);
  void compute(std::size_t index);

  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::engine
