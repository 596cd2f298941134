// "async" and "sync" as ps::Mode.
#pragma once

#include <string_view>

#include "ps/table_config.h"

namespace fleetrun::python {

inline ps::Mode parse_mode(std::string_view mode) noexcept {
  return mode == "sync" ? ps::Mode::sync : ps::Mode::async;
}

}  // namespace fleetrun::python
