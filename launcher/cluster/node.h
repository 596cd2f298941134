// A node of a job: a launcher's I/O around its two state machines. A MemberCore always; a CoordinatorCore
// while this node coordinates, which it reaches from inside. Of join.cc alone.
//
// Who coordinates: with --master the launcher that can listen at that address; whoever cannot, since it is
// another host's or another launcher was first, dials. Before the job has begun, who dials in vain tries to
// listen again: who was first may be gone, or was another program, and Linux may refuse each of two that
// listen at the same moment for the other's sake. With etcd whoever is elected. One listener serves both
// purposes of a node: to be the coordinator, and to be found by the others when theirs is lost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/cluster/channel_server.h"
#include "launcher/cluster/coordinator_driver.h"
#include "launcher/cluster/deadline_timer.h"
#include "launcher/cluster/member_core.h"
#include "launcher/cluster/sealed_channel.h"
#include "launcher/cluster/ways.h"
#include "launcher/model/discovery.h"
#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"
#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"

namespace fleetrun::launcher {

class Node;

/// The connection to the coordinator, where that is another launcher's.
class Uplink final : public ChannelListener {
 public:
  Uplink(Node& node, std::uint64_t number) : node_(node), number_(number) {}
  void on_open() override;
  void on_message(std::string_view message) override;
  void on_closed(const ChannelClosed& closed) override;

  std::unique_ptr<Channel> channel;
  bool open = false;

 private:
  Node& node_;
  std::uint64_t number_;
};

class Node final : public std::enable_shared_from_this<Node>,
                   private ChannelServerListener,
                   private DiscoveryListener {
 public:
  Node(boost::asio::io_context& loop, const JobConfig& config, const NodeSelf& self, ChannelSettings channel,
       MembershipListener& listener)
      : loop_(loop),
        config_(config),
        self_(self),
        channel_(std::move(channel)),
        listener_(&listener),
        timer_(loop, [this] { report([](MemberCore& member) { return member.on_tick(cluster_now()); }); }),
        name_retry_(loop, [this] { look_up_master(); }),
        farewell_(loop, [this] { finish_closing(); }) {}

  /// Throws: as join_job() does.
  void start();
  /// Nothing happens here any more, and nobody is told anything.
  void let_go();

  // What the supervisor reports.
  template <class Report>
  void report(Report report) {
    if (member_) perform(report(*member_));
  }
  void close(std::function<void()> closed);
  /// Tells people.
  void warn(const std::string& what, const std::string& hint) {
    news(NewsLevel::warning, hint.empty() ? what : what + " (" + hint + ")");
  }

  // What the uplink tells.
  void on_uplink_open(std::uint64_t number);
  void on_uplink_message(std::uint64_t number, std::string_view bytes);
  void on_uplink_closed(std::uint64_t number, const ChannelClosed& closed, bool was_open);

 private:
  // Beginning.
  void stand_for_election();
  void look_up_master();
  void on_master_found(const FoundAddresses& found);
  void wait_for_name(const std::string& why);
  UniqueFd listen_as_master() const;
  bool coordinate_instead(const std::string& why);
  bool listen_as_successor();
  void begin(UniqueFd socket, bool coordinates);
  void fail(const Error& error);

  // The coordinator here.
  void coordinate(std::optional<Journal> journal);
  CoordinatorHooks coordinator_hooks();
  void send_from_here(const std::vector<ConnectionId>& to, const SharedMessage& message);
  void on_stepped_down(const std::string& why);
  void on_coordinator_over();

  // DiscoveryListener
  void lead(std::uint64_t fence, const std::optional<std::string>& state) override;
  void leads_until(std::chrono::nanoseconds when) override;
  void follow(const Endpoint& coordinator) override;
  void lost_lead(const std::string& why) override;
  void in_doubt(const std::string& why) override { news(NewsLevel::warning, why); }
  void on_published(bool stored) override;
  void failed(const Error& error) override { fail(error); }

  // ChannelServerListener
  void on_open(ConnectionId, const std::string&) override {}
  void on_message(ConnectionId id, std::string_view bytes) override;
  void on_closed(ConnectionId id, const ChannelClosed& closed) override;
  void on_refused(const ChannelClosed& closed) override { warn(closed.why, closed.hint); }
  void on_strangers(const StrangerCount& count) override { news(NewsLevel::debug, to_string(count)); }

  void perform(joining::Outputs outputs);
  void act(joining::Dial& dial);
  void act(joining::Send& send);
  void act(joining::HangUp& hang_up);
  void act(joining::Coordinate& order);
  void act(joining::Answer& answer);
  void act(joining::TellNews& tell);
  void act(joining::TellPrepare& tell);
  void act(joining::TellWorld& tell);
  void act(joining::TellLease& tell);
  void act(joining::TellFenced& tell);
  void act(joining::TellJobOver& tell);

  /// In a turn of the loop of its own, and in order; not at all once this node was let go of.
  void later(std::function<void(Node&)> action);
  template <class Tell>
  void tell(Tell tell) {
    later([tell = std::move(tell)](Node& node) {
      if (node.listener_) tell(*node.listener_);
    });
  }
  void news(NewsLevel level, std::string text) {
    tell([level, text = std::move(text)](MembershipListener& listener) { listener.on_news(level, text); });
  }
  void drop_uplink();
  void finish_closing();

  boost::asio::io_context& loop_;
  JobConfig config_;
  NodeSelf self_;
  ChannelSettings channel_;
  MembershipListener* listener_;  // nullptr: told nothing any more
  bool alive_ = true;

  std::unique_ptr<NameLookup> lookup_;
  std::unique_ptr<Ways> ways_;  // of the newest world
  std::unique_ptr<MemberCore> member_;
  std::unique_ptr<ChannelServer> server_;
  std::unique_ptr<Discovery> discovery_;  // with etcd
  std::unique_ptr<CoordinatorDriver> coordinator_;
  std::unique_ptr<Uplink> uplink_;   // to another launcher
  std::uint64_t uplink_number_ = 0;  // of the newest
  ConnectionId here_ = 0;  // the newest uplink, where it leads to the coordinator here; 0: it does not
  bool welcomed_ = false;
  std::vector<SocketAddress> own_masters_;  // addresses of the master that may be this host's
  int vain_dials_ = 0;                      // in a row
  Instant lookup_since_{};
  bool told_of_name_ = false;
  DeadlineTimer timer_, name_retry_, farewell_;
  std::function<void()> closed_;
};

}  // namespace fleetrun::launcher
