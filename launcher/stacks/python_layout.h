// Where CPython keeps what a stack is made of: offsets into its structures, by version. Those of 3.8 to 3.12
// are its headers'; from 3.13 on the interpreter tells them itself, at the beginning of _PyRuntime
// ("xdebugpy").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fleetrun::launcher {

/// 3.11 is {3, 11}.
struct PythonVersion {
  int major = 0, minor = 0;
  auto operator<=>(const PythonVersion&) const = default;
};

struct PythonLayout {
  std::size_t first_interpreter;              // of the runtime
  std::size_t next_interpreter, threads;      // of an interpreter
  std::size_t next_thread, frames;            // of a thread
  std::optional<std::size_t> current_frame;   // of what `frames` points to; without: the frame itself
  std::size_t previous, code, instruction;    // of a frame
  std::optional<std::size_t> owner;           // of a frame: from 3 on it is one of C's stack
  std::size_t file, name, lines, first_line;  // of a code object
  std::size_t bytecode;   // of a code object; 0: `instruction` is a number, not an address
  std::size_t text;       // of a text that is ASCII: its characters
  std::size_t wide_text;  // of any other
};

/// Nothing: a version that is not known.
std::optional<PythonLayout> python_layout(PythonVersion version);

/// How many words of the runtime hold all that told_python_layout() looks at.
inline constexpr std::size_t kToldWords = 64;
/// As the runtime's first words tell it. Nothing: they do not, or of an interpreter without a global lock.
std::optional<PythonLayout> told_python_layout(PythonVersion version, std::span<const std::uint64_t> words);

/// The line of an instruction, `offset` bytes into its code, by the table of that version. Bytes that end too
/// early give the line reached there.
int python_line(PythonVersion version, std::span<const std::uint8_t> table, int first_line, long offset);

}  // namespace fleetrun::launcher
