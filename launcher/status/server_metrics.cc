#include "launcher/status/server_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

ServerMetrics::Table table_from(const Json& json) {
  ServerMetrics::Table table;
  table.name = json.at("name").get<std::string>();
  if (json.contains("rows")) table.rows = json.at("rows").get<std::uint64_t>();
  table.pulled = json.at("pulled").get<std::uint64_t>();
  table.pushed = json.at("pushed").get<std::uint64_t>();
  return table;
}

ServerMetrics::Call call_from(const std::string& kind, const Json& json) {
  ServerMetrics::Call call;
  call.kind = kind;
  call.calls = json.at("calls").get<std::uint64_t>();
  call.errors = json.at("errors").get<std::uint64_t>();
  call.in_flight = json.at("in_flight").get<std::uint64_t>();
  call.bytes_in = json.at("bytes_in").get<std::uint64_t>();
  call.bytes_out = json.at("bytes_out").get<std::uint64_t>();
  call.seconds = json.at("seconds").get<double>();
  for (const Json& bucket : json.at("latency_ns"))
    call.latency_ns.emplace_back(bucket.at(0).get<std::uint64_t>(), bucket.at(1).get<std::uint64_t>());
  return call;
}

std::uint64_t since(std::uint64_t now, std::uint64_t before) noexcept {
  return now > before ? now - before : 0;
}

void subtract(ServerMetrics::Call& now, const ServerMetrics::Call& before) {
  now.calls = since(now.calls, before.calls);
  now.errors = since(now.errors, before.errors);
  now.bytes_in = since(now.bytes_in, before.bytes_in);
  now.bytes_out = since(now.bytes_out, before.bytes_out);
  now.seconds = std::max(0.0, now.seconds - before.seconds);
  const std::map<std::uint64_t, std::uint64_t> seen(before.latency_ns.begin(), before.latency_ns.end());
  for (auto& [value, many] : now.latency_ns) {
    if (const auto found = seen.find(value); found != seen.end()) many = since(many, found->second);
  }
  std::erase_if(now.latency_ns, [](const auto& bucket) { return bucket.second == 0; });
}

}  // namespace

std::optional<ServerMetrics> parse_server_metrics(std::string_view text) {
  try {
    const Json json = parse_json<Json>(text);
    ServerMetrics metrics;
    metrics.uptime_seconds = json.at("uptime_seconds").get<double>();
    for (const Json& table : json.at("tables")) metrics.tables.push_back(table_from(table));
    for (const auto& [kind, call] : json.at("calls").items()) metrics.calls.push_back(call_from(kind, call));
    if (json.contains("staleness"))
      metrics.staleness = {json.at("staleness").at("mean").get<double>(),
                           json.at("staleness").at("highest").get<std::uint64_t>()};
    return metrics;
  } catch (const Json::exception&) {
    return std::nullopt;  // of another version, or not ours
  }
}

std::string to_json(const ServerMetrics& metrics) {
  Json tables = Json::array(), calls = Json::object();
  for (const ServerMetrics::Table& table : metrics.tables) {
    Json json = {{"name", table.name}};
    if (table.rows) json["rows"] = *table.rows;
    json["pulled"] = table.pulled;
    json["pushed"] = table.pushed;
    tables.push_back(std::move(json));
  }
  for (const ServerMetrics::Call& call : metrics.calls) {
    calls[call.kind] = {{"calls", call.calls},          {"errors", call.errors},
                        {"in_flight", call.in_flight},  {"bytes_in", call.bytes_in},
                        {"bytes_out", call.bytes_out},  {"seconds", call.seconds},
                        {"latency_ns", call.latency_ns}};
  }
  Json json = {
      {"uptime_seconds", metrics.uptime_seconds}, {"tables", std::move(tables)}, {"calls", std::move(calls)}};
  if (metrics.staleness)
    json["staleness"] = {{"mean", metrics.staleness->mean}, {"highest", metrics.staleness->highest}};
  return json_text(json);
}

std::optional<ServerMetrics> read_server_metrics(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::nullopt;
  std::string text(kMaxBytes, '\0');
  const ssize_t size = ::read(file.value(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return parse_server_metrics(text);
}

ServerMetrics metrics_between(const ServerMetrics& before, ServerMetrics now) {
  if (now.uptime_seconds < before.uptime_seconds) return now;
  now.uptime_seconds -= before.uptime_seconds;
  for (std::size_t i = 0; i < std::min(now.tables.size(), before.tables.size()); ++i) {
    now.tables[i].pulled = since(now.tables[i].pulled, before.tables[i].pulled);
    now.tables[i].pushed = since(now.tables[i].pushed, before.tables[i].pushed);
  }
  for (ServerMetrics::Call& call : now.calls) {
    if (const auto* earlier = call_of(before, call.kind)) subtract(call, *earlier);
  }
  return now;
}

const ServerMetrics::Call* call_of(const ServerMetrics& metrics, std::string_view kind) noexcept {
  const auto found = std::find_if(metrics.calls.begin(), metrics.calls.end(),
                                  [&](const ServerMetrics::Call& call) { return call.kind == kind; });
  return found == metrics.calls.end() ? nullptr : &*found;
}

std::uint64_t latency_quantile(const ServerMetrics::Call& call, double q) noexcept {
  std::uint64_t total = 0, seen = 0;
  for (const auto& [value, many] : call.latency_ns) total += many;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(total)));
  for (const auto& [value, many] : call.latency_ns) {
    seen += many;
    if (seen >= std::max<std::uint64_t>(wanted, 1)) return value;
  }
  return 0;
}

}  // namespace fleetrun::launcher
