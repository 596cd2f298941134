#include "ps/server/stat_json.h"

#include <unistd.h>

#include <cstdio>

#include "runtime/base/host_name.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

/// Members of an object, in the order in which they are added.
class Members {
 public:
  Members& raw(std::string_view name, std::string_view value) {
    text_.append(text_.empty() ? "{" : ",").append(json_string(name)).append(":").append(value);
    return *this;
  }
  Members& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
  Members& text(std::string_view name, std::string_view value) { return raw(name, json_string(value)); }
  Members& seconds(std::string_view name, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return raw(name, text);
  }
  std::string end() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

std::string latency(const HistogramCounts& counts) {
  std::string out = "[";
  for (const auto& [value, many] : counts.buckets) {
    out.append(out.size() == 1 ? "[" : ",[").append(std::to_string(value)).append(",");
    out.append(std::to_string(many)).append("]");
  }
  return out + "]";
}

std::string calls_of(const CallCounts& counts) {
  const HistogramCounts& times = counts.nanoseconds;
  return Members()
      .number("calls", counts.calls)
      .number("errors", counts.errors)
      .number("in_flight", counts.in_flight)
      .number("bytes_in", counts.bytes_in)
      .number("bytes_out", counts.bytes_out)
      .seconds("seconds", static_cast<double>(times.sum) / 1e9)
      .number("p50_ns", times.quantile(0.5))
      .number("p99_ns", times.quantile(0.99))
      .number("highest_ns", times.highest)
      .raw("latency_ns", latency(times))
      .end();
}

std::string table_of(const TableConfig& table, const StatSources& sources) {
  const TableCounts counts = sources.metrics.table(table.id);
  Members out;
  out.number("id", table.id).text("name", table.name).text("kind", to_string(table.kind));
  out.number("width", table.width);
  if (table.kind == TableConfig::Kind::sparse) {
    const SparseMetrics metrics = sources.tables.sparse(table.id).metrics();
    out.number("rows", metrics.rows).number("bytes", metrics.bytes).number("created", metrics.created);
    out.number("erased", metrics.erased).number("not_admitted", metrics.not_admitted);
    out.number("cold_rows", metrics.cold_rows).number("from_disk", metrics.from_disk);
  }
  return out.number("pulled", counts.pulled).number("pushed", counts.pushed).end();
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const char c = text[at];
    if (length == 0) {
      out += '?';
    } else if (c == '"' || c == '\\') {
      out.append("\\").push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out + "\"";
}

std::string stat_json(const StatSources& sources) {
  std::string tables, calls;
  for (const TableConfig& table : sources.options.tables)
    tables.append(tables.empty() ? "" : ",").append(table_of(table, sources));
  Members kinds;
  for (std::size_t i = 0; i < wire::kMethodCount; ++i) {
    const auto method = static_cast<wire::Method>(i);
    const CallCounts counts = sources.metrics.calls(method);
    if (counts.calls + counts.in_flight != 0) kinds.raw(wire::to_string(method), calls_of(counts));
  }
  const auto uptime = std::chrono::steady_clock::now() - sources.metrics.began_at();
  Members out;
  out.number("schema", 1)
      .number("server", sources.options.rank)
      .number("servers", sources.options.servers)
      .text("mode", to_string(sources.options.mode))
      .number("trainers", sources.options.trainers)
      .text("host", host_name())
      .number("pid", static_cast<std::uint64_t>(::getpid()))
      .seconds("uptime_seconds", std::chrono::duration<double>(uptime).count())
      .number("stale_requests", sources.stale_requests)
      .raw("tables", "[" + tables + "]")
      .raw("calls", kinds.end());
  if (sources.options.process) out.number("process", *sources.options.process);
  if (const StalenessCounts& counts = sources.staleness; counts.pushes > 0) {
    Members staleness;
    staleness.number("pushes", counts.pushes)
        .seconds("mean", counts.mean())
        .number("highest", counts.highest);
    out.raw("staleness", staleness.end());
  }
  std::string waits;
  for (const TrainerWait& wait : sources.waits) {
    if (wait.since < std::chrono::seconds(1)) continue;
    Members one;
    one.number("trainer", wait.trainer).text("call", wait.call);
    one.seconds("seconds", std::chrono::duration<double>(wait.since).count());
    waits.append(waits.empty() ? "" : ",").append(one.end());
  }
  if (!waits.empty()) out.raw("waits", "[" + waits + "]");
  if (sources.standby_follows) {
    Members standby;
    standby.text("on", sources.options.standby.name())
        .raw("follows", *sources.standby_follows ? "true" : "false");
    out.raw("standby", standby.end());
  }
  std::string holds;
  for (const HeldStat& held : sources.holds) {
    Members one;
    one.number("server", held.server).number("records", held.records);
    one.raw("whole", held.is_whole ? "true" : "false");
    holds.append(holds.empty() ? "" : ",").append(one.end());
  }
  if (!holds.empty()) out.raw("holds", "[" + holds + "]");
  return out.end();
}

}  // namespace fleetrun::ps
