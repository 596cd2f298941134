// Coordinates one job of several hosts: who is in, which generation they run,
// what happens when one fails or is lost.
//
// Free of I/O: connections are numbers that the caller gives, time is an argument, answers are values. The
// same code runs under the simulator of tests/support/cluster_simulator.h.
//
//   stage      what it is                                            leaves when
//   gathering  no world yet, or taking over: nodes come              enough are here: forming or running
//   running    all members know the newest world                     a failure, a loss, a newcomer: changing
//   changing   members were told to prepare the next one             all are ready: running; or the set of
//                                                                    members changed: changing,
//                                                                    with another generation
//   settling   changing, and a failure is not explained yet          explained, or settle_time:
//                                                                    changing, or ending
//   resting    changing, and the backoff is not over                 it is: changing
//   waiting    too few are left: stopped, new ones may come          enough: changing;
//                                                                    elastic_timeout: ending
//   ending     all were told how the job ended                       all know, or end_timeout: over
//   over       nothing is sent any more                              -
//
// Safety, where nodes may take the coordinator's place (`takeover`): a world is formed only when its members
// hold a majority of the newest world that any of them knows, and of every later proposal that any of them
// has prepared for; exactly half is enough together with its coordinator. A node prepares for a generation
// once. So worlds form a chain, and no number names two of them. Who left in good order and knows it has its
// vote here for good. A coordinator whose own host leaves stops all, names those that go on as if they had
// formed a world, and sends them to one of them. Without takeover only one coordinator ever
// is; with a Discovery (`durable`) each world is stored under its leader's fence before anybody is told.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cluster/cluster_event.h"
#include "launcher/cluster/journal.h"
#include "launcher/cluster/messages.h"
#include "launcher/model/job_config.h"
#include "launcher/model/restart_policy.h"

namespace fleetrun::launcher {

/// Of the caller's choice, each used once; 0 is none.
using ConnectionId = std::uint64_t;

/// How a connection ended. `closed`: its end was read, and there was no goodbye; such a node is lost at once.
/// A `broken` one (reset, timed out, a bad frame) may come again within the lease.
enum class Closing { closed, broken };

/// A host that was silent for so long is suspected. One whose job waits for it longer (`lost_after`) stops
/// its processes, and lets them go on when it hears its coordinator again.
constexpr std::chrono::milliseconds kQuiet{3'000};
/// What runs on a host ends so much earlier than the others give the host up.
constexpr std::chrono::milliseconds kLeaseMargin{250};

struct CoordinatorSettings {
  std::string job_id, version;
  std::string run;   // draw_run() of whoever starts the first coordinator
  std::string node;  // that it runs on; empty: it is not a node of the job (the controller of a host list)
  NodeCount nodes;
  bool elastic = false;
  bool in_place = false;  // a change that loses no server, or has standbys for those, stops nobody
  bool takeover = false;  // nodes may take the coordinator's place: worlds need a quorum
  bool durable = false;   // a Discovery arbitrates: worlds are stored before they are told
  RestartRules restarts;
  std::uint64_t seed = 1;             // of the backoffs
  std::vector<std::string> expected;  // names of the hosts that are to come, where they are known
  Endpoint own;                       // where this coordinator listens
  std::optional<Endpoint>
      heralded;  // the first coordinator's address, when this one took over somewhere else

  Instant
      predecessor_until{};  // where a Discovery arbitrates: what the coordinator before runs lives on before

  std::chrono::milliseconds beat{500};
  std::chrono::milliseconds lost_after{3'000};  // of silence; kQuiet at the latest where nothing can be saved
  std::chrono::milliseconds settle_time{500}, last_call{2'000};
  std::chrono::milliseconds join_timeout{600'000}, elastic_timeout{30'000};
  std::chrono::milliseconds gather_time{1'500};  // of a takeover, to find a quorum
  std::chrono::milliseconds prepare_timeout{
      60'000};  // grace and 30 s: a node that is not ready, or leaves and is not gone, by then is lost
  std::chrono::milliseconds end_timeout{5'000};
  std::chrono::milliseconds news_every{10'000};  // that tell waiting nodes whom they wait for

  // A host that was blamed (a failure, a loss) so often in this time rests for `quarantine`, doubled each
  // time.
  int max_blames = 3;
  std::chrono::milliseconds blame_window{600'000}, quarantine{10'000}, longest_quarantine{600'000};
};

namespace coordinating {

struct SendTo {
  std::vector<ConnectionId> to;
  SharedMessage message;
};
/// After what was sent there before is out.
struct CloseConnection {
  ConnectionId connection = 0;
};
/// Connects, says this, and closes; nobody waits for it, and it may fail.
struct TellOnce {
  Endpoint to;
  SharedMessage message;
};
/// To be stored by the Discovery; the answer comes by on_published. Only when `durable`.
struct Publish {
  Journal journal;
};
struct Note {
  ClusterEvent event;
};
/// This coordinator steps down: it found no quorum, or another one acts. Its connections are closed after
/// what was sent before, and it is asked nothing more.
struct StepDown {
  std::string why;
};
/// The job is over and everybody who could be told knows.
struct Over {
  JobEnd end;
};

using Output = std::variant<SendTo, CloseConnection, TellOnce, Publish, Note, StepDown, Over>;
using Outputs = std::vector<Output>;

struct State;

}  // namespace coordinating

class CoordinatorCore {
 public:
  using Outputs = coordinating::Outputs;

  /// `journal`: what the coordinator before knew; nullopt: this is the first one of its run.
  CoordinatorCore(CoordinatorSettings settings, std::optional<Journal> journal, Instant now);
  ~CoordinatorCore();
  CoordinatorCore(const CoordinatorCore&) = delete;
  CoordinatorCore& operator=(const CoordinatorCore&) = delete;

  /// A connection exists from its first message. Messages that do not fit are answered or ignored,
  /// never an error.
  Outputs on(ConnectionId connection, const Message& message, Instant now);
  Outputs on_closed(ConnectionId connection, Closing how, Instant now);
  /// To be called at next_deadline(), and harmless at any other time.
  Outputs on_tick(Instant now);
  Instant next_deadline() const;

  /// The answer to Publish. Not stored: another coordinator leads.
  Outputs on_published(bool stored, Instant now);
  /// Of a Discovery: nobody else leads before.
  void leads_until(Instant when) noexcept;
  /// The controller's user stops the job.
  Outputs stop(int signal, Instant now);
  /// The controller cannot go on, or a host of its list cannot be reached at all:
  /// the job ends with `end` for everybody.
  Outputs end(const JobEnd& end, Instant now);
  /// The lead is lost (Discovery): nobody is told anything any more but where to look.
  Outputs depose(const std::string& why, Instant now);

  bool over() const noexcept;
  /// Names of the expected hosts that have not come, and of those that came and are gone.
  std::vector<std::string> missing() const;
  /// The newest world; null: none was formed.
  std::shared_ptr<const World> world() const noexcept;
  const Journal& journal() const noexcept;

 private:
  std::unique_ptr<coordinating::State> state_;
};

}  // namespace fleetrun::launcher
