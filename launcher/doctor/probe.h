// `fleetrun doctor --probe`: the doctor's hands on another host. It answers questions on its standard input,
// in the frames of launcher/remote/agent_channel (an order is a question, an output its answer;
// both hold JSON), and ends with it.
//
//   {"ask": "clock"}                                     → {"clock": CLOCK_REALTIME in ns}
//   {"ask": "examine", "questions": …}                   → {"condition": …}
//   {"ask": "listen", "host": ADDRESS, "key": HEX, "ports": "20000:29999"}
//                                                 → {"endpoints": "10.0.0.2:4711,…"} or {"failure": TEXT}
//   {"ask": "dial", "targets": [[HOST, ENDPOINT], …]}    → {"reaches": [[HOST, FAILURE, MICROS], …]}
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/host_check.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::doctor {

/// Returns the exit status, when its standard input ends. Blocks.
int run_probe(const Environ& environment);

// The questions.
std::string ask_clock();
std::string ask_host_check(const Questions& questions);
/// `ports`: "20000:29999", or empty.
std::string ask_to_listen(const std::string& host, const std::string& key, const std::string& ports);
std::string ask_to_dial(const std::vector<Target>& targets);

/// An answer: what is not in it is empty.
struct Answer {
  std::int64_t clock_ns = 0;
  std::optional<HostCheck> host_check;
  std::vector<Endpoint> endpoints;
  std::string failure;
  std::vector<Reach> reaches;
};
/// Throws: Error(data).
Answer answer_from_json(std::string_view text);

}  // namespace fleetrun::launcher::doctor
