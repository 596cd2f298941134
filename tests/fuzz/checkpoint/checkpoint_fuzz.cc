// Any bytes, as the files that servers read beside their tables: no crash, no more memory than the bytes are
// worth, nothing but an Error; what is read is written again as it was.
//
// The first byte chooses: 0 what a server keeps of itself, 1 a manifest, 2 a row of Paddle's, 3 a text of
// Paddle's, plain or gzip, 4 a note of a move.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "ps/durable/checkpoint.h"
#include "ps/durable/move_note.h"
#include "ps/saving/gzip_text.h"
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

const std::string kScratch = "/dev/shm";

/// A file of this process's there, which is overwritten for each input.
const std::string& scratch_name() {
  static const std::string name = "checkpoint_fuzz." + std::to_string(::getpid());
  static const int at_end = std::atexit([] { ::unlink((kScratch + "/" + name).c_str()); });
  static_cast<void>(at_end);
  return name;
}

/// The path of that file, with these bytes in it.
std::string scratch_file(std::span<const std::byte> bytes) {
  const std::string path = kScratch + "/" + scratch_name();
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (::write(file.value(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    broken("the scratch file cannot be written");
  return path;
}

void read_manifest_of(std::span<const std::byte> bytes) {
  read_manifest(scratch_file(bytes));
}

/// The lines of a file, each with its end; those beyond a megabyte are read and left out.
std::string lines_of(const std::string& path) {
  std::string lines;
  read_lines(path, [&lines](std::string_view line, std::size_t) {
    if (lines.size() + line.size() < (1 << 20)) lines.append(line).push_back('\n');
  });
  return lines;
}

void read_text(std::span<const std::byte> bytes) {
  const std::string path = scratch_file(bytes), lines = lines_of(path);
  write_gzip(path, lines);
  if (lines_of(path) != lines) broken("a text is not read as it is written");
}

void read_note_of(std::span<const std::byte> bytes) {
  constexpr std::uint32_t server = 7;
  const MoveNotes notes(kScratch, server);
  const std::string path = scratch_file(bytes), what = scratch_name();
  std::rename(path.c_str(), (path + "-" + std::to_string(server)).c_str());
  if (const auto note = notes.read(what.c_str(), "run")) {
    notes.write(what.c_str(), *note);
    if (notes.read(what.c_str(), "run") != note) broken("a note is not read as it is written");
  }
  notes.remove(what.c_str());
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
    if (data[0] % 5 == 0) read_state(bytes);
    if (data[0] % 5 == 1) read_manifest_of(bytes);
    if (data[0] % 5 == 2) read_row({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (data[0] % 5 == 3) read_text(bytes);
    if (data[0] % 5 == 4) read_note_of(bytes);
  } catch (const Error&) {
  }
  return 0;
}
