#include "launcher/cluster/node.h"

#include <errno.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "launcher/cluster/coordinator.h"
#include "launcher/cluster/node_settings.h"
#include "launcher/cluster/rendezvous_address.h"
#include "launcher/etcd/etcd_discovery.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::milliseconds kNameRetry{500};
constexpr int kVainDials = 5;                          // in a row, then people are told
constexpr int kRefusal = 125;                          // fleetrun's own exit status
constexpr ConnectionId kHere = ConnectionId{1} << 63;  // from there on: this node's own connections
constexpr std::chrono::milliseconds kFarewell{7'000};  // for the others to hear how the job ended
constexpr std::chrono::milliseconds kLastWords{500};   // for the others to read who coordinates from now on

Closing closing_of(const ChannelClosed& closed) {
  return closed.end == ChannelEnd::goodbye ? Closing::closed : Closing::broken;
}

}  // namespace

void Uplink::on_open() {
  open = true;
  node_.on_uplink_open(number_);
}
void Uplink::on_message(std::string_view message) {
  node_.on_uplink_message(number_, message);
}
void Uplink::on_closed(const ChannelClosed& closed) {
  node_.on_uplink_closed(number_, closed, open);
}

void Node::later(std::function<void(Node&)> action) {
  boost::asio::post(loop_, [self = weak_from_this(), action = std::move(action)] {
    const auto node = self.lock();
    if (node && node->alive_) action(*node);
  });
}

// ---- Beginning ----

void Node::start() {
  const Rendezvous& rendezvous = config_.rendezvous;
  if (rendezvous.kind == Rendezvous::Kind::etcd) return stand_for_election();
  if (rendezvous.kind != Rendezvous::Kind::master)
    throw Error(ErrorKind::config, "the job has several hosts, but no rendezvous address",
                "give --master HOST:PORT on all of them");
  if (rendezvous.master.port == 0) {
    // Nobody can know the port yet: this is the first launcher.
    const Endpoint place = {rendezvous.master.host.empty() ? config_.host : rendezvous.master.host, 0};
    const FoundAddresses found = look_up_now(place);
    UniqueFd socket;
    if (!found.addresses.empty()) socket = listening_socket(rendezvous_addresses(place, found).front());
    if (!socket) refuse_to_listen(place, found.addresses.empty() ? EADDRNOTAVAIL : errno);
    return begin(std::move(socket), true);
  }
  lookup_since_ = cluster_now();
  look_up_master();
}

void Node::look_up_master() {
  lookup_ =
      look_up(loop_, config_.rendezvous.master, [this](FoundAddresses found) { on_master_found(found); });
}

/// A name may become known: those of pods do, a while after these have begun.
/// Its own host has to listen there then.
void Node::wait_for_name(const std::string& why) {
  const std::string what = "the name " + config_.rendezvous.master.host + " is not known here: " + why;
  if (cluster_now() - lookup_since_ >= config_.rendezvous.join_timeout)
    return fail(Error(ErrorKind::config, what, "check --master, and the name server"));
  if (!std::exchange(told_of_name_, true)) news(NewsLevel::warning, what + "; trying again");
  name_retry_.set(cluster_now() + kNameRetry);
}

void Node::stand_for_election() {
  if (!listen_as_successor()) refuse_to_listen({self_.offer.host, 0}, EADDRNOTAVAIL);
  discovery_ = make_etcd_discovery(loop_, {.address = parse_etcd_address(config_.rendezvous.etcd),
                                           .job_id = config_.job_id,
                                           .may_coordinate = config_.rendezvous.may_coordinate,
                                           .join_timeout = config_.rendezvous.join_timeout});
  member_ = std::make_unique<MemberCore>(member_settings(config_, self_));
  perform(member_->start(cluster_now()));
  discovery_->start({self_.offer.host, server_->endpoints().front().port}, *this);
}

void Node::on_master_found(const FoundAddresses& found) {
  try {
    if (!config_.rendezvous.may_coordinate) return begin({}, false);
    if (found.addresses.empty()) return wait_for_name(found.failure);
    own_masters_ = rendezvous_addresses(config_.rendezvous.master, found);
    std::erase_if(own_masters_, [](const SocketAddress& address) { return !may_be_own(address); });
    UniqueFd socket = listen_as_master();
    const bool coordinates = static_cast<bool>(socket);
    begin(std::move(socket), coordinates);
  } catch (const Error& error) {
    fail(error);
  }
}

