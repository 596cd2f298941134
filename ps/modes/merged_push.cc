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

void scale_all(std::vector<float>& values, float scale) noexcept {
  if (scale == 1.0f) return;
  for (float& value : values) value *= scale;
}

}  // namespace

MergedPush::MergedPush(std::span<const Push* const> pushes, float scale) {
  for (const Push* push : pushes) {
    for (const SparsePush& sparse : push->sparse) {
      Rows& rows = sparse_[sparse.table];
      rows.keys.insert(rows.keys.end(), sparse.keys.begin(), sparse.keys.end());
      rows.gradients.insert(rows.gradients.end(), sparse.gradients.begin(), sparse.gradients.end());
    }
    for (const DensePush& dense : push->dense) add_dense(dense, dense_[dense.table]);
  }
  if (!pushes.empty()) push_.thread = pushes.front()->thread;
  for (auto& [table, rows] : sparse_) {
    scale_all(rows.gradients, scale);
    push_.sparse.push_back({.table = table, .keys = rows.keys, .gradients = rows.gradients});
  }
  for (auto& [table, gradients] : dense_) {
    scale_all(gradients, scale);
    push_.dense.push_back({.table = table, .gradients = gradients});
  }
}

}  // namespace fleetrun::ps
