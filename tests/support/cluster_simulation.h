// The inside of tests/support/cluster_simulator.h: what its .cc files share.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/member_core.h"
#include "runtime/base/mix.h"
#include "tests/support/cluster_simulator.h"

namespace fleetrun::testing {

namespace cluster = fleetrun::launcher;
using cluster::Instant;
using std::chrono::milliseconds;

/// Of hosts whose processes do not end.
constexpr milliseconds kPrepareTimeout{8'000};

/// Small and fast, and the same everywhere.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * fleetrun::kGoldenGamma + 0x1234567) {}
  std::uint64_t next() { return fleetrun::mix(state_ += fleetrun::kGoldenGamma); }
  /// In [least, most].
  int number(int min, int max) {
    return min + static_cast<int>(next() % static_cast<std::uint64_t>(max - min + 1));
  }
  bool percent(int p) { return number(0, 99) < p; }
  Instant time(Instant min, Instant max) {
    return min +
           Instant(static_cast<std::int64_t>(next() % static_cast<std::uint64_t>((max - min).count() + 1)));
  }

 private:
  std::uint64_t state_;
};

enum class Happening {
  wake,
  deliver,
  dialed,
  closed,
  stopped,
  started,
  fails,
  explains,
  works,
  lapses,
  lapsed,
  leaves,
  chaos,
  heals,
  judge
};

struct Occurrence {
  Instant at{};
  std::uint64_t order = 0;
  Happening what = Happening::wake;
  int launcher = -1;
  std::uint64_t number = 0, other = 0;
  bool operator>(const Occurrence& its) const { return at != its.at ? at > its.at : order > its.order; }
};

struct Packet {
  enum class Kind { message, fin, reset } kind = Kind::message;
  std::optional<cluster::SharedMessage> message;
  Instant due{};
};

struct Link {
  int ends[2] = {-1, -1};  // launchers: who dialed, who accepted
  bool open[2] = {true, true};
  std::uint64_t uplink = 0;
  bool here = false;
  std::deque<Packet> packets[2];  // from ends[0], from ends[1]
};

/// What the supervisor of a launcher would hold.
struct Processes {
  enum class Life { none, running, stopping } life = Life::none;
  std::uint64_t start_number = 0;  // events of an earlier one do not count
  std::uint64_t generation = 0;
  int attempt = -1;
  std::string run;
  bool done = false;
  std::uint64_t preparing = 0;
};

struct Launcher {
  int number = 0, host = 0;
  bool alive = true, frozen = false, over = false, leaves = false;
  Instant thawed{-100'000'000};  // when it was frozen last
  std::unique_ptr<cluster::MemberCore> member;
  std::unique_ptr<cluster::CoordinatorCore> coordinator;
  bool took_over = false;
  std::vector<Occurrence> deferred;
  Instant wake_at = Instant::max();
  int uplink = -1;  // a Link
  cluster::joining::Dial dialing;
  cluster::PodOffer offer;
  std::uint64_t told = 0;
  std::string told_run;
  std::optional<std::pair<std::uint64_t, Instant>> unexplained;  // generation and death of a failed process
  Processes processes;
  Instant lease_stands{}, lease_ends{};  // as its fleetrun-init knows it; 0: never
  int status = -1;
  std::string why;
};

struct Rules {
  int hosts = 3;
  bool controller = false;  // a coordinator that is not a node, and no takeover
  cluster::NodeCount nodes;
  bool elastic = false, in_place = false;
  cluster::RestartRules restarts;
  bool pinned = false;
  Instant longest_delay{};
  Instant chaos_ends{}, judged{}, ended{};
  milliseconds elastic_timeout{}, lost_after{};
  int happenings = 0;
  bool leavers = false;  // many hosts are stopped by their users, and their processes take their time
  Instant work{};        // of an attempt; min(): until some time after the chaos
  bool coded = false;    // messages go as bytes
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool traced);
  SimulationOutcome run();