/// Empty: another host has the address, or another program, likely a launcher that was first, its port.
UniqueFd Node::listen_as_master() const {
  for (const SocketAddress& address : own_masters_) {
    UniqueFd socket = listening_socket(address);
    if (socket || errno == EADDRINUSE) return socket;
    if (errno != EADDRNOTAVAIL) refuse_to_listen(to_endpoint(address), errno);
  }
  return {};
}

/// Nobody answered the dial: where no job has begun for this node, it coordinates if it can listen by now.
bool Node::coordinate_instead(const std::string& why) {
  if (own_masters_.empty() || !member_ || !member_->may_begin()) return false;
  if (UniqueFd socket = listen_as_master()) {
    begin(std::move(socket), true);
    return true;
  }
  if (++vain_dials_ == kVainDials)
    warn("no launcher answers at " + to_string(config_.rendezvous.master) + " (" + why +
             "), and this host's port is held by another program; trying again",
         "choose another port, or end that program");
  return false;
}

/// Where the others find this node, should it have to coordinate:
/// at a port of the user's range, where there is one.
bool Node::listen_as_successor() {
  const auto [first, last] = config_.port_range.value_or(std::pair(0, 0));
  for (const SocketAddress& address : look_up_now({self_.offer.host, 0}).addresses) {
    for (int port = last; port >= first;
         --port) {  // from above: ports for processes are taken from anywhere in it
      UniqueFd socket = listening_socket(with_port(address, static_cast<std::uint16_t>(port)));
      if (!socket && errno == EADDRINUSE) continue;
      if (!socket) break;
      server_ = serve(loop_, std::move(socket), channel_, {}, *this);
      return true;
    }
  }
  return false;
}

void Node::begin(UniqueFd socket, bool coordinates) {
  MemberSettings settings = member_settings(config_, self_);
  if (coordinates) {
    own_masters_.clear();  // it listens there from now on
    server_ = serve(loop_, std::move(socket), channel_, {}, *this);
    settings.successor = server_->endpoints().front();
  } else if (has_takeover(config_.rendezvous)) {
    if (listen_as_successor())
      settings.successor = {self_.offer.host, server_->endpoints().front().port};
    else
      news(NewsLevel::warning, "no port is left to take the coordinator's place with");
  }
  settings.coordinates = coordinates;
  settings.coordinator = coordinates ? server_->endpoints().front() : config_.rendezvous.master;
  if (coordinates) coordinate(std::nullopt);
  member_ = std::make_unique<MemberCore>(settings);
  perform(member_->start(cluster_now()));
}

/// It cannot take part: nothing more is tried.
void Node::fail(const Error& error) {
  member_.reset();
  JobEnd end;
  end.exit_status = kRefusal;
  end.why = error.hint().empty() ? error.what() : std::string(error.what()) + "\n  hint: " + error.hint();
  tell([end](MembershipListener& listener) { listener.on_job_over(end); });
}

void Node::let_go() {
  alive_ = false;
  listener_ = nullptr;
  lookup_.reset();
  ways_.reset();
  uplink_.reset();
  discovery_.reset();
  coordinator_.reset();
  server_.reset();
}

// ---- The coordinator here ----

void Node::coordinate(std::optional<Journal> journal) {
  CoordinatorSettings settings = coordinator_settings(config_);
  settings.node = self_.node;
  settings.run = draw_run();
  settings.seed = std::hash<std::string>()(settings.run);
  settings.own = server_->endpoints().front();
  if (journal && settings.durable) settings.predecessor_until = member_->predecessor_until(cluster_now());
  if (journal && config_.rendezvous.kind == Rendezvous::Kind::master)
    settings.heralded = config_.rendezvous.master;
  coordinator_ = drive(loop_, settings, std::move(journal), channel_, coordinator_hooks());
}

CoordinatorHooks Node::coordinator_hooks() {
  CoordinatorHooks hooks;
  hooks.send = [this](const std::vector<ConnectionId>& to, const SharedMessage& message) {
    send_from_here(to, message);
  };
  hooks.close = [this](ConnectionId id) {
    if (id < kHere) return server_->close(id);
    if (id != here_) return;
    later([number = uplink_number_](Node& node) {
      if (node.uplink_number_ == number && std::exchange(node.here_, 0) != 0)
        node.perform(node.member_->on_closed(number, Closing::closed, cluster_now()));
    });
  };
  hooks.publish = [this](const Journal& journal) {
    if (discovery_) discovery_->publish(encode(journal));
  };
  hooks.event = [this](const ClusterEvent& event) {
    news(std::holds_alternative<ProgramsDiffer>(event) ? NewsLevel::warning : NewsLevel::debug,
         to_string(event));
    if (const auto notice = notice_of(event))
      tell([notice](MembershipListener& listener) { listener.on_notice(*notice); });
  };
  hooks.stepped_down = [this](const std::string& why) { on_stepped_down(why); };
  hooks.over = [this](const JobEnd&) { on_coordinator_over(); };
  return hooks;
}

