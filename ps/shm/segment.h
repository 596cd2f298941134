// Memory that a trainer and a server on one host have in common, and how one wakes the other.
//
//   rings      requests: trainer to server      answers: server to trainer
//   requests   messages that the trainer makes; it alone hands them out and takes them back
//   answers    messages that the server makes; it alone hands them out,
//              and takes back what a release in `requests` names
//
// The segment is a memfd whose size is sealed, so that neither side can make the other's access fail. The
// server makes it and sends it over the unix socket on which both have proved the job's secret; that socket's
// end is the peer's end. Pages that no message has touched cost nothing.
//
// Both sides run as one user and know the secret: a trainer that changes a message while the server reads it
// can harm the server, as it could with a debugger. Offsets and sizes are checked all the same.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

/// Touched bytes of a ring above this are given back when no request is under way.
inline constexpr std::uint64_t kKeptPages = std::uint64_t{64} << 20;

enum class ShmKind : std::uint32_t {
  call,     // requests: a message to be answered under the number `call`
  release,  // requests: the answer at `offset` has been read
  answer,   // answers
  error,    // answers: the message is its texts (encode_error)
};

struct ShmEntry {
  ShmKind kind = ShmKind::call;
  std::uint32_t unused = 0;
  std::uint64_t call = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

inline constexpr std::uint64_t kShmEntries = 4096;

/// Written by one process and read by one; each keeps its own count and looks at the other's.
struct ShmRing {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
  alignas(64) std::atomic<std::uint32_t> asleep;  // the reader wants its bell rung
  alignas(64) ShmEntry entries[kShmEntries];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Threads: one at a time.
class ShmWriter {
 public:
  ShmWriter(ShmRing& ring, int bell) : ring_(&ring), bell_(bell) {}
  /// False: the reader is `limit` entries behind. `quietly`: it need not wake up for this.
  bool put(const ShmEntry& entry, std::uint64_t limit = kShmEntries, bool quietly = false);

 private:
  ShmRing* ring_;
  int bell_;  // borrowed
  std::uint64_t written_ = 0;
};

/// What a reader was woken by.
enum class ShmWoken { entry, end, nothing };

/// Threads: one at a time.
class ShmReader {
 public:
  ShmReader(ShmRing& ring, int bell);
  /// The next entry, if there is one. Throws: Error(data) when the counts cannot be.
  std::optional<ShmEntry> take();
  /// Waits for the next entry, for the end of `socket`, or until `stop` is readable;
  /// `nothing` after `max`, if it is given.
  ShmWoken wait(int socket, int stop, std::chrono::milliseconds max = std::chrono::milliseconds(-1));

 private:
  bool is_empty() const noexcept;
  bool spin() const noexcept;

  ShmRing* ring_;
  int bell_;  // borrowed
  std::uint64_t taken_ = 0;
  bool spins_;
};

/// What goes over the socket, in this order.
struct ShmFiles {
  UniqueFd memory, server_bell, trainer_bell;
};

class ShmSegment {
 public:
  /// Makes one with `bytes` for the messages of each direction. Throws: Error(host).
  static ShmSegment make(std::uint64_t bytes);
  /// Takes over what the other side made. Throws: Error(data) unless it is a sealed segment of this version.
  static ShmSegment attach(ShmFiles files);
  ~ShmSegment();
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&&) = delete;

  ShmRing& requests() const noexcept;
  ShmRing& answers() const noexcept;
  /// Grows while the server's process runs (ps/shm/host.h):
  /// a trainer sees by it that the server is not stopped.
  std::atomic<std::uint64_t>& beats() const noexcept;
  int server_bell() const noexcept { return files_.server_bell.value(); }
  int trainer_bell() const noexcept { return files_.trainer_bell.value(); }
  const ShmFiles& files() const noexcept { return files_; }

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::span<std::byte> request_bytes() const noexcept;
  std::span<std::byte> answer_bytes() const noexcept;
  /// The part of `half` that an entry names. Throws: Error(data) when it lies outside.
  static std::span<std::byte> part(std::span<std::byte> half, const ShmEntry& entry);
  /// Gives the pages of `bytes` back to the host; they read as zeros then.
  static void drop_pages(std::span<std::byte> bytes) noexcept;

 private:
  ShmSegment(ShmFiles files, std::uint64_t bytes);

  ShmFiles files_;
  std::uint64_t bytes_;
  std::byte* base_ = nullptr;
};

/// Sends the files of a segment. Throws: Error(network).
void send_files(int socket, const ShmFiles& files);
/// nullopt: nothing came yet. Throws: Error(network) when the socket ended or brought something else.
std::optional<ShmFiles> receive_files(int socket);

}  // namespace fleetrun::ps
