// Bytes as hexadecimal digits: two lower-case ones for each byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fleetrun {

std::string hex(std::string_view bytes);
/// nullopt: `text` is not such digits.
std::optional<std::string> from_hex(std::string_view text);

}  // namespace fleetrun
