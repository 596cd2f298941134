#include "launcher/model/job_action.h"

namespace fleetrun::launcher {
namespace {

std::string of(std::optional<std::size_t> index) {
  return index ? " " + std::to_string(*index) : " all";
}

struct Describe {
  std::string operator()(const PrepareAttempt& a) const { return "prepare " + std::to_string(a.attempt); }
  std::string operator()(const StartProcess& a) const {
    return "start " + std::to_string(a.index) + " (attempt " + std::to_string(a.attempt) + ")";
  }
  std::string operator()(const AwaitRole& a) const { return "await role " + std::to_string(a.role); }
  std::string operator()(const AskToStop& a) const { return "stop " + std::to_string(a.index); }
  std::string operator()(const KillProcess& a) const { return "kill " + std::to_string(a.index); }
  std::string operator()(const ArmGrace& a) const { return "grace of role " + std::to_string(a.role); }
  std::string operator()(const KillPod&) const { return "kill all"; }
  std::string operator()(const ExplainFailure& a) const {
    return "explain " + std::to_string(a.index) + (a.alone ? " alone" : "");
  }
  std::string operator()(const Sweep& a) const { return "sweep" + of(a.index); }
  std::string operator()(const Rest& a) const {
    return "rest" + of(a.index) + " " + std::to_string(a.backoff.count()) + " ms";
  }
  std::string operator()(const ReportFailing& a) const { return "report failing " + std::to_string(a.index); }
  std::string operator()(const ReportFailure& a) const {
    return "report failure " + std::to_string(a.explained.index);
  }
  std::string operator()(const ReportDrained&) const { return "report drained"; }
  std::string operator()(const ReportDone&) const { return "report done"; }
  std::string operator()(const Tell&) const { return "tell"; }
  std::string operator()(const EndJob&) const { return "end"; }
};

}  // namespace

std::string to_string(const Action& action) {
  return std::visit(Describe{}, action);
}

}  // namespace fleetrun::launcher
