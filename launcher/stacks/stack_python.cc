#include "launcher/stacks/stack_python.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "launcher/stacks/python_layout.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

// More of anything is a damaged list.
constexpr int kMostThreads = 256, kMostFrames = 200;
constexpr std::size_t kMostTable = 1 << 16, kMostText = 1024, kMostSymbols = 64 << 20;
/// A frame that C's stack has, between those of Python.
constexpr int kFirstOfC = 3;

void append_utf8(std::string& text, char32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xf00 >> (more + 1) & 0xff) | character >> 6 * more);
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (character >> 6 * i & 0x3f));
}

class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}

  void read(std::uint64_t address, void* to, std::size_t size) const {
    const iovec here = {to, size}, there = {reinterpret_cast<void*>(address), size};
    const auto got = check_errno(static_cast<int>(::process_vm_readv(pid_, &here, 1, &there, 1, 0)),
                                 "process_vm_readv", "process " + std::to_string(pid_));
    if (static_cast<std::size_t>(got) != size)
      throw Error(ErrorKind::host, "process " + std::to_string(pid_) + " has changed while it was read");
  }

  template <class Value>
  Value at(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    read(address, &value, sizeof value);
    return value;
  }

  std::uint64_t pointer(std::uint64_t address) const { return at<std::uint64_t>(address); }

 private:
  pid_t pid_;
};

/// A file that is mapped into a process.
struct Mapped {
  std::string path;
  std::uint64_t begin = 0;  // of its first byte
};

/// What may have an interpreter inside: libpython where there is one, else python or the program.
Mapped find_interpreter(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream maps(folder + "/maps");
  Mapped python, program;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode;
    std::getline(words >> std::ws, path);
    if (!path.starts_with('/') || offset.find_first_not_of('0') != offset.npos) continue;
    const Mapped mapped = {folder + "/root" + path, std::stoull(range, nullptr, 16)};
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libpython3.")) return mapped;
    if (python.path.empty() && name.starts_with("python3.")) python = mapped;
    if (program.path.empty()) program = mapped;
  }
  if (!python.path.empty()) return python;
  if (program.path.empty())
    throw Error(ErrorKind::host, "the memory of process " + std::to_string(pid) + " may not be looked at");
  return program;
}

