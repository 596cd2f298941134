#include "ps/tools/stat_table.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using fleetrun::ps::stat_table;
using fleetrun::tests::text_of;

namespace {

std::string server(int rank, int servers, double uptime, int rows, int pulls, const std::string& latency) {
  return R"({"schema":1,"server":)" + std::to_string(rank) + R"(,"servers":)" + std::to_string(servers) +
         R"(,"mode":"async","trainers":2,"uptime_seconds":)" + std::to_string(uptime) +
         R"(,"stale_requests":0,"tables":[{"id":0,"name":"emb","kind":"sparse","width":8,"rows":)" +
         std::to_string(rows) +
         R"(,"bytes":65536,"not_admitted":3,"cold_rows":500,"from_disk":20,"pulled":)" +
         std::to_string(10 * pulls) + R"(,"pushed":0}],"calls":{"pull":{"calls":)" + std::to_string(pulls) +
         R"(,"errors":0,"in_flight":1,"bytes_in":2000,"bytes_out":4000,"seconds":0.1,"p50_ns":1,"p99_ns":1,)"
         R"("highest_ns":9000,"latency_ns":)" +
         latency + "}}}";
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the table says what a server holds and has done since it began") {
  const std::string text = stat_table({server(0, 1, 10, 1500, 100, "[[1000,60],[9215,40]]")});
  CAPTURE(text);
  CHECK(has_line(text, "server 0 of 1: mode async, 2 trainers, up 10 s"));
  CHECK(has_line(text,
                 "  emb                  sparse        8      1.50k     65.5kB        1.00k      100/s       "
                 "     0        0/s"));
  CHECK(has_line(text,
                 "  pull                 100       10/s        0        1     200B/s     400B/s   1.00us   "
                 "9.00us   9.00us"));
  CHECK(
      has_line(text,
               "    3 pushes of keys that were not admitted, 500 rows on disk, 20 rows came back from disk, "
               "98.0 % hits in memory"));
  CHECK(text.find("skew") == std::string::npos);
}

TEST_CASE("with an earlier look the figures are those in between") {
  const std::vector<std::string> before{server(0, 1, 10, 1500, 100, "[[1000,60],[9215,40]]")};
  const std::string text = stat_table({server(0, 1, 12, 1500, 300, "[[1000,258],[9215,42]]")}, &before);
  CAPTURE(text);
  CHECK(text.find("pull                 200      100/s") != std::string::npos);
  CHECK(text.find("  1.00us   1.00us   9.00us\n") != std::string::npos);
}

TEST_CASE("a server that was started again in between counts from its beginning") {
  const std::vector<std::string> before{server(0, 1, 100, 1500, 1000, "[[1000,1000]]")};
  const std::string text = stat_table({server(0, 1, 2, 0, 10, "[[1000,10]]")}, &before);
  CHECK(text.find("pull                  10        5/s") != std::string::npos);
}

TEST_CASE("several servers have a skew: the fullest over the mean") {
  const std::string text =
      stat_table({server(0, 2, 10, 1500, 1, "[[1000,1]]"), server(1, 2, 10, 500, 1, "[[1000,1]]")});
  CHECK(has_line(text, "2 servers, 2.00k rows, skew 1.50 (the fullest server over the mean)"));
  CHECK(has_line(text, "server 0 has 50 % of the keys pulled and pushed (50 % each where none is hot)"));
}

TEST_CASE("the server with hot rows is the one that is asked for most keys, in between two looks") {
  const std::vector<std::string> before{server(0, 2, 10, 500, 900, "[]"), server(1, 2, 10, 500, 0, "[]")};
  const std::vector<std::string> now{server(0, 2, 12, 500, 910, "[]"), server(1, 2, 12, 500, 90, "[]")};
  CHECK(has_line(stat_table(now, &before),
                 "server 1 has 90 % of the keys pulled and pushed (50 % each where none is hot)"));
}

TEST_CASE("the process that serves is shown where the server says it") {
  std::string stat = server(0, 1, 10, 1500, 100, "[[1000,60]]");
  stat.insert(1, R"("host":"node-7","pid":4711,)");
  CHECK(
      has_line(stat_table({stat}), "server 0 of 1: mode async, 2 trainers, up 10 s, process 4711 on node-7"));
}

TEST_CASE("what is no figures of a server is refused") {
  CHECK(text_of([] { stat_table({"{}"}); }).starts_with("a server's metrics cannot be read"));
  CHECK(text_of([] { stat_table({"x"}); }).starts_with("a server's metrics cannot be read"));
}

TEST_CASE("staleness is told where it was measured") {
  std::string stat = server(0, 1, 10, 1, 1, "[[1000,1]]");
  stat.insert(1, R"("staleness":{"pushes":50,"mean":1.5,"highest":4},)");
  CHECK(stat_table({stat}).find(
            "up 10 s, pushes of others between a pull and its push: 1.50 on average, at most 4\n") !=
        std::string::npos);
}

TEST_CASE("who has a standby, and whose standby a server is, is told") {
  std::string one = server(0, 2, 10, 0, 0, "[]");
  one.insert(one.size() - 1,
             R"(,"standby":{"on":"server 1","follows":true},"holds":[)"
             R"({"server":1,"records":1200,"whole":true},{"server":3,"records":0,"whole":false}])");
  const std::string text = stat_table({one});
  CHECK(has_line(text, "  its standby on server 1 has all that it has answered"));
  CHECK(has_line(text, "  the standby of server 1, with 1.20k records of its log"));
  CHECK(has_line(text, "  the standby of server 3, without its state yet"));
}