void Node::send_from_here(const std::vector<ConnectionId>& to, const SharedMessage& message) {
  for (const ConnectionId id : to) {
    if (id < kHere) {
      server_->send(id, message.share());
    } else if (id == here_) {
      later([number = uplink_number_, message](Node& node) {
        if (node.uplink_number_ == number && node.here_ != 0)
          node.perform(node.member_->on(number, message.message(), cluster_now()));
      });
    }
  }
}

void Node::on_stepped_down(const std::string& why) {
  server_->close_all();
  coordinator_.reset();
  here_ = 0;
  if (closed_) {
    server_->stop_listening();
    farewell_.set(cluster_now() + kLastWords);
  }
  report([&](MemberCore& member) { return member.on_stepped_down(why, cluster_now()); });
}

void Node::on_coordinator_over() {
  server_->close_all();
  server_->stop_listening();
  coordinator_.reset();
  if (closed_) finish_closing();
}

// ---- The election ----

void Node::lead(std::uint64_t, const std::optional<std::string>& state) {
  std::optional<Journal> journal;
  try {
    if (state) journal = decode_journal(*state);
  } catch (const Error& error) {
    return fail(error);
  }
  coordinate(std::move(journal));
  report([](MemberCore& member) { return member.follow(std::nullopt, cluster_now()); });
}

void Node::leads_until(std::chrono::nanoseconds when) {
  if (coordinator_) coordinator_->leads_until(std::chrono::duration_cast<Instant>(when));
}

void Node::follow(const Endpoint& coordinator) {
  report([&](MemberCore& member) { return member.follow(coordinator, cluster_now()); });
}

void Node::lost_lead(const std::string& why) {
  if (coordinator_) coordinator_->depose(why);
}

void Node::on_published(bool stored) {
  if (coordinator_) coordinator_->on_published(stored);
}

// ---- Connections of others ----

void Node::on_message(ConnectionId id, std::string_view bytes) {
  std::optional<Message> message;
  try {
    message = decode(bytes);
  } catch (const Error& error) {
    warn(std::string("a message of another launcher cannot be read: ") + error.what(), error.hint());
    server_->close(id);
    if (coordinator_) coordinator_->on_closed(id, Closing::broken);
    return;
  }
  if (coordinator_) return coordinator_->on_message(id, *message);
  report([&](MemberCore& member) { return member.on_stranger(id, *message, cluster_now()); });
}

void Node::on_closed(ConnectionId id, const ChannelClosed& closed) {
  if (coordinator_) coordinator_->on_closed(id, closing_of(closed));
}

// ---- The uplink ----

void Node::on_uplink_open(std::uint64_t number) {
  vain_dials_ = 0;
  report([&](MemberCore& member) { return member.on_connected(number, cluster_now()); });
}

void Node::on_uplink_message(std::uint64_t number, std::string_view bytes) {
  std::optional<Message> message;
  try {
    message = decode(bytes);
  } catch (const Error& error) {
    warn(std::string("a message of the coordinator cannot be read: ") + error.what(), error.hint());
    uplink_.reset();
    return report(
        [&](MemberCore& member) { return member.on_closed(number, Closing::broken, cluster_now()); });
  }
  welcomed_ = welcomed_ || std::holds_alternative<Welcome>(*message);
  report([&](MemberCore& member) { return member.on(number, *message, cluster_now()); });
}

void Node::on_uplink_closed(std::uint64_t number, const ChannelClosed& closed, bool was_open) {
  uplink_.reset();
  // Before the first welcome nothing will change by dialling again; later, it may be one address of several.
  const bool hopeless = closed.end == ChannelEnd::refused || closed.end == ChannelEnd::stranger;
  if (!was_open && hopeless && !welcomed_) return fail(Error(ErrorKind::config, closed.why, closed.hint));
  if (!member_) return;
  if (was_open) return perform(member_->on_closed(number, closing_of(closed), cluster_now()));
  if (coordinate_instead(closed.why)) return;
  perform(member_->on_dial_failed(number, closed.why, cluster_now()));
}

void Node::drop_uplink() {
  uplink_.reset();
  const ConnectionId here = std::exchange(here_, 0);
  if (here == 0) return;
  later([here](Node& node) {
    if (node.coordinator_) node.coordinator_->on_closed(here, Closing::closed);
  });
}

