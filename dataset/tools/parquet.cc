#include "dataset/tools/parquet.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "dataset/pipes/byte_source.h"
#include "dataset/tools/input.h"
#include "dataset/tools/slot_list.h"

namespace fleetrun::dataset {
namespace {

// The interpreter beside this program, for which the package was installed; else that of PATH.
std::string interpreter() {
  std::error_code none;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "python3";
  return std::filesystem::exists(beside, none) ? beside.string() : "python3";
}

// What a module of the package prints, with `file` as its standard input.
std::string run_module(const std::string& file, const std::string& module,
                       const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{interpreter(), "-m", module};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto source =
      open_byte_source({.file = file, .pipe = {.argv = argv}, .environment = own_environment()});
  std::string text;
  std::array<char, 4096> room;
  while (const std::size_t bytes = source->read(room)) text.append(room.data(), bytes);
  return text;
}

}  // namespace

bool is_parquet(const std::string& file) noexcept {
  return file.ends_with(kParquetSuffix);
}

std::vector<std::string> parquet_text_command(const std::vector<Slot>& slots) {
  std::vector<std::string> argv{interpreter(), "-m", "fleetrun._parquet"};
  for (const Slot& slot : slots) {
    argv.push_back(slot.name + (slot.type == SlotType::int64 ? ":int64" : ":float32"));
  }
  return argv;
}

std::vector<Slot> parquet_slots(const std::string& file) {
  return slots_from_json(run_module(file, "fleetrun._parquet", {"--slots"}), "the columns of " + file);
}

void write_parquet(const std::string& columns, const std::string& to) {
  run_module(columns, "fleetrun.columns", {columns, to});
}

}  // namespace fleetrun::dataset
