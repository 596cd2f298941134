// Means of gradients of ranks that are threads.

#include "runtime/trainer/rank_mean.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"
#include "tests/support/pooled_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

/// Calls `rank_of(rank, communicator)` on a thread for each rank.
template <class Rank>
void on_ranks(int ranks, const Rank& rank_of) {
  const auto communicators = collective::make_thread_communicators("means", ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { rank_of(rank, *communicators[static_cast<std::size_t>(rank)]); });
  }
}

StepGradient dense(const std::string& parameter, Tensor& values, std::size_t last_writer = 0) {
  StepGradient gradient;
  gradient.parameter = parameter;
  gradient.name = parameter + "@GRAD";
  gradient.count = values.size();
  gradient.last_writer = last_writer;
  gradient.values = &values;
  return gradient;
}

}  // namespace

TEST_CASE("sums become means over all batches, also with ranks that have none") {
  std::vector<std::vector<float>> means(3);
  std::vector<std::vector<std::int64_t>> keys(3);
  std::vector<std::vector<float>> rows(3);
  std::array<bool, 3> ended{};
  on_ranks(3, [&](int rank, collective::Communicator& communicator) {
    // Rank r has r batches: 0 + 1 + 2.
    const auto r = static_cast<std::size_t>(rank);
    const auto number = static_cast<float>(rank);
    Tensor values = floats({2}, {number * 3.0f, number * 6.0f});
    std::vector<std::int64_t> own_keys(r, rank);
    Tensor row_keys = ints({rank}, own_keys);
    Tensor row_values = floats({rank, 2}, std::vector<float>(2 * r, 3.0f));
    StepGradient sparse = dense("emb", row_values, 1);
    sparse.keys = &row_keys;
    sparse.keys_name = "emb@GRAD@KEYS";
    RankMean mean(std::vector<StepGradient>{dense("w", values), sparse}, {&communicator}, {});
    CHECK(mean.finish_sums(r, 2));
    means[r] = floats_of(values);
    keys[r] = ints_of(row_keys);
    rows[r] = floats_of(row_values);
    ended[r] = !mean.finish_sums(0, 2);
  });
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(means[r] == std::vector<float>{3.0f, 6.0f});
    CHECK(keys[r] == std::vector<std::int64_t>{1, 2, 2});
    CHECK(rows[r] == std::vector<float>(6, 1.0f));
    CHECK(ended[r]);
  }
}

TEST_CASE("as float16 gradients are rounded once, and sums that would overflow are not lost") {
  on_ranks(2, [&](int rank, collective::Communicator& communicator) {
    Tensor values = floats({3}, {1.0f + 0x1p-12f, 65504.0f * 4.0f, static_cast<float>(rank)});
    RankMean mean(std::vector<StepGradient>{dense("w", values)}, {&communicator}, {.rule = {}, .half = true});
    CHECK(mean.finish_sums(4, 4));
    CHECK(floats_of(values)[0] == doctest::Approx(0.25).epsilon(1e-3));
    CHECK(floats_of(values)[1] == 65504.0f);
    CHECK(floats_of(values)[2] == doctest::Approx(0.125).epsilon(1e-3));
    Tensor exact = floats({2}, {1.0f + 0x1p-12f, static_cast<float>(rank)});
    RankMean plain(std::vector<StepGradient>{dense("w", exact)}, {&communicator}, {.rule = {}, .half = true});
    plain.start(0);
    plain.finish(0);
    CHECK(floats_of(exact) == std::vector<float>{1.0f, 0.5f});
  });
}

TEST_CASE("compression sends the largest values and keeps the others for later") {
  on_ranks(2, [&](int rank, collective::Communicator& communicator) {
    Tensor values(DataType::float32, {4});
    Tensor velocity = floats({4}, {9.0f, 9.0f, 9.0f, 9.0f});
    const RankMeanOptions options = {
        .rule = {},
        .half = false,
        .compression =
            CompressionRule{.begin_step = 1, .ramp_steps = 1, .sparsity = {0.75}, .min_values = 4}};
    RankMean mean(std::vector<StepGradient>{dense("w", values)}, {&communicator}, options,
                  {{"w", {0.5, &velocity}}});
    CHECK(mean.buckets() == 0);
    const auto step = [&](std::vector<float> gradient) {
      std::ranges::copy(gradient, values.values<float>().begin());
      mean.finish_rest();
      return floats_of(values);
    };
    // Whole before begin_step, the optimizer's momentum as it is.
    CHECK(step({static_cast<float>(rank), 2.0f, 3.0f, 4.0f}) == std::vector<float>{0.5f, 2.0f, 3.0f, 4.0f});
    CHECK(floats_of(velocity)[0] == 9.0f);
    // One value of four from each rank: rank 0 sends place 0, rank 1 place 3.
    const std::vector<float> own =
        rank == 0 ? std::vector<float>{8.0f, 1.0f, 2.0f, 0.0f} : std::vector<float>{0.0f, 1.0f, 2.0f, -8.0f};
    CHECK(step(own) == std::vector<float>{4.0f, 0.0f, 0.0f, -4.0f});
    CHECK(floats_of(velocity) == std::vector<float>(4, 0.0f));
    // Place 2 has waited with momentum 0.5: u = 0.5 * 2 + 0, v = 2 + 1.
    CHECK(step({0.0f, 0.0f, 0.0f, 0.0f}) == std::vector<float>{0.0f, 0.0f, 3.0f, 0.0f});
  });
}

TEST_CASE("the share that compression keeps back goes through its list") {
  const CompressionRule rule = {.begin_step = 2, .ramp_steps = 4, .sparsity = {0.5, 0.9}};
  const std::vector<double> expected = {0.5, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9};
  for (std::size_t step = 0; step < expected.size(); ++step) CHECK(rule.sparsity_in(step) == expected[step]);
}

TEST_CASE("compression is for SGD and Momentum") {
  for (const auto kind :
       {OptimizerConfig::Kind::sgd, OptimizerConfig::Kind::momentum, OptimizerConfig::Kind::adam}) {
    PooledModel model(Lookups::embedding);
    Scope scope;
    minimize(model.main, model.startup, "loss", {.kind = kind, .momentum = 0.25});
    Executor(model.startup, scope).run({});
    if (kind == OptimizerConfig::Kind::adam) {
      try {
        momentums_of(model.main, scope);
        FAIL("not refused");
      } catch (const Error& error) {
        CHECK(std::string(error.what()) == "deep gradient compression with adam: it is for SGD and Momentum");
        CHECK(error.hint() == "use one of these, or leave DistributedStrategy.dgc at False");
      }
      continue;
    }
    const auto momentums = momentums_of(model.main, scope);
    REQUIRE(momentums.size() == 2);
    const bool has_velocity = kind == OptimizerConfig::Kind::momentum;
    CHECK(momentums.at("w").factor == (has_velocity ? 0.25 : 0.0));
    CHECK(momentums.at("w").velocity == (has_velocity ? scope.find("w_velocity_0") : nullptr));
  }
}
