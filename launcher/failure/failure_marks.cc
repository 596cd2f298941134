// Failures that one line gives away: a table of marks, and for some of them how far their block goes.
#include <algorithm>
#include <optional>

#include "launcher/failure/failure_parts.h"

namespace fleetrun::launcher {
namespace {

/// A line that contains `words` belongs to `family`; the block takes up to `lines_after` lines more, and ends
/// early with the first that contains `until`.
struct Mark {
  std::string_view words;
  FailureFamily family;
  int strength;
  std::size_t lines_after;
  std::string_view until;
};

constexpr Mark kMarks[] = {
    {"terminate called ", FailureFamily::terminate, kFatal, 4, {}},
    {"libc++abi: terminating", FailureFamily::terminate, kFatal, 2, {}},
    {"pure virtual method called", FailureFamily::terminate, kFatal, 1, {}},
    {"malloc(): ", FailureFamily::glibc, kFatal, 0, {}},
    {"free(): ", FailureFamily::glibc, kFatal, 0, {}},
    {"realloc(): ", FailureFamily::glibc, kFatal, 0, {}},
    {"munmap_chunk(): ", FailureFamily::glibc, kFatal, 0, {}},
    {"malloc_consolidate(): ", FailureFamily::glibc, kFatal, 0, {}},
    {"double free or corruption", FailureFamily::glibc, kFatal, 0, {}},
    {"corrupted size vs. prev_size", FailureFamily::glibc, kFatal, 0, {}},
    {"corrupted double-linked list", FailureFamily::glibc, kFatal, 0, {}},
    {"*** stack smashing detected ***", FailureFamily::glibc, kFatal, 0, {}},
    {"*** buffer overflow detected ***", FailureFamily::glibc, kFatal, 0, {}},
    {"Fatal glibc error:", FailureFamily::glibc, kFatal, 0, {}},
    {": Assertion `", FailureFamily::glibc, kFatal, 0, {}},
    {"ERROR: AddressSanitizer", FailureFamily::sanitizer, kFatal, 60, "SUMMARY: "},
    {"ERROR: LeakSanitizer", FailureFamily::sanitizer, kTold, 60, "SUMMARY: "},
    {"ERROR: UndefinedBehaviorSanitizer", FailureFamily::sanitizer, kFatal, 60, "SUMMARY: "},
    {"ERROR: ThreadSanitizer", FailureFamily::sanitizer, kFatal, 60, "SUMMARY: "},
    {"WARNING: ThreadSanitizer", FailureFamily::sanitizer, kTold, 60, "SUMMARY: "},
    {"WARNING: MemorySanitizer", FailureFamily::sanitizer, kFatal, 60, "SUMMARY: "},
    {": runtime error: ", FailureFamily::sanitizer, kTold, 0, {}},
    {"Fatal Python error: ", FailureFamily::faulthandler, kFatal, 40, "Extension modules:"},
    {"Error Message Summary:", FailureFamily::paddle, kFatal, 8, "[SignalInfo:"},
    {"' panicked at ", FailureFamily::panic, kFatal, 2, {}},
    {"panic: ", FailureFamily::panic, kFatal, 12, {}},
    {"fatal error: all goroutines", FailureFamily::panic, kFatal, 12, {}},
    {"Exception in thread \"", FailureFamily::panic, kFatal, 12, {}},
    {"error while loading shared libraries: ", FailureFamily::library, kFatal, 0, {}},
    {"symbol lookup error: ", FailureFamily::library, kFatal, 0, {}},
    {"' not found (required by ", FailureFamily::library, kTold, 0, {}},
    {"CUDA error", FailureFamily::device, kTold, 2, {}},
    {"CUDA failure", FailureFamily::device, kTold, 0, {}},
    {"Cuda failure", FailureFamily::device, kTold, 0, {}},
    {"CUDA out of memory", FailureFamily::device, kTold, 0, {}},
    {"CUBLAS_STATUS_", FailureFamily::device, kTold, 0, {}},
    {"CUDNN_STATUS_", FailureFamily::device, kTold, 0, {}},
    {"cudaError", FailureFamily::device, kTold, 0, {}},
    {"NCCL error", FailureFamily::device, kTold, 1, {}},
    {"NCCL WARN ", FailureFamily::device, kNoted, 0, {}},
    {"ncclSystemError", FailureFamily::device, kTold, 1, {}},
    {"ncclInternalError", FailureFamily::device, kTold, 1, {}},
    {"ncclUnhandledCudaError", FailureFamily::device, kTold, 1, {}},
    {"ncclRemoteError", FailureFamily::device, kTold, 1, {}},
    {"collective operation timeout", FailureFamily::device, kTold, 0, {}},
    {"first failure: ", FailureFamily::message, kTold, 0, {}},  // a fleetrun that the process ran
    {"ddress already in use", FailureFamily::message, kTold, 0, {}},
    {"onnection reset", FailureFamily::message, kNoted, 0, {}},
    {"onnection closed", FailureFamily::message, kNoted, 0, {}},
    {"onnection refused", FailureFamily::message, kNoted, 0, {}},
    {"roken pipe", FailureFamily::message, kNoted, 0, {}},
    {"imed out", FailureFamily::message, kNoted, 0, {}},
    {"Cannot allocate memory", FailureFamily::message, kNoted, 0, {}},
    {"command not found", FailureFamily::message, kNoted, 0, {}},
    {"No such file or directory", FailureFamily::message, kNoted, 0, {}},
    {"No module named ", FailureFamily::message, kNoted, 0, {}},
    {"Permission denied", FailureFamily::message, kNoted, 0, {}},
    {"error: ", FailureFamily::message, kNoted, 0, {}},
    {"Error: ", FailureFamily::message, kNoted, 0, {}},
    {"ERROR: ", FailureFamily::message, kNoted, 0, {}},
    {"fatal: ", FailureFamily::message, kNoted, 0, {}},
    {"FATAL: ", FailureFamily::message, kNoted, 0, {}},
    {": not found", FailureFamily::message, kPlain, 0, {}},
    {"Segmentation fault", FailureFamily::message, kPlain, 0, {}},
    {" ERROR ", FailureFamily::message, kPlain, 0, {}},
    {" CRITICAL ", FailureFamily::message, kPlain, 0, {}},
    {"Killed", FailureFamily::message, kPlain, 0, {}},
};

/// Marks whose line has to begin with them, since the same words inside a line are somebody's prose.
bool has_to_begin(const Mark& mark) {
  return mark.words == "panic: " || mark.words == "Killed" || mark.words == "Exception in thread \"" ||
         mark.words == "first failure: ";
}

/// "----- ERROR LOG DETAIL -----", of a launcher that the process ran: what happened stands below it.
bool is_heading(std::string_view line) {
  return line.starts_with("---") && line.ends_with("---");
}

const Mark* mark_of(std::string_view line) {
  if (is_heading(trimmed(line))) return nullptr;
  for (const Mark& mark : kMarks) {
    const std::size_t at = line.find(mark.words);
    if (at != std::string_view::npos && (at == 0 || !has_to_begin(mark))) return &mark;
  }
  return nullptr;
}

/// "terminate called after throwing an instance of 'std::runtime_error'", "  what():  boom":
/// "std::runtime_error: boom".
void sum_up_terminate(const Lines& lines, FailurePiece& piece) {
  const std::string_view line = lines[piece.first];
  const std::size_t open = line.find("instance of '");
  std::size_t last = piece.first;
  if (open != std::string_view::npos) {
    const std::string_view type = line.substr(open + 13);
    piece.summary = type.substr(0, type.rfind('\''));
    const std::string_view next =
        piece.first < piece.last ? trimmed(lines[piece.first + 1]) : std::string_view();
    if (next.starts_with("what():")) {
      piece.summary.append(": ").append(trimmed(next.substr(7)));
      last = piece.first + 1;
    }
  }
  piece.last = last;
}

/// The part from the sanitizer's name on; its own summary line is what it is recognised by again.
void sum_up_sanitizer(const Lines& lines, FailurePiece& piece) {
  const std::string_view line = lines[piece.first];
  const std::size_t name = line.find(": ");
  if (name != std::string_view::npos && contains(line, "Sanitizer")) piece.summary = line.substr(name + 2);
  if (lines[piece.last].starts_with("SUMMARY: ")) piece.identity = lines[piece.last].substr(9);
}

/// Below the header and a line of dashes.
void sum_up_paddle(const Lines& lines, FailurePiece& piece) {
  for (std::size_t i = piece.first + 1; i <= piece.last; ++i) {
    const std::string_view line = trimmed(lines[i]);
    if (line.empty() || line.starts_with("---")) continue;
    piece.summary = line;
    return;
  }
}

/// From Rust 1.73 on the message stands below the place.
void sum_up_panic(const Lines& lines, FailurePiece& piece) {
  if (lines[piece.first].ends_with(":") && piece.first < piece.last)
    piece.summary.append(" ").append(trimmed(lines[piece.first + 1]));
}

std::size_t last_line(const Lines& lines, std::size_t first, const Mark& mark) {
  const std::size_t max = std::min(first + mark.lines_after, lines.size() - 1);
  std::size_t blank = max;
  for (std::size_t i = first + 1; i <= max; ++i) {
    if (!mark.until.empty() && contains(lines[i], mark.until)) return i;
    if (mark.until.empty() && trimmed(lines[i]).empty()) return i - 1;
    if (trimmed(lines[i]).empty()) blank = i;
  }
  return mark.until.empty() ? max : blank;
}

FailurePiece piece_of(const Lines& lines, std::size_t first, const Mark& mark) {
  FailurePiece piece{mark.family, mark.strength, first, last_line(lines, first, mark), {}, {}, {}};
  piece.summary = trimmed(lines[first]);
  if (mark.family == FailureFamily::terminate) sum_up_terminate(lines, piece);
  if (mark.family == FailureFamily::sanitizer) sum_up_sanitizer(lines, piece);
  if (mark.family == FailureFamily::paddle) sum_up_paddle(lines, piece);
  if (mark.family == FailureFamily::panic) sum_up_panic(lines, piece);
  return piece;
}

}  // namespace

void find_marked_lines(const Lines& lines, std::vector<FailurePiece>& found) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Mark* mark = mark_of(lines[i]);
    if (!mark) continue;
    found.push_back(piece_of(lines, i, *mark));
    if (mark->strength >= kTold) i = std::max(i, found.back().last);
  }
}

}  // namespace fleetrun::launcher
