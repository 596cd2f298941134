#include "launcher/status/server_metrics.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

namespace {

ServerMetrics metrics() {
  ServerMetrics out;
  out.uptime_seconds = 10;
  out.tables = {{"emb", 1000, 500, 400}, {"fc", std::nullopt, 10, 10}};
  out.calls = {{"pull", 100, 1, 2, 3000, 4000, 0.5, {{1000, 90}, {20000, 10}}}};
  return out;
}

}  // namespace

TEST_CASE("a server's figures are read back as they were written, and anything else is nothing") {
  CHECK(parse_server_metrics(to_json(metrics())) == metrics());
  ServerMetrics stale = metrics();
  stale.staleness = {1.5, 4};
  CHECK(parse_server_metrics(to_json(stale)) == stale);
  for (const char* text : {"", "{}", "[]", "{\"uptime_seconds\":1,\"tables\":[{}],\"calls\":{}}", "12"})
    CHECK_FALSE(parse_server_metrics(text));
  CHECK_FALSE(read_server_metrics("/nowhere/at.all"));
}

TEST_CASE("figures in between are differences, those of a server that was started again are its own") {
  ServerMetrics now = metrics();
  now.uptime_seconds = 12;
  now.tables[0].rows = 1100;
  now.tables[0].pulled = 700;
  now.calls[0].calls = 150;
  now.calls[0].latency_ns = {{1000, 90}, {20000, 60}};
  const ServerMetrics between = metrics_between(metrics(), now);
  CHECK(between.uptime_seconds == doctest::Approx(2));
  CHECK(between.tables[0].rows == 1100);
  CHECK(between.tables[0].pulled == 200);
  CHECK(between.tables[0].pushed == 0);
  REQUIRE(call_of(between, "pull") != nullptr);
  CHECK(call_of(between, "pull")->calls == 50);
  CHECK(latency_quantile(*call_of(between, "pull"), 0.01) == 20000);
  CHECK(call_of(between, "push") == nullptr);
  ServerMetrics young = metrics();
  young.uptime_seconds = 1;
  CHECK(metrics_between(metrics(), young) == young);
}

TEST_CASE("quantiles are those of the buckets") {
  const ServerMetrics::Call call = metrics().calls[0];
  CHECK(latency_quantile(call, 0.5) == 1000);
  CHECK(latency_quantile(call, 0.9) == 1000);
  CHECK(latency_quantile(call, 0.91) == 20000);
  CHECK(latency_quantile({}, 0.5) == 0);
}
