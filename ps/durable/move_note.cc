// A note outlives the end of a process, not that of the host: after that another run begins.
#include "ps/durable/move_note.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

std::string MoveNotes::path_of(const char* what) const {
  return directory_ + "/" + what + "-" + std::to_string(server_);
}

void MoveNotes::write(const char* what, const MoveNote& note) const {
  const std::string text =
      std::to_string(note.process) + " " + std::to_string(note.number) + " " + note.run + "\n";
  const std::string path = path_of(what);
  const std::string before = path + "." + std::to_string(::getpid());
  {
    const UniqueFd file(
        check_errno(open_own(before, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner), "open", before));
    const ssize_t size = ::write(file.value(), text.data(), text.size());
    if (size >= 0 && static_cast<std::size_t>(size) != text.size()) errno = ENOSPC;
    check_errno(size == static_cast<ssize_t>(text.size()) ? 0 : -1, "write", before);
  }
  check_errno(::rename(before.c_str(), path.c_str()), "rename", path);
}

void MoveNotes::remove(const char* what) const noexcept {
  static_cast<void>(::unlink(path_of(what).c_str()));
}

std::optional<MoveNote> MoveNotes::read(const char* what, const std::string& run) const {
  std::ifstream file(path_of(what));
  MoveNote note;
  if (!(file >> note.process >> note.number) || file.get() != ' ') return std::nullopt;
  std::getline(file, note.run);
  if (note.run != run) return std::nullopt;
  return note;
}

std::uint32_t read_process_count(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto count = parse_integer(text.substr(0, text.find('\n')));
  if (count && *count > 0 && *count <= UINT32_MAX) return static_cast<std::uint32_t>(*count);
  throw Error(ErrorKind::data, path + " does not say how many server processes there are to be",
              "fleetrun writes it; do not change it by hand");
}

}  // namespace fleetrun::ps
