#include "ps/tools/stat_table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "ps/watch/histogram.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNumber = 11;

std::string shown(double value, const char* format) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// "950", "12.3k", "4.56M"
std::string short_count(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return shown(value, unit == 0     ? "%.0f"
                      : value < 10  ? "%.2f"
                      : value < 100 ? "%.1f"
                                    : "%.0f") +
         kUnits[unit];
}

/// "850ns", "12.3us", "4.56ms", "1.20s"
std::string short_time(std::uint64_t nanoseconds) {
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  auto value = static_cast<double>(nanoseconds);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return shown(value, unit == 0     ? "%.0f"
                      : value < 10  ? "%.2f"
                      : value < 100 ? "%.1f"
                                    : "%.0f") +
         kUnits[unit];
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}
std::string right(const std::string& text, std::size_t width = kNumber) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::uint64_t number_at(const Json& object, const char* name) {
  return object.contains(name) ? object.at(name).get<std::uint64_t>() : 0;
}

std::uint64_t since(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

HistogramCounts times_of(const Json& call) {
  HistogramCounts counts;
  for (const Json& bucket : call.at("latency_ns"))
    counts.buckets.emplace_back(bucket.at(0).get<std::uint64_t>(), bucket.at(1).get<std::uint64_t>());
  counts.highest = number_at(call, "highest_ns");
  return counts;
}

HistogramCounts difference(HistogramCounts now, const HistogramCounts& before) {
  std::map<std::uint64_t, std::uint64_t> seen(before.buckets.begin(), before.buckets.end());
  for (auto& [value, many] : now.buckets) many = since(many, seen[value]);
  std::erase_if(now.buckets, [](const auto& bucket) { return bucket.second == 0; });
  return now;
}

struct Server {
  Json now;
  Json before = nullptr;  // null: none

  double seconds() const {
    const double uptime = now.at("uptime_seconds").get<double>();
    return before.is_null() ? uptime : uptime - before.at("uptime_seconds").get<double>();
  }
  /// How often a second.
  double rate(std::uint64_t count) const {
    return seconds() > 0 ? static_cast<double>(count) / seconds() : 0;
  }
};

const Json& member(const Json& object, const std::string& name) {
  static const Json kNothing = Json::object();
  return object.is_object() && object.contains(name) ? object.at(name) : kNothing;
}

std::string call_line(const Server& server, const std::string& name, const Json& call) {
  const Json& earlier = server.before.is_null() ? Json::object() : member(server.before.at("calls"), name);
  HistogramCounts times = times_of(call);
  if (earlier.contains("latency_ns")) times = difference(std::move(times), times_of(earlier));
  const auto counted = [&](const char* which) {
    return since(number_at(call, which), number_at(earlier, which));
  };
  const bool any = times.count() > 0;
  return "  " + left(printable(name), 13) + right(short_count(static_cast<double>(counted("calls")))) +
         right(short_count(server.rate(counted("calls"))) + "/s") +
         right(short_count(static_cast<double>(counted("errors"))), 9) +
         right(std::to_string(number_at(call, "in_flight")), 9) +
         right(short_count(server.rate(counted("bytes_in"))) + "B/s") +
         right(short_count(server.rate(counted("bytes_out"))) + "B/s") +
         right(any ? short_time(times.quantile(0.5)) : "-", 9) +
         right(any ? short_time(times.quantile(0.99)) : "-", 9) +
         right(any ? short_time(times.highest) : "-", 9) + "\n";
}

std::string calls_table(const Server& server) {
  std::string text = "  " + left("calls", 13) + right("answered") + right("rate") + right("refused", 9) +
                     right("now", 9) + right("in") + right("out") + right("p50", 9) + right("p99", 9) +
                     right("longest", 9) + "\n";
  for (const auto& [name, call] : server.now.at("calls").items()) text += call_line(server, name, call);
  return text;
}

const Json& same_table(const Server& server, std::size_t index) {
  static const Json kNothing = Json::object();
  if (server.before.is_null() || index >= server.before.at("tables").size()) return kNothing;
  return server.before.at("tables").at(index);
}

/// What not every table has: keys that were not admitted, rows that expired, rows on disk.
std::string remarks(const Json& table, const Json& earlier) {
  const auto counted = [&](const char* which) {
    return since(number_at(table, which), number_at(earlier, which));
  };
  std::string text;
  const auto remark = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + short_count(static_cast<double>(count)) + " " + what;
  };
  remark(counted("not_admitted"), "pushes of keys that were not admitted");
  remark(counted("erased"), "rows erased");
  remark(number_at(table, "cold_rows"), "rows on disk");
  remark(counted("from_disk"), "rows came back from disk");
  const auto keys = static_cast<double>(counted("pulled") + counted("pushed"));
  if (number_at(table, "cold_rows") + number_at(table, "from_disk") > 0 && keys > 0)
    text += ", " + shown(100 - 100 * static_cast<double>(counted("from_disk")) / keys, "%.1f") +
            " % hits in memory";
  return text.empty() ? "" : "    " + text + "\n";
}

