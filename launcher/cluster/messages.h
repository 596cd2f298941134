// What the nodes of a job and its coordinator say to each other, as values and as bytes. Pure.
//
//   frame body := u8 type | fields                    (numbers little-endian; the channel adds lengths and
//                                                     proofs)
//   text := u32 length | bytes       list := u32 count | items       id := u8 16 | 16 bytes, or u8 0 | text
//
//   node                                        coordinator
//   hello  ──────────────────────────────────►  welcome (or refused, redirect, not yet), then waiting, parked
//          ◄────────────────────────── prepare  all stop what runs, lease ports
//   ready  ──────────────────────────────────►
//          ◄─────────────── world, world list   all start
//   running, done, failing, failed ──────────►
//          ◄────────────────────────────── end
//   ended  ──────────────────────────────────►
//   beat   ◄─────────────────────────────────►  beat
//
// Decoding trusts nothing: every count is checked against the bytes that are left before anything is
// allocated. A hello of another protocol is read as far as its version, so that it can be refused in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/model/restart_policy.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

/// Time since some start that both calls and answers of one core share; each host has its own.
using Instant = std::chrono::microseconds;

constexpr std::uint32_t kClusterProtocol = 4;
constexpr std::size_t kMaxText = 65'536;     // bytes of one text
constexpr std::size_t kMaxMembers = 65'536;  // of a world
constexpr std::size_t kMaxPods = 65'536;     // trainers or servers of one host

/// Who may take part in a generation, and who proposed it. What a majority of these has not given up,
/// nobody can replace.
struct Configuration {
  std::uint64_t generation = 0;
  std::int32_t attempt = 0;
  std::string coordinator;         // its node; empty: it is not a node
  std::vector<std::string> nodes;  // by node rank
  bool operator==(const Configuration&) const = default;
};

/// A failure that was decided about, with the host where it was.
struct PastFailure {
  FailureRecord record;
  RestartScope scope = RestartScope::group;
  std::string host;
};

// ---- From a node ----

/// The first message on every connection. A node that connects again says so by a greater `connection`.
struct Hello {
  std::uint32_t protocol = kClusterProtocol;
  std::string version;  // of fleetrun
  std::string job_id;
  std::string node, name, pod;
  std::uint32_t connection = 1;
  std::int32_t requested_rank = -1;  // -1: any
  Endpoint successor;                // where it would coordinate; port 0: nowhere
  PodOffer offer;
  bool wants_list = true;  // the members of each world without asking
  // What it was part of; empty and 0 for a node that was part of nothing yet.
  std::string run;
  std::uint64_t promised = 0;   // the highest generation that it prepared for
  std::uint64_t formed = 0;     // the highest generation that it knows to have formed
  std::uint64_t world = 0;      // the newest world that it was told of
  std::int32_t rank = -1;       // its node rank in that
  bool fenced = false;          // what ran here was stopped for want of a coordinator
  NodeCount nodes = {0, 0, 1};  // of the job, as it was started here; 0: that is not known
  std::uint64_t program = 0;    // the digest of what it runs; 0: not known
  bool operator==(const Hello&) const = default;
};

struct Ready {
  std::uint64_t generation = 0;
  PodOffer offer;
};
struct Running {
  std::uint64_t generation = 0;
};
struct Failing {
  std::uint64_t generation = 0;
  std::string process;
};
struct Failed {
  std::uint64_t generation = 0;
  NodeFailure failure;
  Instant died{};  // in the time of its node
};
struct Done {
  std::uint64_t generation = 0;
};
/// The user stops the job there.
struct Stop {
  std::int32_t signal = 0;
};
/// The job's time is up.
struct TimeUp {};
/// This node goes, and its processes have ended.
struct Leave {
  std::string why;
};
/// It knows how the job ended.
struct KnowsEnd {};
struct AskList {
  std::uint64_t generation = 0;
};
/// The answer to AskStanding: the newest world that it knows, and every later proposal that it prepared for
/// and that may have become one since.
struct Standing {
  Configuration formed;
  std::vector<Configuration> promised;
};

