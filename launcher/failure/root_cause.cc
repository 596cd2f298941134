#include "launcher/failure/root_cause.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace fleetrun::launcher {
namespace {

enum class Weight { none, follows, silent, own };

bool died_of(const Ending& ending, int signal) {
  const auto* reason = std::get_if<ExitReason>(&ending.how);
  return reason && reason->kind == ExitReason::Kind::signaled && reason->code == signal;
}

bool signaled(const Ending& ending) {
  const auto* reason = std::get_if<ExitReason>(&ending.how);
  return reason && reason->kind == ExitReason::Kind::signaled;
}

/// A signal that nobody of us sent, or that was never: reasons that need no words.
bool speaks_for_itself(const Ending& ending) {
  if (std::holds_alternative<StartFailure>(ending.how) || ending.hung) return true;
  return signaled(ending) && !ending.as_told() && !died_of(ending, SIGPIPE);
}

Weight weigh(const Ending& ending, const TextOf& text_of) {
  if (ending.ok()) return Weight::none;
  if (speaks_for_itself(ending)) return Weight::own;
  const auto text = text_of(ending.index);
  if (ending.asked) {
    const bool strong =
        text && text->family != FailureFamily::message && text->family != FailureFamily::device;
    return strong && text->at_end && !text->consequence ? Weight::own : Weight::none;
  }
  if (died_of(ending, SIGPIPE)) return Weight::follows;
  if (!text) return Weight::silent;
  return text->consequence ? Weight::follows : Weight::own;
}

}  // namespace

std::optional<std::size_t> root_cause(std::span<const Ending> endings, const TextOf& text_of) {
  const Ending* first = nullptr;
  for (const Ending& ending : endings) {
    if (ending.ok() || (ending.asked && !ending.hung)) continue;
    if (!first || ending.at < first->at) first = &ending;
  }
  if (!first) return std::nullopt;
  if (weigh(*first, text_of) != Weight::follows) return first->index;
  const Ending* best = first;
  Weight best_weight = Weight::follows;
  for (const Ending& ending : endings) {
    if (&ending == first || std::abs(ending.at - first->at) > kCascadeWindow) continue;
    const Weight weight = weigh(ending, text_of);
    const bool better = weight > best_weight || (weight == best_weight && ending.asked < best->asked) ||
                        (weight == best_weight && ending.asked == best->asked && ending.at < best->at);
    if (weight <= Weight::follows || !better) continue;
    best = &ending;
    best_weight = weight;
  }
  return best->index;
}

}  // namespace fleetrun::launcher
