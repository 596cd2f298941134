// How deep foreign JSON may be nested: what is made of it is copied, compared and written by recursion.
#pragma once

#include <string_view>

namespace fleetrun {

constexpr int kDeepestJson = 100;

/// Whether lists and objects in `json`, which need not be well formed, are nested deeper than that.
bool nests_too_deep(std::string_view json) noexcept;

}  // namespace fleetrun