std::string tables_table(const Server& server) {
  std::string text = "  " + left("table", 21) + left("kind", 8) + right("width", 7) + right("rows") +
                     right("memory") + right("keys pulled", 13) + right("rate") + right("keys pushed", 13) +
                     right("rate") + "\n";
  const Json& tables = server.now.at("tables");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Json& table = tables.at(i);
    const Json& earlier = same_table(server, i);
    const auto counted = [&](const char* which) {
      return since(number_at(table, which), number_at(earlier, which));
    };
    const auto count_and_rate = [&](const char* which) {
      return right(short_count(static_cast<double>(counted(which))), 13) +
             right(short_count(server.rate(counted(which))) + "/s");
    };
    text += "  " + left(printable(table.at("name").get<std::string>()), 20) + " " +
            left(printable(table.at("kind").get<std::string>()), 8) +
            right(std::to_string(number_at(table, "width")), 7) +
            right(table.contains("rows") ? short_count(static_cast<double>(number_at(table, "rows"))) : "-") +
            right(table.contains("bytes") ? short_count(static_cast<double>(number_at(table, "bytes"))) + "B"
                                          : "-") +
            count_and_rate("pulled") + count_and_rate("pushed") + "\n" + remarks(table, earlier);
  }
  return text;
}

std::uint64_t rows_of(const Json& stat) {
  std::uint64_t rows = 0;
  for (const Json& table : stat.at("tables")) rows += number_at(table, "rows");
  return rows;
}

/// The fullest server over the mean.
std::string skew_line(const std::vector<Server>& servers) {
  std::uint64_t total = 0, max = 0;
  for (const Server& server : servers) {
    const std::uint64_t rows = rows_of(server.now);
    total += rows;
    max = std::max(max, rows);
  }
  std::string text =
      std::to_string(servers.size()) + " servers, " + short_count(static_cast<double>(total)) + " rows";
  if (total > 0)
    text += ", skew " +
            shown(static_cast<double>(max) * static_cast<double>(servers.size()) / static_cast<double>(total),
                  "%.2f") +
            " (the fullest server over the mean)";
  return text + "\n";
}

std::uint64_t keys_of(const Json& stat) {
  std::uint64_t keys = 0;
  for (const Json& table : stat.at("tables")) keys += number_at(table, "pulled") + number_at(table, "pushed");
  return keys;
}

/// Which server is asked for most keys: hot rows are where a server has more than its share.
std::string load_line(const std::vector<Server>& servers) {
  std::uint64_t total = 0, max = 0, busiest = 0;
  for (const Server& server : servers) {
    const std::uint64_t before = server.before.is_null() ? 0 : keys_of(server.before);
    const std::uint64_t keys = since(keys_of(server.now), before);
    total += keys;
    if (keys > max) busiest = number_at(server.now, "server");
    max = std::max(max, keys);
  }
  if (total == 0) return "";
  const auto percent = [](double share) { return shown(100 * share, "%.0f") + " %"; };
  return "server " + std::to_string(busiest) + " has " +
         percent(static_cast<double>(max) / static_cast<double>(total)) + " of the keys pulled and pushed (" +
         percent(1 / static_cast<double>(servers.size())) + " each where none is hot)\n";
}

std::string heading(const Server& server) {
  const double uptime = server.now.at("uptime_seconds").get<double>();
  std::string text = "server " + std::to_string(number_at(server.now, "server")) + " of " +
                     std::to_string(number_at(server.now, "servers")) + ": mode " +
                     server.now.at("mode").get<std::string>() + ", " +
                     std::to_string(number_at(server.now, "trainers")) + " trainers, up " +
                     shown(uptime, "%.0f") + " s";
  if (server.now.contains("host"))
    text += ", process " + std::to_string(number_at(server.now, "pid")) + " on " +
            printable(server.now.at("host").get<std::string>());
  if (const std::uint64_t stale = number_at(server.now, "stale_requests"); stale > 0)
    text += ", " + std::to_string(stale) + " stale requests refused";
  if (server.now.contains("staleness")) {
    const Json& staleness = server.now.at("staleness");
    text += ", pushes of others between a pull and its push: " +
            shown(staleness.at("mean").get<double>(), "%.2f") + " on average, at most " +
            std::to_string(number_at(staleness, "highest"));
  }
  if (server.now.contains("waits")) {
    for (const Json& wait : server.now.at("waits"))
      text += "\n  trainer " + std::to_string(number_at(wait, "trainer")) + " waits for others in " +
              wait.at("call").get<std::string>() + ", for " +
              shown(wait.at("seconds").get<double>(), "%.0f") + " s";
  }
  if (server.now.contains("standby")) {
    const Json& standby = server.now.at("standby");
    text += "\n  its standby on " + standby.at("on").get<std::string>() +
            (standby.at("follows").get<bool>() ? " has all that it has answered" : " does not follow it yet");
  }
  if (server.now.contains("holds")) {
    for (const Json& held : server.now.at("holds"))
      text += "\n  the standby of server " + std::to_string(number_at(held, "server")) +
              (held.at("whole").get<bool>()
                   ? ", with " + short_count(static_cast<double>(number_at(held, "records"))) +
                         " records of its log"
                   : ", without its state yet");
  }
  return text + "\n";
}

}  // namespace

std::string stat_table(const std::vector<std::string>& now, const std::vector<std::string>* before) {
  try {
    std::vector<Server> servers;
    for (std::size_t i = 0; i < now.size(); ++i) {
      Server server{parse_json<Json>(now[i])};
      if (before && i < before->size()) server.before = parse_json<Json>((*before)[i]);
      // One that was started again counts from the beginning.
      if (!server.before.is_null() && server.seconds() <= 0) server.before = nullptr;
      servers.push_back(std::move(server));
    }
    std::string text;
    for (const Server& server : servers) text += heading(server) + tables_table(server) + calls_table(server);
    if (servers.size() > 1) text += skew_line(servers) + load_line(servers);
    return text;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, std::string("a server's metrics cannot be read: ") + error.what(),
                "use the fleetrun that runs the job");
  }
}

}  // namespace fleetrun::ps
