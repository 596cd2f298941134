#include "launcher/record/replay.h"

#include <algorithm>

#include "launcher/job/job_state.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

[[noreturn]] void refuse_index() {
  throw Error(ErrorKind::data, "the record names a process or role that its plan has not");
}

/// Everything in an event that is an index has to be one of the plan's.
class IndexCheck {
 public:
  explicit IndexCheck(const Plan& plan) : processes_(plan.processes.size()), roles_(plan.roles.size()) {}

  void operator()(const Plan& plan) const {
    if (plan.processes.size() != processes_ || plan.roles.size() != roles_) refuse_index();
    for (const ProcessSpec& process : plan.processes) role(process.role);
    for (const RolePlan& each : plan.roles) {
      std::ranges::for_each(each.after, [this](std::size_t index) { role(index); });
      if (each.stands_by_for) role(*each.stands_by_for);
    }
  }

  template <class Event>
  void operator()(const Event& event) const {
    if constexpr (requires { event.index; }) index(event.index);
    if constexpr (requires { event.role; }) role(event.role);
    if constexpr (requires { event.indices; }) all(event.indices);
    if constexpr (requires { event.waiting_for; }) all(event.waiting_for);
    if constexpr (requires { event.still_alive; }) all(event.still_alive);
    if constexpr (requires { event.seats; }) all(event.seats);
    if constexpr (requires { event.silent; }) all(event.silent), all(event.culprits);
    if constexpr (requires { event.replaced; }) {
      for (const auto& each : event.replaced) index(each.lost), index(each.by);
    }
  }

 private:
  void index(std::size_t value) const {
    if (value >= processes_) refuse_index();
  }
  void index(const std::optional<std::size_t>& value) const {
    if (value) index(*value);
  }
  void role(std::size_t value) const {
    if (value >= roles_) refuse_index();
  }
  void all(const std::vector<std::size_t>& values) const {
    for (const std::size_t value : values) index(value);
  }

  std::size_t processes_, roles_;
};

class Replay {
 public:
  Replay(const FlightRecord& record, const std::function<void(const Told&, const Plan&)>& tell)
      : tell_(tell),
        check_((IndexCheck(record.opening.plan)(record.opening.plan), record.opening.plan)),
        plan_(record.opening.plan),
        state_(plan_.roles, roles_of(plan_), RestartPolicy(plan_.restart, record.opening.seed),
               record.opening.first_attempt ? std::optional(InWorld{*record.opening.first_attempt})
                                            : std::nullopt) {
    state_.begin();
  }

  void operator()(const RecordOpening&) {}
  void operator()(const RecordEnd&) {}

  void operator()(const Told& told) {
    std::visit(check_, told.event);
    history_.on_event(told.event);
    tell_(told, plan_);
  }

  void operator()(const Decision& decision) {
    std::visit(check_, decision.event);
    const std::vector<std::string> actions = words_of(state_.on(decision.event));
    ++decisions_;
    if (actions != decision.actions)
      differences_.push_back("decision " + std::to_string(decisions_) + " was \"" +
                             join(decision.actions, ", ") + "\", and is \"" + join(actions, ", ") + "\"");
  }

  void operator()(const SignalSent& sent) {
    check_(sent);
    history_.on_record(sent);
  }
  void operator()(const LeftAlive& left) { history_.on_record(left); }
  void operator()(const PlanMade& made) {
    check_(made.plan);
    plan_ = made.plan;
  }

  Replayed end(const FlightRecord& record, const ScreenMaker& make_screen) {
    Replayed replayed{decisions_, std::move(differences_), {}, {}, {}};
    if (!record.end) {
      replayed.report = make_report(state_, plan_, history_);
      replayed.screen = make_screen(replayed.report, plan_, history_, {});
      return replayed;
    }
    const RecordEnd& end = *record.end;
    if (end.refusal) {
      replayed.report = refusal(Error(end.refusal->kind, end.refusal->what, end.refusal->hint));
      history_ = {};
    } else {
      Conclusion conclusion = conclude(state_, plan_, history_, end.end);
      replayed.report = std::move(conclusion.report);
      if (record.opening.torchrun)
        replayed.screen = end.screen;
      else if (conclusion.screen)
        replayed.screen = *conclusion.screen;
      else
        replayed.screen = make_screen(replayed.report, plan_, history_, end.last_lines);
    }
    replayed.verdict = to_json(replayed.report, plan_, history_, end.ended);
    if (replayed.verdict != end.verdict) replayed.differences.push_back("the verdict is another one");
    if (replayed.screen != end.screen) replayed.differences.push_back("the screen is another one");
    return replayed;
  }

 private:
  const std::function<void(const Told&, const Plan&)>& tell_;
  const IndexCheck check_;
  Plan plan_;
  JobState state_;
  JobHistory history_;
  std::size_t decisions_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace

Replayed replay(const FlightRecord& record, const ScreenMaker& make_screen,
                const std::function<void(const Told&, const Plan&)>& tell) {
  Replay replay(record, tell);
  for (const RecordEntry& entry : record.entries) std::visit(replay, entry);
  return replay.end(record, make_screen);
}

}  // namespace fleetrun::launcher
