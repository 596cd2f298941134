// Steps of a beam search worked out by hand; a whole decoder beside Paddle's: tests/e2e/python/test_beams.py.

#include <cmath>
#include <memory>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Offsets = std::vector<std::size_t>;

/// beam_search over the beginnings of two sources: two rows, and one.
struct Search {
  Program program;
  Scope scope;
  Tensor pre_ids = ints({3, 1}, {5, 1, 7}), pre_scores = floats({3, 1}, {2, 3, 1}),
         groups = ints({2}, {1, 1});
  Tensor ids = ints({3, 2}, {4, 6, 8, 9, 1, 3}), scores = floats({3, 2}, {2.5, 2, 9, 9, 1, 0.5});
  std::map<std::string, Attribute> attributes{{"beam_size", std::int64_t{2}}, {"end_id", std::int64_t{1}}};

  Search() { pre_ids.offsets = {0, 2, 3}; }

  std::unique_ptr<Executor> run() {
    const std::map<std::string, const Tensor*> feed = {{"pre_ids", &pre_ids},
                                                       {"pre_scores", &pre_scores},
                                                       {"ids", &ids},
                                                       {"scores", &scores},
                                                       {"groups", &groups}};
    for (const auto& [name, value] : feed)
      add_data(program, name, value->type(), value->shape(), value->offsets.empty() ? 0 : 1);
    program.append({"beam_search",
                    {"pre_ids", "pre_scores", "ids", "scores", "groups"},
                    {"found", "totals", "parents", "sources"},
                    attributes});
    auto executor = std::make_unique<Executor>(program, scope);
    executor->run(feed);
    return executor;
  }
};

}  // namespace

TEST_CASE("a step of a beam search takes the best of each source, and what has ended goes on as it is") {
  Search search;
  const auto executor = search.run();
  // The second row has ended with 3, which is the best; of the first source's others 4 comes next.
  CHECK(ints_of(executor->tensor("found")) == std::vector<std::int64_t>{4, 1, 1, 3});
  CHECK(floats_of(executor->tensor("totals")) == std::vector<float>{2.5, 3, 1, 0.5});
  CHECK(executor->tensor("found").offsets == Offsets{0, 1, 2, 4});
  CHECK(executor->tensor("totals").offsets == Offsets{0, 1, 2, 4});
  CHECK(ints_of(executor->tensor("sources")) == std::vector<std::int64_t>{2, 1});
  const auto parents = executor->tensor("parents").values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(parents.begin(), parents.end()) == std::vector<std::int32_t>{0, 1, 2, 2});
}

TEST_CASE("a source whose beginnings have all ended has none any more") {
  Search search;
  search.pre_ids = ints({3, 1}, {1, 1, 7});
  search.pre_ids.offsets = {0, 2, 3};
  const auto executor = search.run();
  CHECK(ints_of(executor->tensor("found")) == std::vector<std::int64_t>{1, 3});
  CHECK(executor->tensor("found").offsets == Offsets{0, 0, 0, 2});
}

TEST_CASE("chances of one id are added to a beginning's score as logarithms") {
  Search search;
  search.attributes["is_accumulated"] = false;
  search.scores = floats({3, 2}, {0.5, 1, 1, 1, 1, 0.25});
  const auto executor = search.run();
  CHECK(ints_of(executor->tensor("found")) == std::vector<std::int64_t>{6, 1, 1, 3});
  CHECK(floats_of(executor->tensor("totals"))[0] == doctest::Approx(2));
  CHECK(floats_of(executor->tensor("totals"))[3] == doctest::Approx(1 - std::log(4.0)));
}

TEST_CASE("groups that are not those of the beginnings are refused") {
  Search search;
  search.groups = ints({2}, {1, 2});
  CHECK_THROWS_WITH_AS(search.run(), doctest::Contains("its groups have more sequences than there are"),
                       Error);
}
