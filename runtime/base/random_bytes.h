// Random bytes and numbers, from the kernel's generator. Every function may be called from any thread.
#pragma once

#include <concepts>
#include <span>
#include <string>

namespace fleetrun {

/// Throws: Error(host) where the kernel refuses.
void fill_with_random_bytes(std::span<unsigned char> bytes);
std::string random_bytes(std::size_t count);

/// Any value of the type, each as likely as the others. Throws: as fill_with_random_bytes().
template <std::unsigned_integral Number>
Number random_number() {
  Number number = 0;
  fill_with_random_bytes({reinterpret_cast<unsigned char*>(&number), sizeof number});
  return number;
}

}  // namespace fleetrun
