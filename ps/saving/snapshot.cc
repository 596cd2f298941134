#include "ps/saving/snapshot.h"

#include <filesystem>
#include <functional>

#include "ps/saving/paddle_checkpoint.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

LoadedTables load_by(const std::string& manifest_path, const std::string& directory,
                     const std::function<LoadedTables(const Manifest&)>& load) {
  if (const auto manifest = read_manifest(manifest_path)) return load(*manifest);
  throw Error(ErrorKind::data,
              manifest_path + ": cannot be opened; there is no complete save in " + directory,
              "name the directory that the tables were saved to");
}

bool holds_tables(const std::string& directory) {
  std::error_code ignored;
  return std::filesystem::exists(manifest_path(directory), ignored) ||
         std::filesystem::exists(previous_manifest_path(directory), ignored) ||
         is_paddle_checkpoint(directory);
}

}  // namespace

std::string directory_of_tables(const std::string& directory) {
  const std::string below = directory + kTablesBelowModel;
  return !holds_tables(directory) && holds_tables(below) ? below : directory;
}

LoadedTables load_tables(const std::string& given, ServerPlace place, const std::vector<TableConfig>& tables,
                         std::optional<std::uint64_t> wanted, const FetchFile& fetch) {
  const std::string directory = directory_of_tables(given);
  const auto load = [&](const Manifest& manifest) {
    if (wanted && manifest.save != *wanted) {
      throw Error(ErrorKind::data, directory + ": save " + std::to_string(*wanted) +
                                       " no longer exists; save " + std::to_string(manifest.save) + " is");
    }
    return load_parts(directory, manifest, place, tables, fetch);
  };
  if (!wanted && is_paddle_checkpoint(directory)) return load_paddle_checkpoint(directory, place, tables);
  try {
    return load_by(manifest_path(directory), directory, load);
  } catch (const Error& error) {
    // What disagrees with the program disagrees in the previous save too; what is damaged need not be.
    if (error.kind() == ErrorKind::config) throw;
    try {
      LoadedTables out = load_by(previous_manifest_path(directory), directory, load);
      out.fallen_back = error.what();
      return out;
    } catch (const Error&) {
      // The first error is about the save that was asked for.
    }
    throw;
  }
}

}  // namespace fleetrun::ps
