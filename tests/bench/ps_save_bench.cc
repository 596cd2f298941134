// How fast a server's tables are saved and loaded, beside the rate at which the same disk takes the same
// bytes written plainly (one file, 1 MiB at a time, and an fsync). One line per measurement: the median of
// its repetitions, and the slowest and fastest in brackets.
//
//   ps_save_bench [DIRECTORY] [MILLIONS OF ROWS]     default: /var/tmp 5
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ps/saving/part_writer.h"
#include "ps/saving/snapshot.h"
#include "runtime/base/mix.h"

namespace {

using namespace fleetrun::ps;
using Clock = std::chrono::steady_clock;

constexpr int kRepetitions = 5;

double seconds_of(const auto& action) {
  const auto before = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - before).count();
}

void print(const char* what, std::vector<double> seconds, double bytes) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-44s %8.0f MB/s  (%.0f .. %.0f)\n", what, bytes / seconds[seconds.size() / 2] / 1e6,
              bytes / seconds.back() / 1e6, bytes / seconds.front() / 1e6);
}

std::shared_ptr<TableSet> make_tables(const std::vector<TableConfig>& configs, std::uint64_t rows) {
  auto set = std::make_shared<TableSet>(configs, ServerPlace{});
  constexpr std::uint64_t kBatch = 26000;
  std::vector<std::uint64_t> keys(kBatch);
  const std::vector<float> ones(kBatch * configs[0].width, 1.0f);
  for (std::uint64_t done = 0; done < rows; done += kBatch) {
    for (std::uint64_t i = 0; i < kBatch; ++i) keys[i] = mix(done + i);
    set->sparse(0).push(keys, ones.data());
  }
  return set;
}

double write_plainly(const std::string& path, std::uint64_t bytes) {
  const std::vector<char> block(std::size_t{1} << 20, 'x');
  ::unlink(path.c_str());
  return seconds_of([&] {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    for (std::uint64_t done = 0; done < bytes; done += block.size()) {
      if (::write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size())) std::abort();
    }
    ::fsync(file);
    ::close(file);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = std::string(argc > 1 ? argv[1] : "/var/tmp") + "/ps_save_bench";
  const std::uint64_t rows = 1000000 * std::strtoull(argc > 2 ? argv[2] : "5", nullptr, 10);
  TableConfig config;
  config.name = "rows";
  config.kind = TableConfig::Kind::sparse;
  config.width = 10;
  config.rule.kind = UpdateRule::Kind::adagrad;
  const std::vector<TableConfig> configs{config};
  const auto set = make_tables(configs, rows);
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::vector<double> plain;
  std::vector<double> saves;
  std::vector<double> loads;
  std::uint64_t bytes = 0;
  for (std::uint64_t save = 1; save <= kRepetitions; ++save) {
    Manifest manifest{save, SaveMode::all, 0, {}, {}};
    saves.push_back(seconds_of([&] {
      const TableCut cut(set, configs);
      PartWriter writer({directory, save}, {});
      manifest.parts = {writer.write(configs, cut)};
      commit_manifest(directory, manifest, 0);
    }));
    bytes = 0;
    for (const SavedPiece& piece : manifest.parts[0]) bytes += piece.bytes;
    plain.push_back(write_plainly(directory + "/plain", bytes));
    loads.push_back(seconds_of([&] { load_tables(directory, {}, configs); }));
  }
  std::printf("%llu rows of width 10 with adagrad, %.0f MB in a save\n",
              static_cast<unsigned long long>(rows), static_cast<double>(bytes) / 1e6);
  print("written plainly, and synced", plain, static_cast<double>(bytes));
  print("saved: cut, checksums, pieces, syncs", saves, static_cast<double>(bytes));
  print("loaded from the page cache, checked", loads, static_cast<double>(bytes));
  std::filesystem::remove_all(directory);
}
