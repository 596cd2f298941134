// When a failed process is started again, alone or with its group, and when no more. Pure: a function of what
// failed, of the rules, and of what happened before.
//
//   in this order                                               answer
//   the job does not restart, or the role does not              give up
//   it could not be started at all                              give up: it would fail again
//   the last `same_failures` failures are the same, and      give up: it would fail again
//     processes say how far they are, but got no further
//   the budget of this kind of failure is used up               give up
//   otherwise                                                   restart, after a backoff
//
// The first restart comes at once. Later ones wait: 1, 2, 4 … seconds up to a minute, and a random part of
// that ("full jitter"). A run of `healthy_after` sets backoff and budgets back,
// since what fails once a day is not what fails at once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "launcher/model/failure_cause.h"

namespace fleetrun::launcher {

enum class RestartScope { nobody, process, group };  // group: every process of the job on this host

std::string_view to_string(RestartScope scope) noexcept;

constexpr std::size_t kFailureKinds = 5;

struct RestartRules {
  /// Restarts by kind of failure; -1: as many as needed. All zero: the job does not restart.
  std::array<int, kFailureKinds> budgets{};
  int total = -1;  // in the life of the job, whatever fails, as torchrun counts; -1: only the budgets count
  std::chrono::milliseconds backoff{1'000}, longest_backoff{60'000};
  std::chrono::milliseconds healthy_after{600'000};
  int same_failures = 0;  // in a row; 0: they never end the job

  bool any() const noexcept;
  bool operator==(const RestartRules&) const = default;
};

/// One failure, as the rules see it.
struct FailureRecord {
  FailureKind kind = FailureKind::crash;
  std::string who;                       // "trainer 1"
  std::string signature;                 // of its cause
  std::chrono::milliseconds ran{};       // from the start of the attempt
  std::optional<std::int64_t> progress;  // the greatest step that any process reported, ever
};

struct Restart {
  std::chrono::milliseconds backoff{};
  std::string why;  // "crash, restart 1 of 3"
  bool operator==(const Restart&) const = default;
};
struct GiveUp {
  std::string why;
  bool operator==(const GiveUp&) const = default;
};
using RestartDecision = std::variant<Restart, GiveUp>;

class RestartPolicy {
 public:
  /// `seed` is that of the backoff's jitter.
  RestartPolicy(RestartRules rules, std::uint64_t seed);

  /// Whether anything is ever restarted.
  bool restarts() const noexcept { return rules_.any(); }

  /// Decides about one failure, and remembers it. `scope` is that of the role that failed.
  RestartDecision on_failure(const FailureRecord& failure, RestartScope scope);

 private:
  bool same_again(const FailureRecord& failure);
  std::chrono::milliseconds next_backoff();

  RestartRules rules_;
  std::array<int, kFailureKinds> used_{};
  int used_in_all_ = 0;
  int in_a_row_ = 0;  // restarts since the last healthy run: decides the backoff
  int same_count_ = 0;
  std::string last_who_, last_signature_;
  std::optional<std::int64_t> last_progress_;
  std::minstd_rand random_;
};

}  // namespace fleetrun::launcher
