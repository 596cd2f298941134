// --bad_line: what a line that is not an example means.
#pragma once

#include <cstdint>

#include "runtime/base/argument_reader.h"

namespace fleetrun::dataset {

struct BadLineRule {
  bool is_first_fatal = false;  // fail
  std::uint64_t allowed = 0;    // skip:N

  /// Takes --bad_line=fail|skip:N; false for another word. Throws: Error(usage).
  bool take(ArgumentReader& words);
};

}  // namespace fleetrun::dataset
