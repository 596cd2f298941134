// A disk that is full, one that fails, and one that gives back other bytes. RocksDB's writes go through the
// write() of this program, which answers as told.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "ps/disk/rocksdb_rows.h"
#include "ps/table/memory_budget.h"
#include "ps/table/sparse_cut.h"
#include "ps/table/sparse_table.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

constexpr std::size_t kWidth = 64;
constexpr std::uint64_t kBatch = 256;

// The errno that writes end with; 0: they are done.
std::atomic<int>& write_error() {
  static std::atomic<int> error = 0;
  return error;
}

// Writes fail, as long as it lives.
class Trouble {
 public:
  explicit Trouble(int error) { write_error() = error; }
  ~Trouble() { write_error() = 0; }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;
};

std::vector<std::uint64_t> keys_from(std::uint64_t first) {
  std::vector<std::uint64_t> keys(kBatch);
  for (std::uint64_t i = 0; i < kBatch; ++i) keys[i] = first + i;
  return keys;
}

struct Table {
  TempDir directory;
  MemoryBudget budget{kBatch * kWidth};  // a quarter of a batch
  SparseTable table{sparse_table(0, "t", kWidth)};

  Table() {
    table.attach(open_rocksdb_store({directory.path().string(), "test", std::uint64_t{1} << 20})
                     ->open(table.config(), table.row_floats()),
                 budget);
  }

  // As a server does it: room first, then the rows, then the change.
  void push(std::uint64_t first) {
    const std::vector<std::uint64_t> keys = keys_from(first);
    const std::vector<float> ones(keys.size() * kWidth, 1.0f);
    budget.make_room();
    table.warm(keys);
    const MemoryBudget::Stay staying = budget.stay();
    table.push(keys, ones.data());
  }
  std::uint64_t rows_with(float value) {
    std::uint64_t rows = 0;
    const auto cut = table.begin_cut();
    ColdBlock block;
    for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
      while (cut->read(shard, block)) {
        for (std::size_t i = 0; i < block.keys.size(); ++i) rows += block.rows[i * kWidth] == value ? 1 : 0;
      }
    }
    return rows;
  }
};

}  // namespace

extern "C" ssize_t write(int file, const void* bytes, size_t size) {
  if (const int error = write_error(); error != 0 && file > 2) {
    errno = error;
    return -1;
  }
  return ::syscall(SYS_write, file, bytes, size);
}

TEST_CASE("a full disk is told with its path, loses no row, and training goes on once there is space") {
  Table on_disk;
  std::uint64_t pushed = 0;
  {
    const Trouble full(ENOSPC);
    const fleetrun::Error error = error_of([&] {
      for (; pushed < 400 * kBatch; pushed += kBatch) on_disk.push(pushed);
    });
    CHECK(error.kind() == fleetrun::ErrorKind::host);
    CHECK(std::string(error.what())
              .find("cold rows in " + on_disk.directory.path().string() + "/fleetrun-rows-") == 0);
    CHECK(error.hint().starts_with("make space there, or name another directory with FLEETRUN_PS_DISK"));
    CHECK(on_disk.table.rows() == pushed);
    CHECK(on_disk.rows_with(1.0f) == pushed);
    CHECK(error_of([&] { on_disk.push(pushed); }).kind() == fleetrun::ErrorKind::host);
  }
  for (std::uint64_t first = 0; first < pushed + kBatch; first += kBatch) on_disk.push(first);
  CHECK(on_disk.table.rows() == pushed + kBatch);
  CHECK(on_disk.rows_with(2.0f) == pushed);
  CHECK(on_disk.rows_with(1.0f) == kBatch);
}

TEST_CASE("a disk that fails for good is told each time, and what it has can be saved") {
  Table on_disk;
  std::uint64_t pushed = 0;
  const auto push_all = [&] {
    for (; pushed < 400 * kBatch; pushed += kBatch) on_disk.push(pushed);
  };
  {
    const Trouble failing(EIO);
    CHECK(std::string(error_of(push_all).what()).find("Input/output error") != std::string::npos);
  }
  CHECK(error_of(push_all).kind() == fleetrun::ErrorKind::host);
  CHECK(on_disk.rows_with(1.0f) == pushed);
}

TEST_CASE("bytes that changed on disk are found, not trained on") {
  Table on_disk;
  for (std::uint64_t first = 0; first < 100 * kBatch; first += kBatch) on_disk.push(first);
  int changed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(on_disk.directory.path())) {
    if (entry.path().extension() != ".sst") continue;
    // A compaction may remove the file meanwhile.
    std::error_code gone;
    const std::uint64_t size = entry.file_size(gone);
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t at = 2000; !gone && file && at + 4000 < size; at += 4000) {
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 1));
      ++changed;
    }
  }
  REQUIRE(changed > 0);
  const fleetrun::Error error = error_of([&] {
    for (std::uint64_t first = 0; first < 100 * kBatch; first += kBatch) on_disk.push(first);
  });
  CHECK(error.kind() == fleetrun::ErrorKind::host);
  CHECK(std::string(error.what()).find("Corruption") != std::string::npos);
}
