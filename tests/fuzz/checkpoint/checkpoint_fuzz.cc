// Any bytes, as the parts of a server's checkpoint that are read before the tables: no crash, no more memory
// than the bytes are worth, nothing but an Error; what is read is written again as it was.
//
// The first byte chooses: 0 what a server keeps of itself, 1 a manifest, 2 a row of Paddle's.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "ps/durable/checkpoint.h"
#include "ps/saving/manifest.h"
#include "ps/saving/paddle_row.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using namespace fleetrun::ps;

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "checkpoint_fuzz: %s\n", what);
  std::abort();
}

void read_state(std::span<const std::byte> bytes) {
  const std::vector<std::byte> given(bytes.begin(), bytes.end());
  const KeptState state = parse_kept_state(given);
  const std::vector<std::byte> written = to_bytes(state);
  if (to_bytes(parse_kept_state(written)) != written) broken("a state is not written as it is read");
}

/// A file of this process's, which is overwritten for each manifest.
const std::string& scratch_file() {
  static const std::string path = "/dev/shm/checkpoint_fuzz." + std::to_string(::getpid());
  static const int at_end = std::atexit([] { ::unlink(path.c_str()); });
  static_cast<void>(at_end);
  return path;
}

void read_manifest_of(std::span<const std::byte> bytes) {
  const UniqueFd file(::open(scratch_file().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (::write(file.value(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    broken("the scratch file cannot be written");
  read_manifest(scratch_file());
}

void read_row(std::string_view line) {
  TableConfig config;
  config.name = "emb";
  config.width = 3;
  config.accessor.kind = Accessor::Kind::ctr;
  static const PaddleRows rows(config);
  PaddleRows::Row row, again;
  rows.parse(line, row);
  std::string written;
  rows.append_line(row.key, row.floats.data(), written);
  written.pop_back();
  rows.parse(written, again);
  if (again.key != row.key || again.floats.size() != row.floats.size())
    broken("a row is not read as it is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    if (data[0] % 3 == 0) read_state(bytes);
    if (data[0] % 3 == 1) read_manifest_of(bytes);
    if (data[0] % 3 == 2) read_row({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error&) {
  }
  return 0;
}
