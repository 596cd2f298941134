// The batch that a process could not train on, kept for `fleetrun report` and run again by `fleetrun replay`.
//
//   file := "fleetrun batch 1\n" | kind | error | content    (runtime/base/codec)
//
// fleetrun names the file in FLEETRUN_FAILED_BATCH; without the variable nothing is kept. The last failure
// counts: it is what the process ended with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fleetrun {

struct FailedBatch {
  enum class Kind : std::uint8_t {
    step,  // of a program: runtime/engine/failed_step
    line,  // of a dataset's text: dataset/text/failed_line
  };
  Kind kind = Kind::step;
  std::string error;  // what was said of it
  std::string content;

  bool operator==(const FailedBatch&) const = default;
};

/// What is larger is not kept.
inline constexpr std::size_t kMaxFailedBatch = std::size_t{32} << 20;

/// The file; empty: nothing is kept. A process keeps a few failures, those that it gets over among them.
std::string failed_batch_file();
/// Writes the file. Where it cannot be written, nothing is kept. Threads: any.
void keep_failed_batch(const FailedBatch& batch) noexcept;

std::string to_bytes(const FailedBatch& batch);
/// Throws: Error(data) for bytes that are no such file.
FailedBatch parse_failed_batch(std::string_view bytes);

}  // namespace fleetrun
