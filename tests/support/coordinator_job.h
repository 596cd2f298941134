// A coordinator and what it said, for the tests of launcher/cluster/coordinator_*.cc.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "launcher/cluster/coordinator_core.h"

namespace fleetrun::launcher::tests {

using coordinating::CloseConnection;
using coordinating::Note;
using coordinating::Outputs;
using coordinating::SendTo;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline std::string node_id(ConnectionId number) {
  return std::string(31, '0') + static_cast<char>('0' + number);
}

inline Hello hello(ConnectionId number, int requested = -1) {
  Hello its;
  its.version = "1.0";
  its.job_id = "job";
  its.node = node_id(number);
  its.name = "h" + std::to_string(number);
  its.requested_rank = requested;
  its.offer = {its.name, {static_cast<std::uint16_t>(number)}, {}, 0};
  return its;
}

/// A coordinator, and what it said last to whom.
struct Job {
  explicit Job(CoordinatorSettings its, std::optional<Journal> journal = {})
      : core(settings(std::move(its)), std::move(journal), now) {}

  static CoordinatorSettings settings(CoordinatorSettings its) {
    its.job_id = "job";
    its.version = "1.0";
    its.run = std::string(32, 'f');
    return its;
  }
  void say(ConnectionId from, Message message) { take(core.on(from, message, now)); }
  void come(ConnectionId number, int requested = -1) { say(number, hello(number, requested)); }
  void pass(milliseconds time, std::vector<ConnectionId> alive = {}) {
    for (milliseconds passed{}; passed < time; passed += milliseconds(250)) {
      now += milliseconds(250);
      for (const ConnectionId each : alive) say(each, Beat{now, {}, {}});
      take(core.on_tick(now));
    }
  }
  void take(Outputs outputs) {
    for (auto& output : outputs) {
      if (auto* send = std::get_if<SendTo>(&output)) {
        for (const ConnectionId to : send->to) sent.emplace_back(to, send->message);
      } else if (auto* close = std::get_if<CloseConnection>(&output)) {
        closed.push_back(close->connection);
      } else if (auto* note = std::get_if<Note>(&output)) {
        notes.push_back(to_string(note->event));
      } else {
        last = std::move(output);
      }
    }
  }
  /// The newest of its kind that was sent to `to`, or to anybody (0).
  template <class Kind>
  std::optional<Kind> newest(ConnectionId to = 0) const {
    for (auto its = sent.rbegin(); its != sent.rend(); ++its) {
      if (to != 0 && its->first != to) continue;
      if (const auto* found = std::get_if<Kind>(&its->second.message())) return *found;
    }
    return std::nullopt;
  }
  bool noted(const std::string& text) const {
    return std::find(notes.begin(), notes.end(), text) != notes.end();
  }
  void all_ready(std::vector<ConnectionId> from) {
    for (const ConnectionId each : from) {
      const auto prepare = newest<Prepare>(each);
      REQUIRE(prepare);
      say(each, Ready{prepare->generation,
                      {"h" + std::to_string(each), {static_cast<std::uint16_t>(each)}, {}, 0}});
    }
  }

  Instant now = seconds(100);
  CoordinatorCore core;
  std::vector<std::pair<ConnectionId, SharedMessage>> sent;
  std::vector<ConnectionId> closed;
  std::vector<std::string> notes;
  std::optional<coordinating::Output> last;
};

inline CoordinatorSettings fixed(int hosts) {
  CoordinatorSettings settings;
  settings.nodes = {hosts, hosts, 1};
  return settings;
}

inline CoordinatorSettings range(int min, int max) {
  CoordinatorSettings settings;
  settings.nodes = {min, max, 1};
  settings.elastic = true;
  return settings;
}

inline NodeFailure crash(const std::string& process) {
  NodeFailure failure;
  failure.process = process;
  failure.exit_status = 3;
  failure.text = "exited with code 3";
  failure.signature = process;
  return failure;
}

}  // namespace fleetrun::launcher::tests
