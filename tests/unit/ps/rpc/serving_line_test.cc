#include "ps/rpc/serving_line.h"

#include <doctest/doctest.h>

#include <ctime>

TEST_CASE("the line has the documented shape") {
  std::tm local{};
  local.tm_year = 122;
  local.tm_mon = 4;
  local.tm_mday = 18;
  local.tm_hour = 11;
  local.tm_min = 27;
  local.tm_sec = 20;
  local.tm_isdst = -1;
  const auto now =
      std::chrono::system_clock::from_time_t(std::mktime(&local)) + std::chrono::microseconds(730531);
  const auto where = std::source_location::current();
  CHECK(fleetrun::ps::serving_line(now, 177420, 0, "127.0.0.1:40001", where) ==
        "I0518 11:27:20.730531 177420 serving_line_test.cc:" + std::to_string(where.line()) +
            "] running server with rank id: 0, endpoint: 127.0.0.1:40001");
}
