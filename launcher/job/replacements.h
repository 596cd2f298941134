// Who takes the place of a trainer that fails, while the others go on (--on_failure=replace). Pure.
//
// A trainer's rank is a seat. Beside the seats there are processes that stand by: started, with all imported,
// waiting to be given a rank. What processes say (MemberSaid):
//
//   waits    of one that stands by: it is ready to take a seat
//   trains   it has the state of the training, so that others can have it from here
//   leaves   it is out of the ranks' generation, at this step, and waits for the next one
//
// A trainer that fails leaves its seat, and is started again to stand by. Once everybody else has left the
// generation and each free seat has somebody who waits, there is a new one. The job fails as without all
// this where nobody is left who trains, where a trainer has ended its work already,
// and where several generations in a row have come no further than the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/job_action.h"

namespace fleetrun::launcher {

class Replacements {
 public:
  /// Processes as indices of the plan: the trainers by rank, and those that stand by at first.
  Replacements(std::vector<std::size_t> trainers, std::vector<std::size_t> standby);

  /// All are started again.
  void begin_attempt();

  bool stands_by(std::size_t index) const noexcept { return members_[index].standby; }
  /// Whether a seat is free, or somebody has left the generation and waits for the next one.
  bool is_pending() const noexcept;

  void started(std::size_t index);
  void heard(const MemberSaid& said);
  /// The process has failed. True: it is to be started again, to stand by, and the others go on. False for a
  /// trainer: the job fails. False for one that stood by: it is left alone from here on.
  bool lose(std::size_t index);
  /// The trainer has ended well. False: others wait for a generation that can no longer be.
  bool finish(std::size_t index);

  /// Why lose() said that the job fails.
  std::string why_not() const;
  /// Who had a seat that is free.
  std::optional<std::size_t> lost() const noexcept;

  /// The next generation, when everything is there for it.
  std::optional<event::GenerationBegan> next();

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;
  static constexpr int kSameSteps = 3, kFailedStarts = 3;

  struct Member {
    bool standby = false, alive = false;
    bool waits = false;     // stands by, and is ready
    bool trains = false;    // has the state
    int left = -1;          // the newest generation that it is out of
    std::int64_t step = 0;  // where it left
  };

  bool may_go_on() const;

  const std::vector<std::size_t> trainers_, standby_;
  std::vector<Member> members_;       // by index in the plan
  std::vector<std::size_t> seats_;    // by rank
  std::vector<std::size_t> vacated_;  // by rank: who had the seat
  bool finished_ = false;             // a trainer has
  int generation_ = 0;
  int failed_starts_ = 0;  // of processes that stood by, in a row
  int same_steps_ = 0;     // generations in a row that began at last_step_
  std::int64_t last_step_ = -1;
};

}  // namespace fleetrun::launcher
