// What a parameter server says of itself: a line of JSON in a file that it replaces once a second, named to
// it in FLEETRUN_SERVER_FIGURES. The launcher reads it when somebody asks,
// and knows nothing else of parameter servers.
//
//   {"uptime_seconds":12.5,
//    "tables":[{"name":"emb","rows":1000,"pulled":5000,"pushed":4000}],
//    "calls":{"pull":{"calls":100,"errors":0,"in_flight":1,"bytes_in":80000,"bytes_out":320000,
//                     "seconds":0.25,
//                     "latency_ns":[[1919,60],[4223,40]]}},
//    "staleness":{"mean":1.5,"highest":4}}
//
// rows is missing for dense tables, staleness where nobody pushed; latency_ns is {highest value in a bucket,
// how many calls}. What else is there is ignored. Pure, but for read_server_metrics().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun::launcher {

struct ServerMetrics {
  struct Table {
    std::string name;
    std::optional<std::uint64_t> rows;
    std::uint64_t pulled = 0, pushed = 0;  // keys
    bool operator==(const Table&) const = default;
  };
  struct Call {
    std::string kind;  // "pull"
    std::uint64_t calls = 0, errors = 0, in_flight = 0, bytes_in = 0, bytes_out = 0;
    double seconds = 0;                                               // of all together
    std::vector<std::pair<std::uint64_t, std::uint64_t>> latency_ns;  // rising
    bool operator==(const Call&) const = default;
  };
  /// Pushes of other trainers that were applied between a pull and its push.
  struct Staleness {
    double mean = 0;
    std::uint64_t highest = 0;
    bool operator==(const Staleness&) const = default;
  };
  double uptime_seconds = 0;
  std::vector<Table> tables;
  std::vector<Call> calls;
  std::optional<Staleness> staleness = {};  // where it was measured
  bool operator==(const ServerMetrics&) const = default;
};

/// nullopt for anything else.
std::optional<ServerMetrics> parse_server_metrics(std::string_view text);

/// The same JSON again.
std::string to_json(const ServerMetrics& metrics);

/// What the file at `path` says; nullopt when there is none, or it says nothing that is understood.
std::optional<ServerMetrics> read_server_metrics(const std::string& path);

/// What `now` has more than `before`: counts, bytes, times. Tables and calls in flight are those of `now`;
/// where the server was started again in between everything is.
ServerMetrics metrics_between(const ServerMetrics& before, ServerMetrics now);

/// The call of that kind; nullptr: there was none.
const ServerMetrics::Call* call_of(const ServerMetrics& metrics, std::string_view kind) noexcept;

/// The nanoseconds that a share `q` of the calls was not above; 0 without calls.
std::uint64_t latency_quantile(const ServerMetrics::Call& call, double q) noexcept;

}  // namespace fleetrun::launcher
