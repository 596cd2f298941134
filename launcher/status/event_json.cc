// Written by hand, not through a JSON library: a thousand processes start and end within half a second, and
// each of these lines then costs less than a microsecond.
#include "launcher/status/event_json.h"

#include <time.h>

#include <cstdio>
#include <system_error>

#include "launcher/status/job_status.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

/// One object, field by field.
class Line {
 public:
  Line(const char* type, EventTime time) {
    text_.reserve(256);
    field("schema", kEventSchema);
    field("time", iso_time(time.wall_ns));
    field("at", time.monotonic_ns);
    field("type", type);
  }

  Line& field(const char* name, std::string_view value) {
    key(name);
    quote(value);
    return *this;
  }
  Line& field(const char* name, const char* value) { return field(name, std::string_view(value)); }
  Line& field(const char* name, std::int64_t value) {
    key(name);
    text_ += std::to_string(value);
    return *this;
  }
  Line& field(const char* name, int value) { return field(name, static_cast<std::int64_t>(value)); }
  Line& field(const char* name, bool value) {
    key(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  Line& process(const Plan& plan, std::size_t index) {
    const ProcessSpec& process = plan.processes.at(index);
    return field("process", process.name)
        .field("role", plan.roles.at(process.role).name)
        .field("rank", process.identity.rank);
  }
  Line& names(const char* name, const Plan& plan, const std::vector<std::size_t>& processes) {
    key(name);
    text_ += '[';
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (i > 0) text_ += ',';
      quote(plan.processes.at(processes[i]).name);
    }
    text_ += ']';
    return *this;
  }

  std::string end() { return std::move(text_ += "}\n"); }

 private:
  void key(const char* name) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += name;
    text_ += "\":";
  }
  void quote(std::string_view value) {
    text_ += '"';
    while (!value.empty()) value.remove_prefix(quote_one(value));
    text_ += '"';
  }
  /// Appends the first character of `value` and returns its length in bytes.
  std::size_t quote_one(std::string_view value) {
    const char byte = value.front();
    if (byte == '"' || byte == '\\') {
      text_ += '\\';
      text_ += byte;
    } else if (byte == '\n') {
      text_ += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      text_ += escaped;
    } else {
      const std::size_t length = utf8_length(value);
      if (length == 0) text_ += "\xef\xbf\xbd";
      text_.append(value.substr(0, length));
      return length == 0 ? 1 : length;
    }
    return 1;
  }

  std::string text_;
};

/// `now`, moved to when it happened.
EventTime moved_to(std::int64_t at, EventTime now) {
  return at == 0 ? now : EventTime{now.wall_ns + (at - now.monotonic_ns), at};
}

std::string line_of(const event::Contained& e, const Plan&, EventTime now) {
  return Line("contained", now)
      .field("level", e.level)
      .field("cgroup", e.cgroup)
      .field("init_pid", e.init_pid)
      .field("why_not_more", e.why_not_more)
      .end();
}

std::string line_of(const event::AttemptBegan& e, const Plan&, EventTime now) {
  return Line("attempt_began", now).field("attempt", e.attempt).end();
}

std::string line_of(const event::ProcessStarted& e, const Plan& plan, EventTime now) {
  return Line("process_started", moved_to(e.at, now))
      .process(plan, e.index)
      .field("attempt", e.attempt)
      .field("pid", e.pid)
      .end();
}

std::string line_of(const event::ProcessExited& e, const Plan& plan, EventTime now) {
  Line line("process_exited", moved_to(e.at, now));
  line.process(plan, e.index)
      .field("attempt", e.attempt)
      .field("pid", e.pid)
      .field("status", exit_status(e.reason))
      .field("asked", e.asked);
  if (e.reason.kind == ExitReason::Kind::exited) return line.field("code", e.reason.code).end();
  return line.field("signal", signal_name(e.reason.code)).field("core", e.reason.core_dumped).end();
}

std::string line_of(const event::ProcessNotStarted& e, const Plan& plan, EventTime now) {
  return Line("process_not_started", now)
      .process(plan, e.index)
      .field("attempt", e.attempt)
      .field("stage", e.stage)
      .field("errno", e.error)
      .field("error", std::generic_category().message(e.error))
      .end();
}

std::string line_of(const event::AllRunning&, const Plan&, EventTime now) {
  return Line("all_running", now).end();
}

std::string line_of(const event::RoleReady& e, const Plan& plan, EventTime now) {
  return Line("role_ready", now).field("role", plan.roles.at(e.role).name).end();
}

std::string line_of(const event::StopBegan& e, const Plan& plan, EventTime now) {
  return Line("stop_began", now).field("why", e.why).names("waiting_for", plan, e.waiting_for).end();
}

std::string line_of(const event::GraceElapsed& e, const Plan& plan, EventTime now) {
  return Line("grace_elapsed", now).names("still_alive", plan, e.still_alive).end();
}

std::string line_of(const event::FailureExplained& e, const Plan& plan, EventTime now) {
  return Line("failure_explained", now)
      .process(plan, e.index)
      .field("attempt", e.attempt)
      .field("kind", to_string(e.cause.kind))
      .field("cause", e.cause.text)
      .field("detail", e.cause.detail)
      .field("signature", e.cause.signature)
      .field("hint", e.cause.hint)
      .end();
}

