#include "launcher/status/control_request.h"

#include <signal.h>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

ControlRequest parse(const std::string& line) {
  return parse_control_request(line, tests::job_plan(3, 2));
}

std::string refusal(const std::string& line) {
  try {
    parse(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("every request is read") {
  CHECK(std::holds_alternative<StatusRequest>(parse(R"({"request":"status"})")));
  CHECK(std::holds_alternative<StacksRequest>(parse(R"({"request":"stacks"})")));
  CHECK(std::holds_alternative<AttachRequest>(parse(R"( {"request" : "attach"} )"
                                                    "\n")));
  CHECK(std::get<StopRequest>(parse(R"({"request":"stop"})")) == StopRequest{});
  CHECK(std::get<StopRequest>(parse(R"({"request":"stop","now":true,"grace_seconds":1.5,"signal":"INT"})")) ==
        StopRequest{true, std::chrono::milliseconds(1500), SIGINT});
  CHECK(std::get<SignalRequest>(parse(R"({"request":"signal","signal":"USR1"})")) ==
        SignalRequest{SIGUSR1, {0, 1, 2, 3, 4}});
  CHECK(std::get<SignalRequest>(parse(R"({"request":"signal","signal":"SIGUSR1","role":"trainer"})")) ==
        SignalRequest{SIGUSR1, {2, 3, 4}});
  CHECK(std::get<SignalRequest>(parse(R"({"request":"signal","signal":"USR1","role":"server","rank":1})")) ==
        SignalRequest{SIGUSR1, {1}});
  CHECK(std::get<RestartRequest>(parse(R"({"request":"restart","role":"trainer","rank":2})")) ==
        RestartRequest{4});
}

TEST_CASE("what is written is read back") {
  const Plan plan = tests::job_plan(3, 2);
  const std::vector<ControlRequest> requests = {StatusRequest{},
                                                StacksRequest{},
                                                AttachRequest{},
                                                StopRequest{},
                                                StopRequest{true, std::chrono::milliseconds(250), SIGQUIT},
                                                SignalRequest{SIGUSR2, {0, 1, 2, 3, 4}},
                                                SignalRequest{SIGUSR2, {2, 3, 4}},
                                                SignalRequest{SIGUSR2, {3}},
                                                RestartRequest{1},
                                                ResizeRequest{5}};
  for (const ControlRequest& request : requests)
    CHECK(parse_control_request(to_json(request, plan), plan) == request);
}

TEST_CASE("what cannot be meant is refused, above all a misspelled field") {
  CHECK(refusal(R"({"request":"stop","nwo":true})") == "a stop request has no field nwo");
  CHECK(refusal(R"({"request":"status","now":true})") == "a status request has no field now");
  CHECK(refusal(R"({"request":"jump"})") == "request jump is not known");
  CHECK(refusal(R"({"request":"signal","signal":"USR3"})") == "signal \"USR3\" is not known");
  CHECK(refusal(R"({"request":"signal","signal":9})") == "signal 9 is not known");
  CHECK(refusal(R"({"request":"signal","signal":"USR1","role":"worker"})") ==
        "there is no worker in this job");
  CHECK(refusal(R"({"request":"signal","signal":"USR1","role":"trainer","rank":3})") ==
        "there is no trainer 3 in this job");
  CHECK(refusal(R"({"request":"signal","signal":"USR1","rank":3})") == "a rank needs its role");
  CHECK(refusal(R"({"request":"restart","role":"trainer"})") == "a restart needs role and rank");
  CHECK(refusal(R"({"request":"stop","grace_seconds":-1})") == "grace_seconds is -1, not 0 to 2592000");
  CHECK(refusal(R"({"request":"stop","grace_seconds":1e300})") ==
        "grace_seconds is 1e+300, not 0 to 2592000");
  CHECK(refusal("[]") == "a request is an object: {\"request\":\"status\"}");
  for (const std::string& line :
       {std::string(), std::string("{}"), std::string("status"), std::string("{\"request\":1}"),
        std::string("\xff\xfe"), std::string(R"({"request":"stop","now":"yes"})"), std::string(60000, '['),
        std::string("\0\0", 2)})
    CHECK(refusal(line).starts_with("the request cannot be read: "));
}

TEST_CASE("an attached client gets the event, and what to tell people") {
  CHECK(attached_line("{\"schema\":1}\n", {LogLevel::warning, "look\n\"out\" \xff"}) ==
        "{\"event\":{\"schema\":1},\"level\":\"WARNING\",\"text\":\"look\\n\\\"out\\\" \xef\xbf\xbd\"}\n");
}
