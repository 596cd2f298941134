#include "launcher/host/program_digest.h"

#include <array>
#include <fstream>
#include <span>

#include "runtime/base/content_digest.h"

namespace fleetrun::launcher {

std::uint64_t digest_of(const std::vector<Program>& programs) {
  ContentDigest digest;
  std::array<char, 1 << 16> block;
  for (const Program& program : programs) {
    std::ifstream file(program.file, std::ios::binary);
    if (program.file.empty() || !file) return 0;
    do {
      file.read(block.data(), block.size());
      digest.add(std::as_bytes(std::span(block)).first(static_cast<std::size_t>(file.gcount())));
    } while (file);
    if (!file.eof()) return 0;  // a folder
  }
  return digest.value();
}

}  // namespace fleetrun::launcher