std::string line_of(const event::GenerationBegan& e, const Plan& plan, EventTime now) {
  Line line("generation_began", now);
  line.field("generation", e.generation).field("step", e.step).names("trainers", plan, e.seats);
  std::vector<std::size_t> lost, by;
  for (const auto& replaced : e.replaced) {
    lost.push_back(replaced.lost);
    by.push_back(replaced.by);
  }
  return line.names("lost", plan, lost).names("by", plan, by).end();
}

std::string line_of(const event::RestartDecided& e, const Plan& plan, EventTime now) {
  return Line("restart_decided", now)
      .process(plan, e.index)
      .field("scope", to_string(e.scope))
      .field("next_attempt", e.next_attempt)
      .field("backoff_ms", static_cast<std::int64_t>(e.backoff.count()))
      .field("why", e.why)
      .end();
}

std::string line_of(const event::GaveUp& e, const Plan&, EventTime now) {
  return Line("gave_up", now).field("why", e.why).end();
}

std::string line_of(const event::SignalReceived& e, const Plan&, EventTime now) {
  return Line("signal_received", now).field("signal", signal_name(e.number)).field("again", e.again).end();
}

std::string line_of(const event::SignalForwarded& e, const Plan&, EventTime now) {
  return Line("signal_forwarded", now).field("signal", signal_name(e.number)).end();
}

std::string line_of(const event::HangFound& e, const Plan& plan, EventTime now) {
  return Line("hang_found", now)
      .names("culprits", plan, e.culprits)
      .names("silent", plan, e.silent)
      .field("why", e.why)
      .field("report", e.report)
      .end();
}

std::string line_of(const event::Injected& e, const Plan&, EventTime now) {
  return Line("injected", now).field("what", e.what).end();
}

std::string line_of(const event::Unkillable& e, const Plan&, EventTime now) {
  return Line("unkillable", now).field("pid", e.pid).field("why", e.why).end();
}

std::string line_of(const event::LogsTruncated& e, const Plan& plan, EventTime now) {
  return Line("logs_truncated", now)
      .process(plan, e.index)
      .field("bytes", static_cast<std::int64_t>(e.bytes))
      .field("errno", e.error)
      .field("error", e.error == 0 ? "" : std::generic_category().message(e.error))
      .end();
}

std::string line_of(const event::Warning& e, const Plan&, EventTime now) {
  return Line("warning", now).field("text", e.text).end();
}

std::string line_of(const event::WorldBegan& e, const Plan&, EventTime now) {
  return Line("world_began", now)
      .field("epoch", static_cast<std::int64_t>(e.generation))
      .field("attempt", e.attempt)
      .field("hosts", join(e.hosts, ","))
      .field("trainers", e.trainers)
      .field("servers", e.servers)
      .field("hash", e.hash)
      .end();
}

std::string line_of(const event::WorldEnded& e, const Plan&, EventTime now) {
  return Line("world_ended", now).field("why", e.why).field("at_once", e.at_once).end();
}

std::string line_of(const event::ServersMove& e, const Plan&, EventTime now) {
  Line line("servers_move", now);
  line.field("from", e.from).field("to", e.to).field("moved", e.moved).field("of", e.of);
  line.field("done", e.done);
  if (e.done) line.field("took_ms", e.took_ms);
  return line.end();
}

std::string line_of(const event::PodStands& e, const Plan&, EventTime now) {
  return Line("pod_stands", now).field("still", e.still).end();
}

std::string line_of(const event::News& e, const Plan&, EventTime now) {
  return Line("news", now).field("text", e.text).end();
}

std::string line_of(const event::JobEnded& e, const Plan&, EventTime now) {
  return Line("job_ended", now).field("exit_status", e.exit_status).end();
}

}  // namespace

EventTime event_time_now() noexcept {
  timespec wall = {};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  return {wall.tv_sec * std::int64_t{1'000'000'000} + wall.tv_nsec, monotonic_ns()};
}

std::string to_json_line(const JobEvent& event, const Plan& plan, EventTime now) {
  return std::visit([&](const auto& happened) { return line_of(happened, plan, now); }, event);
}

std::string job_began_line(const Plan& plan, pid_t fleetrun_pid, EventTime now) {
  return Line("job_began", now)
      .field("job_id", plan.job_id)
      .field("pod", plan.pod_name)
      .field("mode", to_string(plan.mode))
      .field("fleetrun_pid", fleetrun_pid)
      .field("version", FLEETRUN_VERSION)
      .field("log_dir", plan.log_dir)
      .field("processes", static_cast<std::int64_t>(plan.processes.size()))
      .end();
}

std::string events_lost_line(std::size_t count, EventTime now) {
  return Line("events_lost", now).field("count", static_cast<std::int64_t>(count)).end();
}

std::string iso_time(std::int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(wall_ns % 1'000'000'000 / 1000));
  return text;
}

}  // namespace fleetrun::launcher