 private:
  friend struct MemberAnswers;
  friend struct CoordinatorAnswers;
  // cluster_simulator.cc
  Rules draw_rules();
  int start_launcher(int host);
  void make_coordinator(Launcher& launcher, std::optional<cluster::Journal> journal, bool took_over);
  cluster::CoordinatorSettings coordinator_settings(const Launcher& launcher) const;
  void happen(const Occurrence& occurrence);
  void apply(Launcher& launcher, cluster::joining::Outputs outputs);
  void apply(Launcher& launcher, cluster::coordinating::Outputs outputs);
  void schedule(Launcher& launcher);
  void at(Instant when, Happening what, int launcher = -1, std::uint64_t number = 0, std::uint64_t other = 0);
  template <class Text>
  void trace(const Launcher* launcher, Text text) {
    if (traced_) trace_line(launcher, text());
  }
  void trace_line(const Launcher* launcher, const std::string& text);

  // cluster_network.cc
  void dial(Launcher& launcher, const cluster::joining::Dial& dial);
  void dialed(Launcher& launcher, std::uint64_t uplink);
  void transmit(int link, int from, Packet packet);
  void send(int link, int from, const cluster::SharedMessage& message);
  void deliver(int link, int from);
  void receive(int link, int from, const Packet& packet);
  void drop(int link, int side, cluster::Closing how);  // one side learns that it is over
  void dropped(Launcher& launcher, int link, bool closed);
  void close(int link, int side, Packet::Kind kind);
  bool cut(int from_host, int to_host) const { return cuts_[index(from_host)][index(to_host)]; }
  Launcher* listener(const Endpoint& endpoint);
  Instant delay(const Launcher& from, const Launcher& to);
  static cluster::ConnectionId connection_of(int link) {
    return static_cast<cluster::ConnectionId>(link) + 1;
  }
  static int link_of(cluster::ConnectionId connection) { return static_cast<int>(connection) - 1; }
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  // cluster_chaos.cc
  void cause_trouble();
  void cut_link(Instant how_long);
  void partition(Instant how_long);
  void break_link();
  void heal();
  void kill(Launcher& launcher, bool host_too);
  void freeze(Launcher& launcher, Instant how_long);
  void thaw(Launcher& launcher);
  Launcher* some_launcher();

  // cluster_processes.cc
  void on_prepare(Launcher& launcher, std::uint64_t generation);
  void on_world(Launcher& launcher, const cluster::joining::TellWorld& told);
  void on_fenced(Launcher& launcher);
  void on_lease(Launcher& launcher, const cluster::joining::TellLease& lease);
  void lapse(Launcher& launcher, Instant ends);
  void on_over(Launcher& launcher, const cluster::JobEnd& end);
  void process_event(Launcher& launcher, const Occurrence& occurrence);
  void explain(Launcher& launcher);
  void check_world(Launcher& launcher, const cluster::joining::TellWorld& told);
  void check_overlap(const Launcher& later);
  void judge();
  bool enough_live() const;
  bool processes_stop() const;
  bool a_world_runs() const;
  void violate(const std::string& what);

  Chance chance_;
  bool traced_;
  Instant now_{1'000'000};
  Rules rules_;
  std::uint64_t orders_ = 0;
  int same_time_ = 0;  // things that happened at this very moment
  std::vector<Occurrence> heap_;
  std::deque<Launcher> launchers_;
  std::deque<Link> links_;
  std::array<std::array<bool, 8>, 8> cuts_{};
  std::map<std::pair<std::string, std::uint64_t>, std::string> hashes_;  // of each world that a node was told
  Instant lost_{};  // when a coordinator last gave a host up, whose lease it waits for
  std::optional<std::size_t> worlds_when_judged_;  // how many, when processes held up the one that was due
  std::shared_ptr<const cluster::World> newest_;
  SimulationOutcome outcome_;
};

}  // namespace fleetrun::testing
