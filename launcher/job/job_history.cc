#include "launcher/job/job_history.h"

#include <algorithm>

namespace fleetrun::launcher {

bool Ending::ok() const noexcept {
  const auto* reason = std::get_if<ExitReason>(&how);
  return reason && reason->ok();
}

bool Ending::by_our_signal() const noexcept {
  const auto* reason = std::get_if<ExitReason>(&how);
  return reason && reason->kind == ExitReason::Kind::signaled && (sent >> reason->code & 1) != 0;
}

std::string Ending::said() const {
  if (const auto* reason = std::get_if<ExitReason>(&how)) return to_string(*reason);
  return "could not be started";
}

void JobHistory::on_event(const JobEvent& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

const Ending* JobHistory::ending_of(std::size_t index) const {
  const auto found = std::find_if(endings_.begin(), endings_.end(),
                                  [&](const Ending& ending) { return ending.index == index; });
  return found == endings_.end() ? nullptr : &*found;
}

void JobHistory::on_record(const JobRecord& record) {
  std::visit([this](const auto& each) { on(each); }, record);
}

void JobHistory::on(const SignalSent& sent) {
  const auto start = starts_.find(sent.index);
  if (start != starts_.end() && sent.number > 0 && sent.number < 64)
    start->second.sent |= std::uint64_t{1} << sent.number;
}

void JobHistory::on(const event::Contained& event) {
  containment_ = event.level;
}

void JobHistory::on(const event::ProcessStarted& event) {
  std::erase_if(endings_, [&](const Ending& ending) { return ending.index == event.index; });
  if (began_at_ == 0) began_at_ = event.at;
  last_at_ = std::max(last_at_, event.at);
  starts_[event.index] = {event.pid, event.at, 0};
  hung_.erase(event.index);
}

void JobHistory::on(const event::ProcessExited& event) {
  Ending ending;
  ending.index = event.index;
  ending.attempt = event.attempt;
  ending.pid = event.pid;
  ending.at = event.at;
  ending.asked = event.asked;
  ending.max_rss_kib = event.max_rss_kib;
  ending.how = event.reason;
  add(std::move(ending));
}

void JobHistory::on(const event::ProcessNotStarted& event) {
  std::erase_if(endings_, [&](const Ending& ending) { return ending.index == event.index; });
  Ending ending;
  ending.index = event.index;
  ending.attempt = event.attempt;
  ending.at = last_at_;
  ending.how = StartFailure{event.stage, event.error};
  add(std::move(ending));
}

void JobHistory::add(Ending ending) {
  const auto start = starts_.find(ending.index);
  ending.started_at = start == starts_.end() ? ending.at : start->second.at;
  if (start != starts_.end() && ending.pid <= 0) ending.pid = start->second.pid;
  if (start != starts_.end()) ending.sent = start->second.sent;
  ending.hung = hung_.contains(ending.index);
  if (ending.hung) ending.hang_why = hung_[ending.index];
  last_at_ = std::max(last_at_, ending.at);
  if (start != starts_.end()) starts_.erase(start);
  endings_.push_back(std::move(ending));
}

void JobHistory::on(const event::HangFound& event) {
  for (const std::size_t index : event.culprits) hung_[index] = event.why;
}

void JobHistory::on(const event::Injected& event) {
  injected_.push_back(event.what);
  if (event.signal != 0) on(SignalSent{event.index, event.signal});
}

void JobHistory::on(const event::FailureExplained& event) {
  attempts_.push_back({event.attempt, event.index, event.cause, {}, false});
}

void JobHistory::on(const event::RestartDecided& event) {
  ++restarts_;
  if (attempts_.empty()) return;
  attempts_.back().decision = event.why;
  attempts_.back().restarted = true;
}

void JobHistory::on(const event::GaveUp& event) {
  if (!attempts_.empty()) attempts_.back().decision = event.why;
}

}  // namespace fleetrun::launcher
