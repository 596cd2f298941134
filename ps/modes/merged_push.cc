#include "ps/modes/merged_push.h"

#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

namespace {

void add_dense(const DensePush& dense, std::vector<float>& sum) {
  if (sum.empty()) return sum.assign(dense.gradients.begin(), dense.gradients.end());
  if (sum.size() != dense.gradients.size()) {
    throw Error(ErrorKind::config, "table " + std::to_string(dense.table) + ": one thread pushes " +
                                       std::to_string(sum.size()) + " gradients, another one " +
                                       std::to_string(dense.gradients.size()));
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += dense.gradients[i];
}

/// Appends the counts of `keys` positions after `before` others; `usual` where a push leaves them out.
void add_counts(std::span<const float> counts, float usual, std::size_t before, std::size_t keys,
                std::vector<float>& to) {
  if (counts.empty() && to.empty()) return;
  to.resize(before, usual);
  if (counts.empty()) {
    to.resize(before + keys, usual);
  } else {
    to.insert(to.end(), counts.begin(), counts.end());
  }
}

void scale_all(std::vector<float>& values, float scale) noexcept {
  if (scale == 1.0f) return;
  for (float& value : values) value *= scale;
}

}  // namespace

MergedPush::MergedPush(std::span<const Push* const> pushes, float scale) {
  for (const Push* push : pushes) {
    for (const SparsePush& sparse : push->sparse) {
      Rows& rows = sparse_[sparse.table];
      add_counts(sparse.shows, 1.0f, rows.keys.size(), sparse.keys.size(), rows.shows);
      add_counts(sparse.clicks, 0.0f, rows.keys.size(), sparse.keys.size(), rows.clicks);
      rows.slot = sparse.slot;
      rows.keys.insert(rows.keys.end(), sparse.keys.begin(), sparse.keys.end());
      rows.gradients.insert(rows.gradients.end(), sparse.gradients.begin(), sparse.gradients.end());
    }
    for (const DensePush& dense : push->dense) add_dense(dense, dense_[dense.table]);
  }
  if (!pushes.empty()) push_.thread = pushes.front()->thread;
  for (const Push* push : pushes) push_.threads.push_back(push->thread);
  for (auto& [table, rows] : sparse_) {
    scale_all(rows.gradients, scale);
    push_.sparse.push_back({.table = table,
                            .keys = rows.keys,
                            .gradients = rows.gradients,
                            .shows = rows.shows,
                            .clicks = rows.clicks,
                            .slot = rows.slot});
  }
  for (auto& [table, gradients] : dense_) {
    scale_all(gradients, scale);
    push_.dense.push_back({.table = table, .gradients = gradients});
  }
}

}  // namespace fleetrun::ps
