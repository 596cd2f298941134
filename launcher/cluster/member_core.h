// A node's side of a job of several hosts: joins, obeys, reports, fences itself when it hears nothing, and
// looks for or becomes the next coordinator when the one it had is gone.
//
// Free of I/O, as launcher/cluster/coordinator_core.h. It has one connection at a time to a coordinator, its
// *uplink* (of the node that coordinates: to itself). Uplinks are numbered by the Dial that asked for them;
// what comes from an earlier one is ignored.
//
//   stage     what it is                                leaves when
//   dialing   no uplink                                 connected; or too long without:
//                                                       seeking, or giving up
//   greeting  connected, hello is sent                  welcome: joined; redirect:
//                                                       dialing there; refused: over
//   joined    hears its coordinator                     the uplink ends: dialing again;
//                                                       silence for a lease: fenced and seeking
//   seeking   the coordinator is lost: dials the other  one of them welcomes us: joined; our turn:
//             members by node rank, and offers itself   Coordinate; elastic_timeout: over
//   over      the end is known                          -
//
// A host that its user stopped stays in its stage, with its lease, until what runs there has ended; it obeys
// no more, and looks for no other coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/journal.h"
#include "launcher/cluster/messages.h"
#include "launcher/cluster/quorum.h"
#include "launcher/model/membership.h"

namespace fleetrun::launcher {

struct MemberSettings {
  std::string job_id, version;
  std::string node, name, pod;
  int requested_rank = -1;
  NodeCount nodes = {0, 0, 1};  // of the job, as it was started here; 0: that is not known
  Endpoint successor;           // where this node listens for others; port 0: nowhere
  PodOffer offer;               // of the first generation
  std::uint64_t program = 0;    // the digest of what it runs; 0: not known
  bool wants_list = true;
  bool takeover = false;                // members look for, and become, the next coordinator by themselves
  std::optional<Endpoint> coordinator;  // to dial; nullopt: follow() will say
  bool coordinates = false;             // the coordinator is in this launcher: it is never given up as lost
  std::chrono::milliseconds beat{500}, lost_after{3'000};  // as its coordinator says, once there is one
  std::chrono::milliseconds join_timeout{600'000}, elastic_timeout{30'000};
  std::chrono::milliseconds redial{200};        // between two attempts
  std::chrono::milliseconds dial_timeout{700};  // of a seeking node, for each of the others
};

namespace joining {

/// Opens uplink number `uplink`; the one before is dropped, if there is any.
/// Here: to the coordinator in this launcher.
struct Dial {
  std::uint64_t uplink = 0;
  Endpoint to;
  bool here = false;
};
/// On the newest uplink.
struct Send {
  SharedMessage message;
};
/// After what was sent before is out; `cut`: without a goodbye, which would mean that this launcher is gone.
struct HangUp {
  bool cut = false;
};
/// A coordinator is to be made here from `journal`, with takeover set and `heralded` the first coordinator's
/// address; where it names no run, one that begins a run. A Dial{here} follows. What comes from strangers is
/// for it until it steps down.
struct Coordinate {
  Journal journal;
};
/// To a node that asked here though nobody coordinates here; its connection is closed afterwards.
struct Answer {
  ConnectionId stranger = 0;
  SharedMessage message;
};
/// The functions of MembershipListener, as values.
struct TellNews {
  NewsLevel level = NewsLevel::info;
  std::string text;
};
struct TellPrepare {
  std::uint64_t generation = 0;
  std::string why;
};
/// `update`: on_update, else on_world. `world` is null for a node that does not want lists.
struct TellWorld {
  WorldNews news;
  std::shared_ptr<const World> world;
};
/// What runs here is to end at `ends` by itself, should there be no other word by then, and to stand still
/// from `stands` on; Instant{}: there is no such time.
struct TellLease {
  Instant stands{}, ends{};
  bool operator==(const TellLease&) const = default;
};
struct TellFenced {
  std::string why;
};
struct TellJobOver {
  JobEnd end;
};

using Output = std::variant<Dial, Send, HangUp, Coordinate, Answer, TellNews, TellPrepare, TellWorld,
                            TellLease, TellFenced, TellJobOver>;
using Outputs = std::vector<Output>;

struct State;

}  // namespace joining

class MemberCore {
 public:
  using Outputs = joining::Outputs;

  explicit MemberCore(MemberSettings settings);
  ~MemberCore();
  MemberCore(const MemberCore&) = delete;
  MemberCore& operator=(const MemberCore&) = delete;

  Outputs start(Instant now);

  Outputs on_connected(std::uint64_t uplink, Instant now);
  /// `why`: "connection refused". For people.
  Outputs on_dial_failed(std::uint64_t uplink, const std::string& why, Instant now);
  Outputs on(std::uint64_t uplink, const Message& message, Instant now);
  Outputs on_closed(std::uint64_t uplink, Closing how, Instant now);
  /// First words of somebody who connected here while nobody coordinates here: a hello of a seeking node.
  Outputs on_stranger(ConnectionId stranger, const Message& message, Instant now);
  /// The coordinator that was here stepped down.
  Outputs on_stepped_down(const std::string& why, Instant now);
  Outputs on_tick(Instant now);
  Instant next_deadline() const;

  /// A Discovery says who coordinates: another launcher,
  /// or (nullopt) the coordinator that was just made here.
  Outputs follow(const std::optional<Endpoint>& coordinator, Instant now);

  // What the supervisor reports (launcher/model/membership.h). `died`: in the time of `now`.
  Outputs ready(std::uint64_t generation, const PodOffer& offer, Instant now);
  Outputs running(std::uint64_t generation, Instant now);
  Outputs failing(std::uint64_t generation, const std::string& process, Instant now);
  Outputs failed(std::uint64_t generation, const NodeFailure& failure, Instant died, Instant now);
  Outputs done(std::uint64_t generation, Instant now);
  Outputs stop(int signal, Instant now);
  Outputs timed_out(Instant now);
  /// The time of TellLease has come, and what ran here was killed.
  Outputs lapsed(Instant now);
  /// This node goes: goodbye, and then HangUp.
  Outputs leave(const std::string& why, Instant now);

  /// True once TellJobOver was said: what is left to do is to close.
  bool over() const noexcept;
  /// What its coordinator ran beside itself has ended by then: it ran only while all its members answered.
  Instant predecessor_until(Instant now) const noexcept;
  /// No run counts on this node yet: it may begin one itself.
  bool may_begin() const noexcept;
  /// It is over here, and goes on without this node.
  bool left() const noexcept;
  const std::string& node() const noexcept;
  /// What it takes into account when it looks for a quorum.
  const KnownConfigurations& known() const noexcept;
  /// The newest world that it knows in full; null: none.
  std::shared_ptr<const World> world() const noexcept;

 private:
  std::unique_ptr<joining::State> state_;
};

}  // namespace fleetrun::launcher
