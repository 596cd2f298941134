#include "launcher/status/metrics.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {
namespace {

/// A label's value, in_quotes as the format wants it.
std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text += '"';
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// For a label: without the digits that only a double needs.
std::string short_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

class Exposition {
 public:
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  void sample(const std::string& labels, double value) { sample("", labels, value); }
  void sample(const char* suffix, const std::string& labels, double value) {
    text_.append(name_).append(suffix);
    if (!labels.empty()) text_.append("{").append(labels).append("}");
    text_.append(" ").append(number(value)).append("\n");
  }
  std::string end() { return std::move(text_); }

 private:
  std::string name_, text_;
};

std::string labels_of(const ProcessStatus& process) {
  return "role=" + in_quotes(process.role) + ",rank=\"" + std::to_string(process.rank) + "\"";
}

/// One sample for each process for which `value` has one.
void per_process(Exposition& out, const JobStatus& status,
                 const std::function<std::optional<double>(const ProcessStatus&)>& value) {
  for (const ProcessStatus& process : status.processes) {
    if (const auto sample = value(process)) out.sample(labels_of(process), *sample);
  }
}

void write_job(Exposition& out, const JobStatus& status) {
  out.family("fleetrun_job_info", "gauge", "What job this is.");
  out.sample("job_id=" + in_quotes(status.job_id) + ",pod=" + in_quotes(status.pod) +
                 ",mode=" + in_quotes(status.mode) + ",containment=" + in_quotes(status.containment),
             1);
  out.family("fleetrun_job_phase", "gauge", "1 for the phase that the job is in.");
  for (int i = 0; i <= static_cast<int>(JobPhase::ended); ++i) {
    const auto phase = static_cast<JobPhase>(i);
    out.sample("phase=" + in_quotes(to_string(phase)), phase == status.phase ? 1 : 0);
  }
  out.family("fleetrun_job_attempt", "gauge", "The attempt that runs, counted from 0.");
  out.sample("", status.attempt);
  out.family("fleetrun_job_uptime_seconds", "gauge", "Since fleetrun began.");
  out.sample("", static_cast<double>(status.now - status.began_at) / 1e9);
  out.family("fleetrun_job_restarts_total", "counter", "Restarts, by the kind of failure that led to them.");
  std::array<int, kFailureKinds> restarts{};
  for (const RestartStatus& restart : status.restarts) ++restarts[static_cast<std::size_t>(restart.kind)];
  for (std::size_t kind = 0; kind < kFailureKinds; ++kind)
    out.sample("kind=" + in_quotes(to_string(static_cast<FailureKind>(kind))), restarts[kind]);
  out.family("fleetrun_job_processes", "gauge", "Processes, by state.");
  std::map<ProcessState, int> states;
  for (const ProcessStatus& process : status.processes) ++states[process.state];
  for (int i = 0; i <= static_cast<int>(ProcessState::not_started); ++i) {
    const auto state = static_cast<ProcessState>(i);
    out.sample("state=" + in_quotes(to_string(state)), states[state]);
  }
}

void write_processes(Exposition& out, const JobStatus& status) {
  using Sample = std::optional<double>;
  out.family("fleetrun_process_up", "gauge", "1 while the process lives.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample { return is_alive(p.state) ? 1 : 0; });
  out.family("fleetrun_process_starts_total", "counter", "How often it was started.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample { return p.starts; });
  out.family("fleetrun_process_cpu_seconds_total", "counter", "CPU time of it and what it started.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample {
    return p.usage ? Sample(p.usage->cpu_seconds) : std::nullopt;
  });
  out.family("fleetrun_process_resident_memory_bytes", "gauge", "Resident memory of it and what it started.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample {
    return p.usage ? Sample(static_cast<double>(p.usage->rss_bytes)) : std::nullopt;
  });
  out.family("fleetrun_process_exit_status", "gauge", "How it ended last, as a shell shows it.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample {
    return p.exit ? Sample(exit_status(*p.exit)) : std::nullopt;
  });
  out.family("fleetrun_process_log_bytes", "gauge", "Size of its current log.");
  per_process(out, status, [](const ProcessStatus& p) -> Sample {
    return p.log_bytes ? Sample(static_cast<double>(*p.log_bytes)) : std::nullopt;
  });
}

/// What processes say of themselves.
void write_training(Exposition& out, const JobStatus& status) {
  out.family("fleetrun_training_step", "gauge", "The last step that it has reported.");
  per_process(out, status, [](const ProcessStatus& p) -> std::optional<double> { return p.heartbeat.step; });
  out.family("fleetrun_training_step_work_seconds", "gauge", "The last step's own work, as it has reported.");
  per_process(out, status,
              [](const ProcessStatus& p) -> std::optional<double> { return p.heartbeat.work_seconds; });
  out.family("fleetrun_training_value", "gauge", "A value that it has reported: its loss, its rate.");
  for (const ProcessStatus& process : status.processes) {
    for (const auto& [name, value] : process.heartbeat.values)
      out.sample(labels_of(process) + ",name=" + in_quotes(name), value);
  }
}

