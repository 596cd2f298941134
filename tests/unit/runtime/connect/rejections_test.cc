#include "runtime/connect/rejections.h"

#include <doctest/doctest.h>

using fleetrun::Rejections;

TEST_CASE("every refusal is counted, whoever comes and however often") {
  Rejections rejections("server 0");
  for (int i = 0; i < 1000; ++i) rejections.note("10.0.0.1", "it has another secret");
  for (int i = 0; i < 3000; ++i) rejections.note("10.0.1." + std::to_string(i), "");
  CHECK(rejections.count() == 4000);
}
