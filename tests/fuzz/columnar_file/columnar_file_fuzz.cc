// Any bytes, as a columnar file: no crash, no more memory than the file is worth, nothing but an Error for
// what is damaged; what reads has whole batches.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; columnar_file_replay runs it over the corpus
// in every build. The last byte is not of the file: bit 0 puts the right digest of the footer into its end,
// where no mutation would find it, bit 1 leaves checksums out.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "dataset/columnar/columnar_dataset.h"
#include "dataset/columnar/format.h"
#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "columnar_file_fuzz: %s\n", what);
  std::abort();
}

void repair(std::vector<std::byte>& file) {
  if (file.size() < kColumnarHeadBytes + kColumnarEndBytes) return;
  std::byte* end = file.data() + file.size() - kColumnarEndBytes;
  std::uint64_t footer_bytes = 0;
  std::memcpy(&footer_bytes, end, sizeof footer_bytes);
  if (footer_bytes > file.size() - kColumnarHeadBytes - kColumnarEndBytes) return;
  ContentDigest digest;
  digest.add({end - footer_bytes, footer_bytes});
  const std::uint64_t value = digest.value();
  std::memcpy(end + sizeof footer_bytes, &value, sizeof value);
}

void check_batch(const std::vector<Slot>& slots, const Batch& batch) {
  check(batch.slots.size() == slots.size(), "a batch without a slot");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const SlotValues& values = batch.slots[i];
    const bool is_float = slots[i].type == SlotType::float32;
    const std::size_t count = is_float ? values.floats.size() : values.ints.size();
    check((is_float ? values.ints.size() : values.floats.size()) == 0, "values of another type");
    if (slots[i].dense) {
      check(count == batch.rows * static_cast<std::size_t>(slots[i].width), "a dense slot of another width");
      continue;
    }
    check(values.offsets.size() == batch.rows + 1 && values.offsets[0] == 0, "offsets of other rows");
    for (std::size_t row = 0; row < batch.rows; ++row)
      check(values.offsets[row] <= values.offsets[row + 1], "offsets that fall");
    check(values.offsets[batch.rows] == count, "offsets that do not end with the values");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const unsigned mode = data[size - 1];
  std::vector<std::byte> bytes(size - 1);
  if (size > 1) std::memcpy(bytes.data(), data, size - 1);
  if ((mode & 1) != 0) repair(bytes);
  const UniqueFd file(::memfd_create("columns", MFD_CLOEXEC));
  check(::write(file.value(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "no memory file");
  try {
    ColumnarDataset dataset({.slots = {},
                             .files = {"/proc/self/fd/" + std::to_string(file.value())},
                             .batch_size = 7,
                             .verify = (mode & 2) == 0});
    dataset.start(true);
    Batch batch;
    std::uint64_t rows = 0;
    while (dataset.next(0, batch)) {
      check_batch(dataset.slots(), batch);
      rows += batch.rows;
    }
    check(rows == dataset.rows(), "rows that were promised are not there");
  } catch (const Error&) {
  }
  return 0;
}
