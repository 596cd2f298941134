// Bytes as text: base64 of RFC 4648, padded, without line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fleetrun {

std::string base64(std::string_view bytes);
/// nullopt: `text` is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fleetrun
