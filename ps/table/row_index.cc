#include "ps/table/row_index.h"

#include <algorithm>

namespace fleetrun::ps {

void RowIndex::add(std::uint64_t hash, std::uint32_t row) noexcept {
  std::size_t at = home(hash);
  for (;; at = after(at)) {
    Matches free(buckets_[at], 0);
    if (free.any()) {
      const std::size_t place = free.next();
      buckets_[at].rows[place] = row;
      buckets_[at].tags[place] = tag_of(hash);
      ++size_;
      return;
    }
    ++buckets_[at].passed;
  }
}

void RowIndex::remove(std::uint64_t hash, std::uint32_t row) noexcept {
  for (std::size_t at = home(hash);; at = after(at)) {
    Bucket& bucket = buckets_[at];
    for (Matches matches(bucket, tag_of(hash)); matches.any();) {
      const std::size_t place = matches.next();
      if (bucket.rows[place] != row || bucket.tags[place] == 0) continue;
      bucket.tags[place] = 0;
      --size_;
      return;
    }
    --bucket.passed;
  }
}

void RowIndex::grow() {
  std::vector<Bucket> larger(buckets_.size() + std::max<std::size_t>(2, buckets_.size() / 2), Bucket{});
  buckets_.swap(larger);
  size_ = 0;
}

}  // namespace fleetrun::ps
