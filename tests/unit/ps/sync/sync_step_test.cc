#include "ps/sync/sync_step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::text_of;

namespace {

struct Push {
  std::vector<std::uint64_t> keys;
  std::vector<float> gradients;
  std::vector<float> dense;
};

std::vector<Contribution> contributions(const std::vector<Push>& pushes) {
  std::vector<Contribution> step;
  for (const Push& push : pushes) {
    auto request = std::make_unique<wire::PushRequest>();
    request->sections = {{{0, 1, push.keys.size()}}, {{1, 0, push.dense.size()}}};
    request->keys.emplace_back(push.keys);
    request->gradients.emplace_back(push.gradients);
    request->dense.emplace_back(push.dense);
    step.push_back({{static_cast<std::uint32_t>(step.size()), 0}, std::move(request), {}});
  }
  return step;
}

}  // namespace

TEST_CASE("gradients are summed in order, divided by the pushes, and applied once") {
  TableSet tables({sparse_table(0, "emb", 1, UpdateRule::Kind::adagrad), dense_table(1, "fc", 1)}, {});
  tables.set_dense({1, 0, 1}, std::vector<float>{10.0f});
  // 1e8 + 1 + -1e8 in float32 is 0 in this order and 1 in another.
  const std::vector<Push> pushes{
      {{5, 6}, {1e8f, 3.0f}, {1.0f}}, {{5}, {1.0f}, {2.0f}}, {{7, 5}, {6.0f, -1e8f}, {6.0f}}};
  apply_averaged(contributions(pushes), tables);
  const std::vector<std::uint64_t> keys{5, 6, 7};
  std::vector<float> rows(3);
  tables.sparse(0).pull(keys, rows.data());
  // adagrad with lr 0.5: any single gradient moves by 0.5; no gradient by 0.
  CHECK(rows[0] == 0.0f);
  CHECK(rows[1] == doctest::Approx(-0.5));
  CHECK(rows[2] == doctest::Approx(-0.5));
  CHECK(tables.dense(1).contents().values == std::vector<float>{13.0f});
}

TEST_CASE("sums that overflow change nothing") {
  TableSet tables({sparse_table(0, "emb", 1), dense_table(1, "fc", 1)}, {});
  tables.set_dense({1, 0, 1}, std::vector<float>{10.0f});
  const float max = std::numeric_limits<float>::max();
  CHECK(text_of([&] {
          apply_averaged(contributions({{{5}, {1.0f}, {max}}, {{5}, {1.0f}, {max}}}), tables);
        }) == "table 'fc': the gradients of a step add up to infinity");
  CHECK(tables.sparse(0).rows() == 0);
  CHECK(tables.dense(1).contents().values == std::vector<float>{10.0f});
}

TEST_CASE("the mean is clipped, and not what each has sent") {
  TableConfig rows = sparse_table(0, "emb", 1);
  TableConfig fc = dense_table(1, "fc", 2);
  fc.min_block = 2;
  // Means: 1.5 of key 5, -3 of key 6, and 2, 2.
  const std::vector<Push> pushes{{{5, 6}, {1.0f, -6.0f}, {4.0f, 0.0f}}, {{5}, {2.0f}, {0.0f, 4.0f}}};
  const auto moved = [&](const Clip& of_rows, const Clip& of_fc, ServerPlace place = {}) {
    rows.clip = of_rows;
    fc.clip = of_fc;
    TableSet tables({rows, fc}, place);
    tables.set_dense({1, 0, 2}, std::vector<float>(2));
    apply_averaged(contributions(pushes), tables);
    std::vector<float> out(2);
    tables.sparse(0).pull(std::vector<std::uint64_t>{5, 6}, out.data());
    const std::vector<float> dense = tables.dense(1).contents().values;
    out.insert(out.end(), dense.begin(), dense.end());
    return out;
  };
  using enum Clip::Kind;
  CHECK(moved({}, {}) == std::vector<float>{1.5f, -3.0f, 2.0f, 2.0f});
  CHECK(moved({value, -1.0f, 1.0f}, {}) == std::vector<float>{1.0f, -1.0f, 2.0f, 2.0f});
  const float of_norm = 1.0f / std::sqrt(8.0f);
  CHECK(moved({}, {norm, 0.0f, 1.0f})[2] == doctest::Approx(2.0f * of_norm));
  CHECK(moved({norm, 0.0f, 100.0f}, {norm, 0.0f, 100.0f}) == moved({}, {}));
  const float of_all = 1.0f / std::sqrt(1.5f * 1.5f + 9.0f + 8.0f);
  const Clip global{global_norm, 0.0f, 1.0f};
  const std::vector<float> all = moved(global, global);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == doctest::Approx(moved({}, {})[i] * of_all));
  CHECK(text_of([&] {
          moved(global, global, {1, 2});
        }) == "no push of the step says what norm its gradients have on all servers");
}
