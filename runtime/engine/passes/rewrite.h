// What passes share: who reads and writes a variable, and putting other operators in the place of some.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/engine/passes/passes.h"

namespace fleetrun::engine {

/// Threads: one. Indexes are those of the program it was made with, before and after edits.
class Rewrite {
 public:
  Rewrite(const Program& program, const Kept& kept);

  const Program& program() const noexcept { return program_; }
  const Operator& op(std::size_t index) const { return program_.operators().at(index); }
  std::size_t size() const noexcept { return program_.operators().size(); }

  /// Operators in order, each once.
  const std::vector<std::size_t>& readers(const std::string& name) const;
  const std::vector<std::size_t>& writers(const std::string& name) const;
  /// A temporary that nobody reads after a run, and that one operator makes.
  bool is_passing(const std::string& name) const;

  void replace(std::size_t index, std::vector<Operator> by) { edits_[index] = std::move(by); }
  void drop(std::size_t index) { replace(index, {}); }

  /// The program with all edits. Variables stay, also those that no operator names any more.
  Program result() const;

 private:
  using Indexes = std::map<std::string, std::vector<std::size_t>>;

  const Program& program_;
  const Kept& kept_;
  Indexes readers_;
  Indexes writers_;
  std::map<std::size_t, std::vector<Operator>> edits_;
};

}  // namespace fleetrun::engine