// ---- What the member says ----

void Node::perform(joining::Outputs outputs) {
  for (auto& output : outputs) std::visit([this](auto& one) { act(one); }, output);
  if (alive_ && member_) timer_.set(member_->next_deadline());
}

void Node::act(joining::Dial& dial) {
  drop_uplink();
  uplink_number_ = dial.uplink;
  if (dial.here) {
    here_ = kHere + dial.uplink;
    return later([number = dial.uplink](Node& node) {
      if (node.uplink_number_ != number || node.here_ == 0) return;
      node.report([&](MemberCore& member) {
        if (node.coordinator_) return member.on_connected(number, cluster_now());
        node.here_ = 0;
        return member.on_dial_failed(number, "this host no longer coordinates the job", cluster_now());
      });
    });
  }
  uplink_ = std::make_unique<Uplink>(*this, dial.uplink);
  uplink_->channel = launcher::dial(loop_, dial.to, channel_, *uplink_);
}

void Node::act(joining::Send& send) {
  if (here_ == 0) {
    if (uplink_ && uplink_->channel) uplink_->channel->send(send.message.bytes());
    return;
  }
  later([here = here_, message = send.message](Node& node) {
    if (node.coordinator_) node.coordinator_->on_message(here, message.message());
  });
}

void Node::act(joining::HangUp& hang_up) {
  if (uplink_ && uplink_->channel) hang_up.cut ? uplink_->channel->cut() : uplink_->channel->close();
  drop_uplink();
}

void Node::act(joining::Coordinate& order) {
  if (order.journal.run.empty()) return coordinate(std::nullopt);
  coordinate(std::move(order.journal));
}

void Node::act(joining::Answer& answer) {
  if (!server_) return;
  server_->send(answer.stranger, answer.message.bytes());
  server_->close(answer.stranger);
}

void Node::act(joining::TellNews& tell_news) {
  news(tell_news.level, tell_news.text);
}

void Node::act(joining::TellPrepare& prepare) {
  tell([prepare](MembershipListener& listener) { listener.on_prepare(prepare.generation, prepare.why); });
}

void Node::act(joining::TellWorld& world) {
  if (!world.world) return;  // only where lists are not wanted
  if (!world.news.update)
    ways_ = try_ways(loop_, *world.world, static_cast<std::size_t>(world.news.rank),
                     [this](const std::string& text) { news(NewsLevel::warning, text); });
  tell([world](MembershipListener& listener) {
    const auto rank = static_cast<std::size_t>(world.news.rank);
    world.news.update ? listener.on_update(*world.world, rank) : listener.on_world(*world.world, rank);
  });
}

void Node::act(joining::TellLease& lease) {
  tell([lease](MembershipListener& listener) { listener.on_lease({lease.stands, lease.ends}); });
}

void Node::act(joining::TellFenced& fenced) {
  tell([why = fenced.why](MembershipListener& listener) { listener.on_fenced(why); });
}

void Node::act(joining::TellJobOver& over) {
  if (discovery_ && !coordinator_) discovery_->stop(false);  // nobody is to lead a job that is over
  tell([end = over.end](MembershipListener& listener) { listener.on_job_over(end); });
}

// ---- Closing ----

void Node::close(std::function<void()> closed) {
  closed_ = std::move(closed);
  listener_ = nullptr;
  lookup_.reset();
  ways_.reset();
  const bool job_over = member_ && member_->over() && !member_->left();
  // After the end this says that it is known here: the coordinator waits for that.
  if (member_) perform(member_->leave("its launcher ends", cluster_now()));
  // Where the job is over, those who are connected here have to hear it. Where it goes on, what runs on the
  // others ends, and then they are told which of them coordinates; with etcd that is theirs to find.
  const bool hands_over = coordinator_ && has_takeover(config_.rendezvous) && coordinator_->core().world();
  if (!coordinator_ || !(job_over || hands_over)) return later([](Node& node) { node.finish_closing(); });
  const auto patience = job_over ? kFarewell : coordinator_settings(config_).prepare_timeout + kFarewell;
  farewell_.set(cluster_now() + patience);
}

void Node::finish_closing() {
  const auto closed = std::exchange(closed_, nullptr);
  if (!closed) return;
  if (uplink_ && uplink_->channel) uplink_->channel->close();
  if (server_) {
    server_->close_all();
    server_->stop_listening();
  }
  coordinator_.reset();
  if (discovery_) discovery_->stop(member_ && member_->over());
  closed();
}

}  // namespace fleetrun::launcher
