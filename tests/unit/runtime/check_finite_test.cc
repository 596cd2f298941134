#include "runtime/check_finite.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/errors.h"

using namespace fleetrun;
using namespace fleetrun::runtime;

TEST_CASE("a value that is no number is an error that names operator, variable, batch and thread") {
  engine::Tensor values, keys;
  values.resize(engine::DataType::float32, {3});
  keys.resize(engine::DataType::int64, {1});
  for (float& value : values.values<float>()) value = 1.0F;
  const auto check = [&] {
    check_finite(
        {.type = "log", .inputs = {}, .outputs = {"", "keys", "out"}, .attributes = {}},
        [&](const std::string& name) -> const engine::Tensor& { return name == "keys" ? keys : values; },
        {7, 2});
  };
  CHECK_NOTHROW(check());
  values.values<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  const Error error = tests::error_of(check);
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) == "log made NaN in 'out', in batch 7 of thread 2");
  CHECK(error.hint() ==
        "lower the learning rate, clip gradients, or look at that batch; without FLAGS_check_nan_inf "
        "training goes on");
  values.values<float>()[2] = -std::numeric_limits<float>::infinity();
  CHECK(std::string(tests::error_of(check).what()) ==
        "log made an infinity in 'out', in batch 7 of thread 2");
}