/// One call of `write` for each parameter server that has said something.
void per_server(const JobStatus& status,
                const std::function<void(const std::string& rank, const ServerMetrics&)>& write) {
  for (const ProcessStatus& process : status.processes) {
    if (process.metrics) write("rank=\"" + std::to_string(process.rank) + "\"", *process.metrics);
  }
}

using CallNumber = std::uint64_t ServerMetrics::Call::*;

void per_call(Exposition& out, const JobStatus& status, CallNumber number, const std::string& more = {}) {
  per_server(status, [&](const std::string& rank, const ServerMetrics& metrics) {
    for (const ServerMetrics::Call& call : metrics.calls)
      out.sample(rank + ",call=" + in_quotes(call.kind) + more, static_cast<double>(call.*number));
  });
}

/// Buckets from 16 us to 17 s, each twice the one before: powers of two, where those of the servers end too.
void write_times(Exposition& out, const std::string& labels, const ServerMetrics::Call& call) {
  std::uint64_t counted = 0;
  std::size_t next = 0;
  for (int power = 14; power <= 34; ++power) {
    const std::uint64_t edge = std::uint64_t{1} << power;
    for (; next < call.latency_ns.size() && call.latency_ns[next].first < edge; ++next)
      counted += call.latency_ns[next].second;
    out.sample("_bucket", labels + ",le=\"" + short_number(static_cast<double>(edge) / 1e9) + "\"",
               static_cast<double>(counted));
  }
  for (; next < call.latency_ns.size(); ++next) counted += call.latency_ns[next].second;
  out.sample("_bucket", labels + ",le=\"+Inf\"", static_cast<double>(counted));
  out.sample("_sum", labels, call.seconds);
  out.sample("_count", labels, static_cast<double>(counted));
}

void write_tables(Exposition& out, const JobStatus& status) {
  out.family("fleetrun_ps_rows", "gauge", "Rows of a sparse table on this server.");
  per_server(status, [&](const std::string& rank, const ServerMetrics& metrics) {
    for (const ServerMetrics::Table& table : metrics.tables) {
      if (table.rows) out.sample(rank + ",table=" + in_quotes(table.name), static_cast<double>(*table.rows));
    }
  });
  out.family("fleetrun_ps_keys_total", "counter", "Keys that pulls and pushes brought.");
  per_server(status, [&](const std::string& rank, const ServerMetrics& metrics) {
    for (const ServerMetrics::Table& table : metrics.tables) {
      const std::string labels = rank + ",table=" + in_quotes(table.name);
      out.sample(labels + ",direction=\"pulled\"", static_cast<double>(table.pulled));
      out.sample(labels + ",direction=\"pushed\"", static_cast<double>(table.pushed));
    }
  });
}

void write_servers(Exposition& out, const JobStatus& status) {
  bool any = false;
  per_server(status, [&](const std::string&, const ServerMetrics&) { any = true; });
  if (!any) return;
  write_tables(out, status);
  out.family("fleetrun_ps_calls_total", "counter", "Calls that were answered.");
  per_call(out, status, &ServerMetrics::Call::calls);
  out.family("fleetrun_ps_call_errors_total", "counter", "Calls that were refused.");
  per_call(out, status, &ServerMetrics::Call::errors);
  out.family("fleetrun_ps_calls_in_flight", "gauge", "Calls that are under way.");
  per_call(out, status, &ServerMetrics::Call::in_flight);
  out.family("fleetrun_ps_bytes_total", "counter", "Bytes of requests and answers.");
  per_call(out, status, &ServerMetrics::Call::bytes_in, ",direction=\"in\"");
  per_call(out, status, &ServerMetrics::Call::bytes_out, ",direction=\"out\"");
  const auto staleness = [&](const char* name, const char* help, auto value) {
    out.family(name, "gauge", help);
    per_server(status, [&](const std::string& rank, const ServerMetrics& metrics) {
      if (metrics.staleness) out.sample(rank, static_cast<double>(value(*metrics.staleness)));
    });
  };
  staleness("fleetrun_ps_staleness_mean", "Pushes of others between a pull and its push, on average.",
            [](const ServerMetrics::Staleness& stale) { return stale.mean; });
  staleness("fleetrun_ps_staleness_highest", "The most of them.",
            [](const ServerMetrics::Staleness& stale) { return stale.highest; });
  out.family("fleetrun_ps_call_seconds", "histogram", "From a call to its answer.");
  per_server(status, [&](const std::string& rank, const ServerMetrics& metrics) {
    for (const ServerMetrics::Call& call : metrics.calls)
      write_times(out, rank + ",call=" + in_quotes(call.kind), call);
  });
}

}  // namespace

std::string to_prometheus(const JobStatus& status) {
  Exposition out;
  write_job(out, status);
  write_processes(out, status);
  write_training(out, status);
  write_servers(out, status);
  return out.end();
}

}  // namespace fleetrun::launcher