/// The symbols of an ELF file.
class Symbols {
 public:
  explicit Symbols(const Mapped& mapped)
      : mapped_(mapped),
        file_(check_errno(::open(mapped.path.c_str(), O_RDONLY | O_CLOEXEC), "open", mapped.path)) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
      throw Error(ErrorKind::host, mapped.path + " is not a program of 64 bits");
    for (int i = 0; i < header.e_phnum; ++i) {
      const auto segment = at<Elf64_Phdr>(header.e_phoff + std::uint64_t(i) * header.e_phentsize);
      if (segment.p_type == PT_LOAD && segment.p_offset == 0) bias_ = mapped.begin - segment.p_vaddr;
    }
    for (const std::uint32_t kind : {SHT_DYNSYM, SHT_SYMTAB}) {
      for (int i = 0; i < header.e_shnum; ++i) {
        const auto section = at<Elf64_Shdr>(header.e_shoff + std::uint64_t(i) * header.e_shentsize);
        if (section.sh_type != kind) continue;
        const auto names =
            at<Elf64_Shdr>(header.e_shoff + std::uint64_t(section.sh_link) * header.e_shentsize);
        tables_.push_back({block<Elf64_Sym>(section), block<char>(names)});
      }
    }
  }

  /// Where it is in the process.
  std::optional<std::uint64_t> find(const char* name) const {
    for (const Table& table : tables_) {
      for (const Elf64_Sym& symbol : table.symbols) {
        const std::size_t left =
            symbol.st_name < table.names.size() ? table.names.size() - symbol.st_name : 0;
        const std::size_t length = std::strlen(name) + 1;
        if (symbol.st_value != 0 && length <= left &&
            std::memcmp(table.names.data() + symbol.st_name, name, length) == 0)
          return bias_ + symbol.st_value;
      }
    }
    return {};
  }

 private:
  struct Table {
    std::vector<Elf64_Sym> symbols;
    std::vector<char> names;
  };

  void read(std::uint64_t offset, void* to, std::size_t size) const {
    if (::pread(file_.value(), to, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
      throw Error(ErrorKind::host, mapped_.path + " ends too early");
  }

  template <class Value>
  Value at(std::uint64_t offset) const {
    Value value;
    read(offset, &value, sizeof value);
    return value;
  }

  template <class Value>
  std::vector<Value> block(const Elf64_Shdr& section) const {
    if (section.sh_size > kMostSymbols) throw Error(ErrorKind::host, mapped_.path + " has too many symbols");
    std::vector<Value> values(section.sh_size / sizeof(Value));
    read(section.sh_offset, values.data(), values.size() * sizeof(Value));
    return values;
  }

  Mapped mapped_;
  UniqueFd file_;
  std::uint64_t bias_ = 0;
  std::vector<Table> tables_;
};

/// By Py_Version, which 3.11 and later have; else by the name of the file, "python3.8".
PythonVersion version_of(pid_t pid, const Memory& memory, const Symbols& symbols, const Mapped& interpreter) {
  if (const auto address = symbols.find("Py_Version")) {
    const auto number = memory.at<std::uint64_t>(*address);
    return {static_cast<int>(number >> 24 & 0xff), static_cast<int>(number >> 16 & 0xff)};
  }
  const std::string name = interpreter.path.substr(interpreter.path.rfind('/') + 1);
  const std::size_t dot = name.find("python3.");
  if (dot == name.npos || dot + 8 >= name.size())
    throw Error(ErrorKind::host,
                "which Python process " + std::to_string(pid) + " is cannot be told by " + name);
  return {3, std::atoi(name.c_str() + dot + 8)};
}

class Interpreter {
 public:
  explicit Interpreter(pid_t pid) : memory_(pid) {
    const Mapped mapped = find_interpreter(pid);
    const Symbols symbols(mapped);
    const auto runtime = symbols.find("_PyRuntime");
    if (!runtime)
      throw Error(ErrorKind::host, "process " + std::to_string(pid) + " has no interpreter of Python");
    runtime_ = *runtime;
    version_ = version_of(pid, memory_, symbols, mapped);
    const auto layout = version_ < PythonVersion{3, 13} ? python_layout(version_) : told();
    if (!layout)
      throw Error(ErrorKind::host, "frames of Python " + std::to_string(version_.major) + "." +
                                       std::to_string(version_.minor) + " cannot be read");
    layout_ = *layout;
  }

  std::string stacks() const {
    std::string text;
    const std::uint64_t first = memory_.pointer(runtime_ + layout_.first_interpreter);
    // The main interpreter is the last of the list, and so is its main thread.
    for (std::uint64_t interpreter = first; interpreter != 0;
         interpreter = memory_.pointer(interpreter + layout_.next_interpreter)) {
      const bool is_main = memory_.pointer(interpreter + layout_.next_interpreter) == 0;
      std::uint64_t thread = memory_.pointer(interpreter + layout_.threads);
      for (int count = 0; thread != 0 && count < kMostThreads; ++count) {
        const std::uint64_t next = memory_.pointer(thread + layout_.next_thread);
        text += is_main && next == 0 ? "Thread \"MainThread\"\n" : "Thread \"\"\n";
        text += frames_of(thread);
        thread = next;
      }
    }
    return text;
  }

 private:
  std::optional<PythonLayout> told() const {
    std::array<std::uint64_t, kToldWords> words;
    memory_.read(runtime_, words.data(), sizeof words);
    return told_python_layout(version_, words);
  }

  std::string frames_of(std::uint64_t thread) const {
    std::string text;
    std::uint64_t frame = memory_.pointer(thread + layout_.frames);
    if (layout_.current_frame && frame != 0) frame = memory_.pointer(frame + *layout_.current_frame);
    for (int count = 0; frame != 0 && count < kMostFrames; ++count) {
      if (!layout_.owner || memory_.at<std::uint8_t>(frame + *layout_.owner) < kFirstOfC)
        text += "    " + text_of(frame) + "\n";
      frame = memory_.pointer(frame + layout_.previous);
    }
    return text;
  }

  std::string text_of(std::uint64_t frame) const {
    // 3.14 keeps marks in the lowest bits.
    const std::uint64_t code = memory_.pointer(frame + layout_.code) & ~std::uint64_t{7};
    long offset = 0;
    if (layout_.bytecode != 0)
      offset = static_cast<long>(memory_.pointer(frame + layout_.instruction) - (code + layout_.bytecode));
    else
      offset =
          memory_.at<std::int32_t>(frame + layout_.instruction) * (version_ < PythonVersion{3, 10} ? 1 : 2);
    const std::uint64_t table = memory_.pointer(code + layout_.lines);
    // Of a bytes object: its length, and after a hash its bytes.
    std::vector<std::uint8_t> lines(std::min<std::uint64_t>(memory_.pointer(table + 16), kMostTable));
    memory_.read(table + 32, lines.data(), lines.size());
    const auto first = memory_.at<std::int32_t>(code + layout_.first_line);
    return text_at(memory_.pointer(code + layout_.name)) + " (" +
           text_at(memory_.pointer(code + layout_.file)) + ":" +
           std::to_string(offset < 0 ? first : python_line(version_, lines, first, offset)) + ")";
  }

  /// A str: its length, then in bits of its state how long a character is, and whether all are ASCII.
  std::string text_at(std::uint64_t address) const {
    const auto length = std::min<std::uint64_t>(memory_.pointer(address + 16), kMostText);
    const std::uint32_t state = memory_.at<std::uint32_t>(address + 32) >> 2;
    const std::size_t width = state & 7;
    const bool is_ascii = (state >> 4 & 1) != 0;
    if (is_ascii) {
      std::string text(length, '\0');
      memory_.read(address + layout_.text, text.data(), text.size());
      return text;
    }
    std::string text;
    for (std::size_t i = 0; i < length; ++i) {
      char32_t character = 0;
      memory_.read(address + layout_.wide_text + i * width, &character, std::min(width, sizeof character));
      append_utf8(text, character);
    }
    return text;
  }

  Memory memory_;
  std::uint64_t runtime_ = 0;
  PythonVersion version_;
  PythonLayout layout_{};
};

}  // namespace

std::string read_python_stacks(pid_t pid) {
  return Interpreter(pid).stacks();
}

}  // namespace fleetrun::launcher
