#include "ps/client/error_feedback.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ps/base/row_copy.h"
#include "runtime/base/mix.h"

namespace fleetrun::ps {

namespace {

std::size_t place_of(std::uint64_t key, std::size_t places) {
  return static_cast<std::size_t>(mix(key) & (places - 1));
}

}  // namespace

// Room for `more` keys without crowding, if the memory allows it.
ErrorFeedback::Rests& ErrorFeedback::rests_of(std::uint32_t table, std::size_t width, std::size_t more) {
  Rests& out = sparse_[table];
  const std::size_t max = std::bit_floor(bytes_ / (width * sizeof(float) + sizeof(std::uint64_t) + 1) + 1);
  const std::size_t wanted = std::min(max, std::bit_ceil(4 * (out.count + more)));
  if (wanted <= out.keys.size()) return out;
  Rests larger{std::vector<std::uint64_t>(wanted), std::vector<std::uint8_t>(wanted),
               std::vector<float>(wanted * width), 0};
  for (std::size_t i = 0; i < out.keys.size(); ++i) {
    if (out.used[i] != 0) keep(larger, out.keys[i], width, out.rests.data() + i * width);
  }
  out = std::move(larger);
  return out;
}

// False: another key had the place.
bool ErrorFeedback::keep(Rests& rests, std::uint64_t key, std::size_t width, const float* rest) const {
  const std::size_t place = place_of(key, rests.keys.size());
  const bool was_free = rests.used[place] == 0;
  const bool displaces = !was_free && rests.keys[place] != key;
  rests.count += was_free ? 1 : 0;
  rests.used[place] = 1;
  rests.keys[place] = key;
  copy_row(rests.rests.data() + place * width, rest, width);
  return !displaces;
}

void ErrorFeedback::encode_rows(Encoding encoding, std::uint32_t table, std::span<const std::uint64_t> keys,
                                std::span<float> gradients, std::byte* out) {
  if (keys.empty()) return;
  const std::size_t width = gradients.size() / keys.size();
  const std::lock_guard lock(mutex_);
  Rests& rests = rests_of(table, width, keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t place = place_of(keys[i], rests.keys.size());
    if (rests.used[place] == 0 || rests.keys[place] != keys[i]) continue;
    const float* rest = rests.rests.data() + place * width;
    for (std::size_t c = 0; c < width; ++c) gradients[i * width + c] += rest[c];
  }
  encode(encoding, gradients, width, out);
  std::vector<float> rest(gradients.size());
  decode(encoding, out, width, rest);
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = gradients[i] - rest[i];
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!keep(rests, keys[i], width, rest.data() + i * width)) ++displaced_;
  }
}

void ErrorFeedback::encode_dense(Encoding encoding, std::uint32_t table, std::uint32_t server,
                                 std::span<float> gradients, std::byte* out) {
  const std::lock_guard lock(mutex_);
  std::vector<float>& rest = dense_[{table, server}];
  rest.resize(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += rest[i];
  encode(encoding, gradients, kDenseRow, out);
  decode(encoding, out, kDenseRow, rest);
  for (std::size_t i = 0; i < gradients.size(); ++i) rest[i] = gradients[i] - rest[i];
}

std::uint64_t ErrorFeedback::displaced() const {
  const std::lock_guard lock(mutex_);
  return displaced_;
}

}  // namespace fleetrun::ps
