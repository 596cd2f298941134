// By what the processes of a job agree who serves what, where servers move between them
// (ps/rpc/hosted_servers.h). A note is a line in a file "WHAT-SERVER" beside the one with the number of
// processes, not in the server's directory, which may be lost. It is replaced as a whole.
//
//   host    who serves it: written by who did, and true once it is there. `number`: of the offer that the
//           move was by
//   offer   what `process` can follow: the newest checkpoint, and the log from there on. It is gone, or has
//           another number, when that is no longer so
//   wanted  who is to go on with it. `number`: the offer of which that process has all; 0: none yet
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace fleetrun::ps {

struct MoveNote {
  std::uint32_t process = 0;
  std::uint64_t number = 0;
  std::string run;  // Durability::run: that of another says nothing

  bool operator==(const MoveNote&) const = default;
};

inline constexpr const char *kHostNote = "host", *kOfferNote = "offer", *kWantedNote = "wanted";

/// The notes about one server.
class MoveNotes {
 public:
  MoveNotes(std::string directory, std::uint32_t server)
      : directory_(std::move(directory)), server_(server) {}

  /// Throws: Error(host).
  void write(const char* what, const MoveNote& note) const;
  void remove(const char* what) const noexcept;
  /// None where it is not there, or is of another run.
  std::optional<MoveNote> read(const char* what, const std::string& run) const;

 private:
  std::string path_of(const char* what) const;

  std::string directory_;
  std::uint32_t server_;
};

/// How many processes there are to be, as the launcher has written it. Throws: Error(data), Error(host).
std::uint32_t read_process_count(const std::string& path);

}  // namespace fleetrun::ps
