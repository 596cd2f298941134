// An amount of memory in a variable of the environment: bytes, or a number with K, M, G or T (1024s).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// "0", "65536", "512M", "1.5G"; nullopt for anything else and for a part of a byte.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

/// nullopt when `variable` is missing or empty. Throws: Error(config) for a value that is not an amount.
std::optional<std::uint64_t> memory_amount(const Environ& environ, const char* variable);

}  // namespace fleetrun::ps
