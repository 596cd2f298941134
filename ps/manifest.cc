// The manifest's text:
//
//   fleetrun tables 1
//   save 0123456789abcdef
//   part 0 bytes 4096 checksum 89abcdef
//   part 1 bytes 4112 checksum 01234567
//   end 76543210                                  crc32c of all lines before
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>

#include "ps/block_file.h"
#include "ps/crc32c.h"
#include "ps/snapshot.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr const char* kFirstLine = "fleetrun tables 1\n";
constexpr std::size_t kPartNameLength = 27;  // part-, 16 hex digits, -, 5 digits

std::string hex(std::uint64_t value, int digits) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%0*" PRIx64, digits, value);
  return text.data();
}

std::string to_text(const Manifest& manifest) {
  std::string text = kFirstLine;
  text += "save " + hex(manifest.save, 16) + "\n";
  for (std::size_t rank = 0; rank < manifest.parts.size(); ++rank) {
    const SavedPart& part = manifest.parts[rank];
    text += "part " + std::to_string(rank) + " bytes " + std::to_string(part.bytes) + " checksum " +
            hex(part.checksum, 8) + "\n";
  }
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return text + "end " + hex(crc32c(bytes), 8) + "\n";
}

// What the text says, without asking whether it is written as to_text() writes it.
Manifest parse(const std::string& text) {
  Manifest out;
  std::istringstream lines(text);
  lines.imbue(std::locale::classic());
  std::string line;
  while (std::getline(lines, line)) {
    std::array<char, 8> rest{};
    unsigned rank = 0;
    SavedPart part;
    if (std::sscanf(line.c_str(), "part %u bytes %" SCNu64 " checksum %" SCNx32 "%1s", &rank, &part.bytes,
                    &part.checksum, rest.data()) == 3) {
      out.parts.push_back(part);
    }
    std::sscanf(line.c_str(), "save %" SCNx64, &out.save);
  }
  return out;
}

std::string path_in(const std::string& directory) {
  return directory + "/manifest";
}

bool is_part_name(const std::string& name) {
  return (name.size() == kPartNameLength || name.size() == kPartNameLength + 4) &&
         name.starts_with("part-") && name[21] == '-' &&
         (name.size() == kPartNameLength || name.ends_with(".tmp"));
}

}  // namespace

void write_manifest(const std::string& directory, const Manifest& manifest, ServerPlace place) {
  // The name carries the rank: servers that share the directory write the same manifest at the same time.
  const std::string temporary = path_in(directory) + "-" + std::to_string(place.rank) + ".tmp";
  write_file_atomically(path_in(directory), temporary, to_text(manifest));
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = path_in(directory);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::data, path + ": cannot be opened; there is no complete save in " + directory,
                "name the directory that the tables were saved to");
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Manifest manifest = parse(text);
  // Written again it must give the same bytes, its checksum among them.
  if (manifest.parts.empty() || to_text(manifest) != text) {
    throw Error(ErrorKind::data, path + ": the manifest is damaged", "use another save");
  }
  return manifest;
}

std::uint64_t next_save(const std::string& directory) {
  std::uint64_t last = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t save = 0;
    if (is_part_name(name) && std::sscanf(name.c_str(), "part-%16" SCNx64, &save) == 1)
      last = std::max(last, save);
  }
  return last + 1;
}

void remove_other_parts(const std::string& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(path_in(directory), ignored)) return;
  const std::string current = "part-" + hex(read_manifest(directory).save, 16);
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_part_name(name) && !name.starts_with(current)) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace fleetrun::ps
