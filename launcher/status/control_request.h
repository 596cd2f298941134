// What the control socket is asked, as values. One request per line, one answer per line, both JSON:
//
//   request                          answer
//   {"request":"status"}             {"ok":true,"status":{…}}   launcher/job_status_json
//   {"request":"stop","now":false,"grace_seconds":10,"signal":"INT"}
//                                    {"ok":true}                all but request is optional
//   {"request":"signal","signal":"USR1","role":"trainer","rank":1}
//                                    {"ok":true}                no rank: all of the role; no role: everything
//   {"request":"restart","role":"trainer","rank":1}
//                                    {"ok":true}                by the role's restart rule
//   {"request":"resize","servers":5} {"ok":true}                once 5 processes serve the servers
//   {"request":"stacks"}             {"ok":true,"stacks":"…"}   can take seconds
//   {"request":"attach"}             {"ok":true,"status":{…}}, then a line per event:
//                                    {"event":{…},"level":"info","text":"…"}; text is for people,
//                                    "" for what they need not be told
//   anything else                                                    {"ok":false,"error":"…","hint":"…"}
//
// Fields that are not known are refused, so that a misspelled "now" never becomes a slow stop. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/job/event_text.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

struct StatusRequest {
  bool operator==(const StatusRequest&) const = default;
};
/// The job is to end. What is not there is as for a SIGTERM to fleetrun.
struct StopRequest {
  bool now = false;                                // at once, without asking the processes
  std::optional<std::chrono::milliseconds> grace;  // instead of every role's own
  int signal = 0;                                  // instead of every role's stop signal; 0: that one
  bool operator==(const StopRequest&) const = default;
};
struct SignalRequest {
  int number = 0;
  std::vector<std::size_t> processes;  // in the plan
  bool operator==(const SignalRequest&) const = default;
};
struct RestartRequest {
  std::size_t process = 0;
  bool operator==(const RestartRequest&) const = default;
};
struct ResizeRequest {
  int servers = 0;  // processes that are to serve them
  bool operator==(const ResizeRequest&) const = default;
};
struct StacksRequest {
  bool operator==(const StacksRequest&) const = default;
};
struct AttachRequest {
  bool operator==(const AttachRequest&) const = default;
};

using ControlRequest = std::variant<StatusRequest, StopRequest, SignalRequest, RestartRequest, ResizeRequest,
                                    StacksRequest, AttachRequest>;

/// Throws: Error(usage) that says what is wrong with `line`.
ControlRequest parse_control_request(std::string_view line, const Plan& plan);

/// The request as a line, without its newline. For signal and restart the processes have to be of one role.
std::string to_json(const ControlRequest& request, const Plan& plan);

/// A stop needs no plan: what `fleetrun stop` sends.
std::string to_json(const StopRequest& request);

/// What an attached client is sent for an event. `event_line` is launcher/status/event_json's.
std::string attached_line(std::string_view event_line, const Sentence& sentence);

}  // namespace fleetrun::launcher
