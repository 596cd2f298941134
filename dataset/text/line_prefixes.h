// What may stand before the slots of a line, each announced by a count of 1:
// an id, a content, a log key, in this order.
//
//   1 c6f2d3  1 hello_world  1 3000075240000000000000000000001f  1 1002 …
#pragma once

#include <string_view>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

/// Which of them the lines have.
struct LinePrefixes {
  bool id = false;
  bool content = false;
  bool log_key = false;

  bool any() const noexcept { return id || content || log_key; }
  bool operator==(const LinePrefixes&) const = default;
};

/// Reads the fields of a log key of at least 32 hexadecimal digits: cmatch [11, 14), rank [14, 16), search_id
/// [16, 32). False when it is not one; `key` is then as it was.
bool read_log_key(std::string_view token, LogKey& key) noexcept;

}  // namespace fleetrun::dataset
