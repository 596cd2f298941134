// An Error for another thread.
#pragma once

#include <string>

#include "runtime/base/error.h"

namespace fleetrun {

/// Copies of a std::exception share one text, whose references libstdc++ counts where a race detector cannot
/// see it; this one shares nothing.
inline Error separate_copy(const Error& error) {
  Error copy(error.kind(), std::string(error.what()), error.hint());
  for (const std::string& context : error.context()) copy.while_doing(context);
  return copy;
}

}  // namespace fleetrun
