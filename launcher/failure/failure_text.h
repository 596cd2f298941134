// What the end of a log says about a failure: the block that tells it, one line, and a signature.
//
// Recognised: Python tracebacks (chains, exception groups, syntax errors, the boxes of `rich`), C++
// `terminate`, aborts of glibc, sanitizers, Python's faulthandler, Paddle's error summaries, panics of Rust
// and Go, exceptions of Java, libraries that could not be loaded, errors of CUDA and NCCL, and at last any
// line that says "error:". Of several the last one of the strongest family counts; a traceback that Python
// only notes ("Exception ignored in") is weak. Everything here is pure and linear in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fleetrun::launcher {

constexpr std::size_t kFailureTextBytes = 64 * 1024;  // how much of a log's end is looked at

enum class FailureFamily {
  python,        // an uncaught exception
  terminate,     // an uncaught C++ exception
  glibc,         // an abort of the C library, an assertion
  sanitizer,     // AddressSanitizer and its kin
  faulthandler,  // "Fatal Python error:"
  paddle,        // "Error Message Summary:"
  panic,         // Rust, Go, Java
  library,       // a shared library that could not be loaded
  device,        // CUDA, NCCL
  message,       // a line that says that something went wrong
};

/// "python", "terminate", …: as verdict.json names it.
std::string_view to_string(FailureFamily family) noexcept;

struct FailureText {
  FailureFamily family = FailureFamily::message;
  std::string summary;    // "RuntimeError: boom"
  std::string block;      // the lines that tell it, without escapes; at most 8 KiB
  std::string signature;  // of the same failure always the same
  bool consequence =
      false;  // it says that somebody else was gone: a connection reset, a broken pipe, a timeout
  bool out_of_memory = false;  // it says that memory ran out, of the host or of a device
  bool at_end = false;         // little or nothing was written after it

  bool operator==(const FailureText&) const = default;
};

/// What `log`, the end of a log, says about why the process failed; nullopt when it says nothing.
std::optional<FailureText> find_failure(std::string_view log);

/// The last line of `log` that has words, as a summary; empty where there is none.
std::string last_line(std::string_view log);

/// Does `text` say that an address or port was in use already?
bool is_port_clash(std::string_view text);

/// Does `text` say that the other end of something was gone, or that the process was told to stop? Such a
/// failure follows from another one.
bool is_consequence(std::string_view text);

/// `text` with everything that differs from run to run replaced: numbers, times, addresses, temporary paths.
std::string folded(std::string_view text);

/// `text` without colours and other terminal escapes; of a line that was overwritten (carriage return) the
/// last state.
std::string plain_text(std::string_view text);

}  // namespace fleetrun::launcher