// ---- From the coordinator ----

struct Welcome {
  std::string version;
  std::string run;
  std::string coordinator;   // its node; empty: it is not a node
  bool resumed = false;      // the node is what it was before this connection
  bool provisional = false;  // it waits for enough nodes, and may never find them
  std::int32_t beat_ms = 0, lost_after_ms = 0;
};
/// Final: this launcher cannot take part.
struct Refused {
  std::string text, hint;
  std::int32_t exit_status = 0;
};
struct Waiting {
  std::string text;
};
/// It is a spare for now.
struct Parked {
  std::string text;
};
/// Stop and sweep what runs, lease ports, say ready. In place: go on, and say ready.
struct Prepare {
  std::uint64_t generation = 0;
  std::string why;
  bool in_place = false;
  // Only where nodes may take the coordinator's place. Without nodes:
  // this proposal cannot become a world, it stops only.
  Configuration proposed;
  Configuration base;  // the newest world
};
/// The world as one member needs it at least; the members follow for those who want them.
struct WorldNews {
  std::uint64_t generation = 0;
  std::int32_t attempt = 0;
  std::string run;
  std::int32_t rank = 0, nodes = 0;
  std::int32_t first_trainer = 0, trainers = 0, first_server = 0, servers = 0;
  Endpoint rendezvous;
  std::string hash;
  bool update = false;  // of a job that goes on in place, to a member that runs
  bool operator==(const WorldNews&) const = default;
};
struct WorldList {
  std::shared_ptr<const World> world;  // never null
  std::string coordinator;             // its node
  std::vector<PastFailure> past;       // what a successor has to know of the restarts so far
};
/// The job is over, or (`left`) this node's part in it.
struct End {
  JobEnd end;
  bool left = false;
};
/// Somebody else coordinates, at `coordinator`.
struct Redirect {
  Endpoint coordinator;
  std::string why;
  /// From a coordinator that leaves: who goes on without it, led by the host at `coordinator`. Generation 0:
  /// it does not leave.
  Configuration heirs = {};
};
/// Nobody coordinates here, or not yet: this node still hears its coordinator.
struct NotYet {};
struct AskStanding {};
/// From a coordinator that took over, to whoever listens at the first one's address.
struct Acting {
  std::string job_id, run;
  std::uint64_t generation = 0;
  Endpoint coordinator;
};

// ---- Both ways ----

struct Beat {
  Instant sent{};  // by the sender's time
  Instant echo{};  // `sent` of the newest beat that came from the other side
  Instant held{};  // how long that one lay here; an echo of 0 means that none came yet
};

using Message = std::variant<Hello, Ready, Running, Failing, Failed, Done, Stop, TimeUp, Leave, KnowsEnd,
                             AskList, Standing, Welcome, Refused, Waiting, Parked, Prepare, WorldNews,
                             WorldList, End, Redirect, NotYet, AskStanding, Acting, Beat>;

/// "hello", "world list": for the log.
std::string_view name_of(const Message& message) noexcept;

std::string encode(const Message& message);

/// Throws: Error(data) for bytes that are not a message, too short, too long, or beyond a limit.
Message decode(std::string_view bytes);

/// A message for many: whoever sends it encodes it once.
class SharedMessage {
 public:
  SharedMessage(Message message);  // not explicit: a message is one for many
  const Message& message() const noexcept { return shared_->message; }
  /// Encoded at the first call. Threads: of the loop only.
  const std::string& bytes() const;
  /// The same, for those who keep them longer than this.
  std::shared_ptr<const std::string> share() const { return {shared_, &bytes()}; }

 private:
  struct Shared {
    explicit Shared(Message its) : message(std::move(its)) {}
    Message message;
    mutable std::string bytes;
  };
  std::shared_ptr<const Shared> shared_;  // by all outputs that send it
};

}  // namespace fleetrun::launcher
