#include "runtime/engine/passes/reduce_schedule.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/replicas/replicas.h"
#include "tests/support/ctr_model.h"
#include "tests/support/errors.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

Program program() {
  CtrShape shape;
  shape.slots = 2;
  shape.width = 3;
  shape.dense = 2;
  shape.rows = 40;
  shape.layers = {8, 6};
  return CtrModel(shape).main;
}

const std::vector<ReduceBucket> kLayers = {
    {"out.w@GRAD", "out.b@GRAD"}, {"fc1.w@GRAD", "fc1.b@GRAD"}, {"fc0.w@GRAD", "fc0.b@GRAD"}};

std::size_t index_of(const Program& program, const std::string& type, const std::string& name) {
  for (std::size_t i = 0; i < program.operators().size(); ++i) {
    const Operator& op = program.operators()[i];
    const auto names = [&](const std::vector<std::string>& all) {
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    if (op.type == type && (names(op.inputs) || names(op.outputs))) return i;
  }
  FAIL("no " << type << " of " << name);
  return 0;
}

}  // namespace

TEST_CASE("a bucket starts behind the operator that finishes it, and is waited for before the first update") {
  const Program before = program();
  const Program after = schedule_reduction(before, kLayers);
  for (const ReduceBucket& bucket : kLayers) {
    const std::size_t start = index_of(after, "reduce_start", bucket[0]);
    const std::size_t wait = index_of(after, "reduce_wait", bucket[0]);
    CHECK(after.operators()[start].inputs == bucket);
    CHECK(after.operators()[wait].outputs == bucket);
    CHECK(start == index_of(after, "linear_grad", bucket[0]) + 1);
    std::size_t first = after.operators().size();
    for (const std::string& name : bucket) first = std::min(first, index_of(after, "sgd", name));
    CHECK(wait < first);
  }
  // The last layer's bucket travels while those before it are differentiated.
  CHECK(index_of(after, "reduce_start", "out.w@GRAD") < index_of(after, "linear_grad", "fc1.w@GRAD"));
  CHECK(index_of(after, "reduce_start", "fc1.w@GRAD") < index_of(after, "linear_grad", "fc0.w@GRAD"));
}

TEST_CASE("what is in no bucket, as rows, comes before its update") {
  const Program after = schedule_reduction(program(), kLayers);
  const std::size_t rest = index_of(after, "reduce_rest", "emb@GRAD");
  CHECK(after.operators()[rest].outputs == std::vector<std::string>{"emb@GRAD"});
  CHECK(rest > index_of(after, "row_gradient", "emb@GRAD"));
  const Program none = schedule_reduction(program(), {});
  CHECK(none.operators().size() == program().operators().size() + 1);
}

TEST_CASE("the schedule changes nothing but the exchange") {
  const Program before = program();
  Program after = schedule_reduction(before, kLayers);
  CHECK(to_string(after).find("reduce_start") != std::string::npos);
  std::erase_if(after.operators(), [](const Operator& op) { return op.type.starts_with("reduce_"); });
  CHECK(after == before);
}

TEST_CASE("a program that does not train has no exchange") {
  const Program test = clone_for_test(program());
  CHECK(schedule_reduction(test, {}) == test);
}

TEST_CASE("a bucket with something else than gradients is refused") {
  const std::vector<ReduceBucket> buckets = {{"out.w@GRAD", "loss"}};
  const Error error = error_of([&] { schedule_reduction(program(), buckets); });
  CHECK(std::string(error.what()) == "bucket 0 has 'loss', which is not a gradient of the program");
}
