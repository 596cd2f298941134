// What reading a columnar file costs beside parsing the text that it was made of: rows and bytes a second to
// batches of 1000, one reader, files in the page cache; without checksums; from a map of the file instead of
// reads (what dataset/columnar/columnar_file.h decided against); and what the machine's memory allows: memcpy
// of as many bytes as the batches have, and of the file's.
//
//   dataset_columnar_bench TEXT COLUMNS     both made by tests/bench/gen_multislot.py
//                                           and fleetrun data convert

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/columnar/columnar_dataset.h"
#include "dataset/columnar/columnar_file.h"
#include "dataset/queue/queue_dataset.h"
#include "runtime/base/crc32c.h"

using namespace fleetrun::dataset;

namespace {

constexpr int kRounds = 9;
constexpr std::size_t kBatch = 1000;

struct Pass {
  std::size_t rows = 0;
  std::size_t batch_bytes = 0;
};

Pass drain(BatchSource& source) {
  Pass pass;
  source.start(false);
  for (Batch batch; source.next(0, batch);) {
    pass.rows += batch.rows;
    for (const SlotValues& values : batch.slots)
      pass.batch_bytes += values.floats.size() * 4 + values.ints.size() * 8 + values.offsets.size() * 8;
  }
  return pass;
}

/// The median of some rounds, with the slowest and the fastest.
double report(const char* name, double rows, double bytes, const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[kRounds / 2];
  std::printf("%-44s %7.2f M rows/s (%.2f .. %.2f), %6.2f GB/s of its bytes\n", name, rows / median / 1e6,
              rows / seconds.back() / 1e6, rows / seconds.front() / 1e6, bytes / median / 1e9);
  return median;
}

std::size_t size_of(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

/// Checksums of a file's bytes by parts of `part` bytes: where they are mapped, or after each part was read.
void checksums_mapped(const std::string& file, std::size_t size, std::size_t part, std::uint32_t& sum) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  const std::span bytes(static_cast<const std::byte*>(map), size);
  for (std::size_t at = 0; at < size; at += part)
    sum ^= fleetrun::crc32c(bytes.subspan(at, std::min(part, size - at)));
  ::munmap(map, size);
  ::close(fd);
}
void checksums_read(const std::string& file, std::size_t size, std::size_t part, std::uint32_t& sum) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<std::byte> bytes(part);
  for (std::size_t at = 0; at < size; at += part) {
    const ssize_t count = ::pread(fd, bytes.data(), part, static_cast<off_t>(at));
    if (count > 0) sum ^= fleetrun::crc32c(std::span(bytes).first(static_cast<std::size_t>(count)));
  }
  ::close(fd);
}

void copy_in_parts(std::size_t size) {
  constexpr std::size_t kPart = std::size_t{64} << 20;
  static const std::vector<char> from(kPart, 'x');
  static std::vector<char> to(kPart);
  for (std::size_t done = 0; done < size; done += kPart)
    std::memcpy(to.data(), from.data(), std::min(kPart, size - done));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: dataset_columnar_bench TEXT COLUMNS\n");
    return 2;
  }
  const std::string text = argv[1], columns = argv[2];
  const auto columnar = [&](bool verify) {
    return ColumnarDataset({.slots = {}, .files = {columns}, .batch_size = kBatch, .verify = verify});
  };
  ColumnarDataset checked = columnar(true), unchecked = columnar(false);
  QueueDataset parsed({.slots = checked.slots(), .batch_size = kBatch, .files = {text}});
  const Pass pass = drain(checked);
  const auto rows = static_cast<double>(pass.rows);
  const auto text_bytes = static_cast<double>(size_of(text)),
             file_bytes = static_cast<double>(size_of(columns));
  std::printf("%zu rows, text %.0f MB, columns %.0f MB, batches %.0f MB\n", pass.rows, text_bytes / 1e6,
              file_bytes / 1e6, static_cast<double>(pass.batch_bytes) / 1e6);
  const double parsing = report("QueueDataset, the text", rows, text_bytes, [&] { drain(parsed); });
  const double reading = report("ColumnarDataset", rows, file_bytes, [&] { drain(checked); });
  report("ColumnarDataset, no checksums", rows, file_bytes, [&] { drain(unchecked); });
  std::uint32_t sum = 0;
  const std::size_t section = 32768;
  report("checksums alone, sections mapped", rows, file_bytes,
         [&] { checksums_mapped(columns, size_of(columns), section, sum); });
  report("checksums alone, sections read", rows, file_bytes,
         [&] { checksums_read(columns, size_of(columns), section, sum); });
  report("memcpy of the file's bytes", rows, file_bytes, [&] { copy_in_parts(size_of(columns)); });
  const double copying = report("memcpy of the batches' bytes", rows, static_cast<double>(pass.batch_bytes),
                                [&] { copy_in_parts(pass.batch_bytes); });
  std::printf(
      "columns are %.1f times as fast as the text, and take %.2f times the memcpy of their batches (%u)\n",
      parsing / reading, reading / copying, sum & 1);
}
