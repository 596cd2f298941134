// What a server keeps of itself: a save of its tables like any other (ps/saving/snapshot.h), that has its
// share of the changes and of the barrier service beside them, and the log from there on.
//
//   DIRECTORY/server-<rank, 5 digits>/
//     lock         held by the server that uses the directory
//     owner        what run and what server all of it is of
//     manifest, manifest.previous, part-...
//     log-...      from the previous checkpoint on (ps/durable/write_log.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ps/durable/write_barrier.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

/// Beside the tables. Its name among the save's: "server".
struct KeptState {
  /// The log goes on from the beginning of this segment.
  std::uint64_t first_segment = 1;
  /// wire::HelloAnswer::server.
  std::uint64_t server = 0;
  std::map<ClientId, PushHistory> histories = {};
  /// As BarrierService::describe() has it.
  std::vector<std::byte> barrier_service = {};
};
std::vector<std::byte> to_bytes(const KeptState& state);
/// Throws: Error(data).
KeptState parse_kept_state(const std::vector<std::byte>& bytes);

std::string directory_of_server(const std::string& directory, std::uint32_t rank);
/// Makes the server's own directory, and takes it for this process.
/// Throws: Error(config) when another has it.
UniqueFd lock_directory(const std::string& directory);

/// What the directory is of. Tables, mode and numbers are in `server`.
struct Owner {
  std::string run;
  std::string server;
};
/// Throws: Error(host).
void write_owner(const std::string& directory, const Owner& owner);
/// nullopt: nobody's yet. Throws: Error(data) naming the file.
std::optional<Owner> read_owner(const std::string& directory);
/// Removes everything that a server has kept there.
void clear_directory(const std::string& directory);

}  // namespace fleetrun::ps
