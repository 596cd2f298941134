// The timelines that FLEETRUN_TRACE asks for (fleetrun-environment(7)).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/environ.h"
#include "runtime/base/timeline.h"

namespace fleetrun::python {

/// A new one in the folder, or null where none is asked for. `stem`: "pass" gives trainer-0.pass-1.json.
inline std::shared_ptr<Timeline> timeline_of(const Environ& environ, const std::string& role,
                                             std::int64_t rank, const std::string& stem) {
  const std::string folder = environ.value_or("FLEETRUN_TRACE", "");
  if (folder.empty()) return nullptr;
  const std::string number = std::to_string(rank);
  return Timeline::create(folder, role + "-" + number + "." + stem, role + " " + number);
}

}  // namespace fleetrun::python
