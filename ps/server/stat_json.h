// A server's metrics as one line of JSON: what `fleetrun ps stat --json` prints, and what the launcher reads.
//
//   {"schema":1,"server":0,"servers":2,"mode":"async","trainers":2,"uptime_seconds":12.5,"stale_requests":0,
//    "tables":[{"id":0,"name":"emb","kind":"sparse","width":8,"rows":1000,"bytes":65536,"created":1000,
//                "erased":0,"not_admitted":0,"cold_rows":0,"from_disk":0,"pulled":5000,"pushed":4000}],
//    "calls":{"pull":{"calls":100,"errors":0,"in_flight":1,"bytes_in":80000,"bytes_out":320000,
//                     "seconds":0.25,
//                     "p50_ns":1900,"p99_ns":4100,"highest_ns":4096,"latency_ns":[[1919,60],[4223,40]]}}}
//
// "staleness":{"pushes":50,"mean":1.5,"highest":4}, where pushes were counted: pushes of other trainers that
// were applied between a thread's pull and its push (ps/sync/staleness.h).
//
// "waits":[{"trainer":0,"call":"barrier","seconds":61.5}], where trainers wait for others for a second or
// more: in a barrier, an all_reduce, the begin of an epoch, or the push of a step.
//
// "standby":{"on":"server 1","follows":true}, where the server has one: whether that has all it has answered.
// "holds":[{"server":0,"records":1200,"whole":true}]: whose standby it is, how many records of their logs it
// has taken in, and whether it could hand the state back now.
//
// "process":1, where servers move between processes: the rank of the one that serves it.
//
// rows: of this server, cold_rows of them on its disk; bytes: of memory; not_admitted: pushes of keys that
// got no row; from_disk: rows that came back from there; pulled and pushed: keys that requests brought (of a
// dense table: requests). calls: kinds that came at least once; calls counts those answered; latency_ns:
// {highest value in a bucket, how many}, rising, empty ones left out (ps/watch/histogram.h). A reader ignores
// what it does not know. Pure but for what it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ps/base/staleness_counts.h"
#include "ps/server/server.h"
#include "ps/sync/trainer_waits.h"
#include "ps/table/table_set.h"
#include "ps/watch/metrics.h"

namespace fleetrun::ps {

struct HeldStat {
  std::uint32_t server = 0;
  std::uint64_t records = 0;
  bool is_whole = false;
};

struct StatSources {
  const ServerOptions& options;
  const Metrics& metrics;
  const TableSet& tables;
  std::uint64_t stale_requests = 0;
  StalenessCounts staleness = {};
  std::vector<TrainerWait> waits = {};
  std::optional<bool> standby_follows = {};  // none: it has no standby
  std::vector<HeldStat> holds = {};
};

std::string stat_json(const StatSources& sources);

/// `text` as a JSON string, quotes included; bytes that are not UTF-8 become '?'.
std::string json_string(std::string_view text);

}  // namespace fleetrun::ps
