// A number that tells what an epoch is over (BatchSource::fingerprint()) apart from what others are over.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/content_digest.h"

namespace fleetrun::dataset {

class Fingerprint {
 public:
  Fingerprint& add(std::uint64_t number) noexcept {
    digest_.add(std::as_bytes(std::span(&number, 1)));
    return *this;
  }
  Fingerprint& add(std::string_view text) noexcept {
    add(text.size());
    digest_.add(std::as_bytes(std::span(text)));
    return *this;
  }
  Fingerprint& add(const std::vector<std::string>& texts) noexcept {
    add(texts.size());
    for (const std::string& text : texts) add(text);
    return *this;
  }
  /// How examples are cut into batches.
  Fingerprint& add_batches(std::uint64_t size, std::uint64_t readers, bool drop_last) noexcept {
    return add(size).add(readers).add(std::uint64_t{drop_last});
  }
  /// Never 0.
  std::uint64_t value() const noexcept { return digest_.value() | 1; }

 private:
  ContentDigest digest_;
};

}  // namespace fleetrun::dataset
