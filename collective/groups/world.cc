// What the state's mutex guards changes by news, which the store's thread brings, and by the calls of this
// rank. Nothing waits while it is held: abort() of a communicator does not.
#include "collective/groups/world.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "collective/cpu/gloo_communicator.h"
#include "collective/cpu/hierarchical_communicator.h"
#include "collective/cpu/shared_communicator.h"
#include "collective/groups/watched_communicator.h"
#include "collective/store/memory_store.h"
#include "collective/store/store_state.h"
#include "collective/store/tcp_store.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/text.h"

namespace fleetrun::collective {
namespace {

using Clock = Store::Clock;

constexpr const char* kRendezvous = "world/meeting";
/// What a rank said before it left is here by then.
constexpr std::chrono::seconds kLastWords{1};
/// Behind what groups' names begin with, in the place of one name.
constexpr char kAny = '*';

/// This boot of this host, its network namespace, and the user:
/// who has all in common reaches each other's unix sockets.
std::string own_host_key() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat network = {};
  ::stat("/proc/self/ns/net", &network);
  if (boot.empty()) boot = host_name();
  return boot + " net " + std::to_string(network.st_ino) + " user " + std::to_string(::geteuid());
}

std::string encode_error(const Error& error) {
  return encode(
      {StoreMessage::Kind::refused, 0, static_cast<std::int64_t>(error.kind()), error.what(), error.hint()});
}

Error decode_error(const std::string& text) {
  const StoreMessage message = decode_store_message(text);
  return Error(static_cast<ErrorKind>(message.number), message.name, message.value);
}

/// Whether what was announced of `subject` is for the group of this name.
bool concerns(const std::string& subject, const std::string& name) {
  if (!subject.ends_with(kAny)) return subject == name;
  return name.starts_with(std::string_view(subject).substr(0, subject.size() - 1));
}

struct Member {
  std::string host_key, address;
};

std::string encode_member(const Member& member) {
  return encode({StoreMessage::Kind::set, 0, 0, member.host_key, member.address});
}

/// "all/ranks 0,2": in messages it says which ranks of the whole group its own numbers stand for.
std::string sub_group(const std::string& group, const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return group + "/ranks " + join(names, ",");
}

/// "rank 0 (rank 1 of the job)".
std::string name_in(const std::vector<int>& ranks, int rank) {
  const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const std::string also = place == rank ? "" : " (rank " + std::to_string(rank) + " of the job)";
  return "rank " + std::to_string(place) + also;
}

Member decode_member(const std::string& text) {
  StoreMessage message = decode_store_message(text);
  return {std::move(message.name), std::move(message.value)};
}

}  // namespace

struct World::State : std::enable_shared_from_this<World::State> {
  explicit State(WorldOptions wanted) : options(std::move(wanted)) {}

  void meet();
  void hear(const StoreNews& news);
  void lose(int rank, const std::string& why);
  /// Throws where a group of `ranks` cannot go on.
  void check_group(const std::string& name, const std::vector<int>& ranks);
  /// Throws where it cannot come together, either: a rank has left the job in good order.
  void check_meeting(const std::string& name, const std::vector<int>& ranks);
  Error loss(const std::string& name, const std::vector<int>& ranks, int rank) const;
  std::vector<std::string> hosts_of(const std::vector<int>& ranks) const;
  Grouping group(const std::vector<int>& ranks, const CommunicatorOptions& spec) const;
  std::unique_ptr<Communicator> connect(const Place& place, const std::vector<int>& ranks,
                                        const CommunicatorOptions& spec);
  std::unique_ptr<Communicator> connect_alike(const Place& place, const std::string& name,
                                              const RankGroup& group, Store& store,
                                              const CommunicatorOptions& spec) const;
  TimeLimit call_within(const CommunicatorOptions& spec) const;
  std::chrono::milliseconds meet_within(const CommunicatorOptions& spec) const;
  std::unique_ptr<Communicator> watch(std::unique_ptr<Communicator> inner, const std::vector<int>& ranks);
  std::string wait(const std::string& name, Clock::time_point deadline, const std::function<void()>& concern);

  class Connected;
  struct Group {
    std::function<void(const Error&)> tell;
    std::vector<int> ranks;
  };
  /// Members of a group hear of losses and failures as long as they are here.
  void add(const std::string& name, Group group);
  void forget(const std::string& name) noexcept;

  WorldOptions options;
  std::vector<std::string> hosts, addresses;  // by rank

  mutable std::mutex mutex;
  std::map<int, std::string> lost;        // and why
  std::map<int, Clock::time_point> left;  // in good order
  std::map<std::string, Error> failed;    // groups
  std::map<std::string, Group> groups;
  std::set<std::string> names;  // of groups that there have been

  MemoryStore memory;             // of a world of one
  std::unique_ptr<TcpStore> tcp;  // of any other; last: its thread uses what is above
};

namespace {

/// The store, as a group of ranks uses it while it forms: waiting ends when one of them is lost.
class GroupStore : public Store {
 public:
  GroupStore(Store& store, TcpStore* tcp, TcpStore::Concern concern)
      : store_(store), tcp_(tcp), concern_(std::move(concern)) {}

  void set(const std::string& name, const std::string& value) override { store_.set(name, value); }
  std::string wait(const std::string& name, Clock::time_point deadline) override {
    return tcp_ ? tcp_->wait(name, deadline, concern_) : store_.wait(name, deadline);
  }
  std::int64_t add(const std::string& name, std::int64_t amount) override { return store_.add(name, amount); }
  bool check() override {
    if (tcp_) concern_();
    return tcp_ != nullptr;
  }

 private:
  Store& store_;
  TcpStore* tcp_;
  TcpStore::Concern concern_;
};

}  // namespace

void World::State::meet() {
  if (options.rank < 0 || options.rank >= options.size)
    throw Error(ErrorKind::config, std::to_string(options.rank) + " is not a rank of a world of " +
                                       std::to_string(options.size));
  if (options.host_key.empty()) options.host_key = own_host_key();
  if (options.size == 1) {
    hosts = {options.host_key};
    addresses = {options.address};
    return;
  }
  const auto deadline = Clock::now() + options.meet_within;
  TcpStoreOptions wanted;
  wanted.endpoint = options.store;
  wanted.rank = options.rank;
  wanted.size = options.size;
  wanted.attempt = options.attempt;
  wanted.access = options.access;
  wanted.shares_port = options.shares_port;
  wanted.meet_within = options.meet_within;
  wanted.on_news = [this](const StoreNews& news) { hear(news); };
  wanted.concern = options.concern;
  tcp = std::make_unique<TcpStore>(std::move(wanted));
  const std::string address = options.address.empty() ? tcp->address() : options.address;
  std::map<int, std::string> members;
  try {
    members = tcp->gather(kRendezvous, encode_member({options.host_key, address}), false, deadline,
                          [this] { check_group(kRendezvous, {}); });
  } catch (const Error& error) {
    // The others' deadlines are not all over, and rank 0 takes the store along.
    if (options.rank == 0) tcp->announce(kRendezvous, encode_error(error));
    throw;
  }
  for (const auto& [rank, text] : members) {
    Member member = decode_member(text);
    hosts.push_back(std::move(member.host_key));
    addresses.push_back(std::move(member.address));
  }
}

Error World::State::loss(const std::string& name, const std::vector<int>& ranks, int rank) const {
  return Error(ErrorKind::network, "group " + name + ": " + name_in(ranks, rank) + " died: " + lost.at(rank),
               "look at its log; go on with the ranks that are left, or start the job again");
}

void World::State::hear(const StoreNews& news) {
  if (news.kind == StoreNews::Kind::lost) return lose(news.rank, news.text);
  const std::lock_guard lock(mutex);
  if (news.kind == StoreNews::Kind::left) left.try_emplace(news.rank, Clock::now());
  if (news.kind != StoreNews::Kind::announced) return;
  const Error why = decode_error(news.text);
  failed.try_emplace(news.subject, why);
  for (const auto& [name, group] : groups)
    if (concerns(news.subject, name)) group.tell(why);
}

void World::State::lose(int rank, const std::string& why) {
  const std::lock_guard lock(mutex);
  if (!lost.try_emplace(rank, why).second) return;
  for (const auto& [name, group] : groups)
    if (std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end())
      group.tell(loss(name, group.ranks, rank));
}

void World::State::check_group(const std::string& name, const std::vector<int>& ranks) {
  if (options.concern) options.concern();
  const std::lock_guard lock(mutex);
  for (const auto& [subject, why] : failed)
    if (concerns(subject, name)) throw Error(why);
  for (const int rank : ranks)
    if (lost.contains(rank)) throw loss(name, ranks, rank);
}

void World::State::check_meeting(const std::string& name, const std::vector<int>& ranks) {
  check_group(name, ranks);
  const std::lock_guard lock(mutex);
  for (const int rank : ranks) {
    const auto found = left.find(rank);
    if (found == left.end() || Clock::now() - found->second < kLastWords) continue;
    throw Error(ErrorKind::network,
                "group " + name + ": " + name_in(ranks, rank) + " has left the job without a call of it",
                "every rank of a group makes its calls");
  }
}

TimeLimit World::State::call_within(const CommunicatorOptions& spec) const {
  return spec.call_within.value_or(options.call_within);
}

/// Ranks meet in their first call, which has its time.
std::chrono::milliseconds World::State::meet_within(const CommunicatorOptions& spec) const {
  return spec.meet_within.value_or(std::min(options.meet_within, call_within(spec).time()));
}

/// Of `members`, which are places in the group `place`; this rank is among them.
std::unique_ptr<Communicator> World::State::connect_alike(const Place& place, const std::string& name,
                                                          const RankGroup& group, Store& store,
                                                          const CommunicatorOptions& spec) const {
  const auto index = std::find(group.ranks.begin(), group.ranks.end(), place.rank) - group.ranks.begin();
  const Place at{name, static_cast<int>(index), static_cast<int>(group.ranks.size())};
  if (group.transport == Transport::shared_memory)
    return make_shared_communicator(
        at, store,
        {.name = "world/" + name, .meet_within = meet_within(spec), .call_within = call_within(spec)});
  return make_gloo_communicator(at, store,
                                {.name = "world/" + name,
                                 .address = addresses[static_cast<std::size_t>(options.rank)],
                                 .access = options.access,
                                 .meet_within = meet_within(spec),
                                 .call_within = call_within(spec)});
}

std::vector<std::string> World::State::hosts_of(const std::vector<int>& ranks) const {
  std::vector<std::string> places;
  for (const int rank : ranks) places.push_back(hosts[static_cast<std::size_t>(rank)]);
  return places;
}

Grouping World::State::group(const std::vector<int>& ranks, const CommunicatorOptions& spec) const {
  return group_ranks(hosts_of(ranks),
                     {spec.transport.value_or(options.transport), spec.hierarchical, spec.inner_size});
}

std::unique_ptr<Communicator> World::State::connect(const Place& place, const std::vector<int>& ranks,
                                                    const CommunicatorOptions& spec) {
  const Grouping grouping = group(ranks, spec);
  GroupStore store(tcp ? static_cast<Store&>(*tcp) : memory, tcp.get(),
                   [this, &place, &ranks] { check_meeting(place.group, ranks); });
  if (grouping.is_flat()) return connect_alike(place, place.group, grouping.groups[0], store, spec);

  Levels levels;
  RankGroup leaders{grouping.outer}, all{Transport::gloo};
  for (std::size_t i = 0; i < grouping.groups.size(); ++i) {
    const std::vector<int>& members = grouping.groups[i].ranks;
    leaders.ranks.push_back(members[0]);
    const bool is_own = std::find(members.begin(), members.end(), place.rank) != members.end();
    if (is_own && members.size() > 1)
      levels.inner = connect_alike(place, sub_group(place.group, members), grouping.groups[i], store, spec);
  }
  if (std::find(leaders.ranks.begin(), leaders.ranks.end(), place.rank) != leaders.ranks.end())
    levels.outer = connect_alike(place, sub_group(place.group, leaders.ranks), leaders, store, spec);
  all.ranks.resize(ranks.size());
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  const std::vector<std::string> places = hosts_of(ranks);
  const bool is_one_host =
      std::all_of(places.begin(), places.end(), [&](const auto& host) { return host == places[0]; });
  if (is_one_host && grouping.outer == Transport::shared_memory) all.transport = Transport::shared_memory;
  levels.flat = connect_alike(place, place.group + "/all alike", all, store, spec);
  return make_hierarchical_communicator(place, grouping, std::move(levels));
}

std::unique_ptr<Communicator> World::State::watch(std::unique_ptr<Communicator> inner,
                                                  const std::vector<int>& ranks) {
  const std::string name = inner->place().group;
  const std::shared_ptr<State> self = shared_from_this();
  auto communicator = std::make_unique<WatchedCommunicator>(
      std::move(inner),
      [self, name](const Error& why) {
        if (self->tcp) self->tcp->announce(name, encode_error(why));
      },
      [self, name] { self->forget(name); });
  add(name, {[told = communicator.get()](const Error& why) { told->told(why); }, ranks});
  return communicator;
}

void World::State::add(const std::string& name, Group group) {
  const std::vector<int> ranks = group.ranks;
  {
    const std::lock_guard lock(mutex);
    groups.insert_or_assign(name, std::move(group));
  }
  check_group(name, ranks);
}

void World::State::forget(const std::string& name) noexcept {
  const std::lock_guard lock(mutex);
  groups.erase(name);
}

/// A communicator that is aborted when one of its ranks is lost, with the store that it uses.
class World::State::Connected : public Communicator {
 public:
  Connected(std::shared_ptr<State> state, const std::string& name, std::vector<int> ranks)
      : state_(std::move(state)),
        name_(name),
        ranks_(std::move(ranks)),
        store_(state_->tcp ? static_cast<Store&>(*state_->tcp) : state_->memory, state_->tcp.get(), [this] {
          if (!is_connected_) state_->check_meeting(name_, ranks_);
        }) {}
  ~Connected() override {
    state_->forget(name_);
    inner_.reset();
  }

  void connect(const Connect& connect, const GroupRendezvous& rendezvous) {
    inner_ = connect(rendezvous);
    is_connected_ = true;
    state_->add(name_, {[this](const Error& why) { inner_->abort(why); }, ranks_});
  }
  Store& store() noexcept { return store_; }

  const Place& place() const noexcept override { return inner_->place(); }
  void run(const Call& call) override { inner_->run(call); }
  std::unique_ptr<Work> start(const Call& call) override { return inner_->start(call); }
  void abort(const Error& why) noexcept override { inner_->abort(why); }

 private:
  std::shared_ptr<State> state_;
  const std::string name_;
  const std::vector<int> ranks_;
  std::atomic<bool> is_connected_ = false;  // from then on whoever waits is told in other ways
  GroupStore store_;
  std::unique_ptr<Communicator> inner_;
};

World::World(std::shared_ptr<State> state) : state_(std::move(state)) {}

World::~World() {
  if (state_) state_->tcp.reset();
}

std::unique_ptr<World> World::join(WorldOptions options) {
  auto state = std::make_shared<State>(std::move(options));
  state->meet();
  return std::unique_ptr<World>(new World(std::move(state)));
}

int World::rank() const noexcept {
  return state_->options.rank;
}

int World::size() const noexcept {
  return state_->options.size;
}

const std::vector<std::string>& World::hosts() const noexcept {
  return state_->hosts;
}

Store& World::store() noexcept {
  return state_->tcp ? static_cast<Store&>(*state_->tcp) : state_->memory;
}

void World::fail(const std::string& prefix, const Error& why) {
  const std::string subject = prefix + kAny, text = encode_error(why);
  state_->hear({.kind = StoreNews::Kind::announced, .subject = subject, .text = text});
  if (state_->tcp) state_->tcp->announce(subject, text);
}

std::vector<int> World::lost() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<int> ranks;
  for (const auto& [rank, why] : state_->lost) ranks.push_back(rank);
  return ranks;
}

Place World::admit(const std::string& name, std::vector<int>& ranks, const CommunicatorOptions& options) {
  if (ranks.empty()) {
    ranks.resize(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    return Error(ErrorKind::config, "group " + printable(name) + ": " + why, hint);
  };
  const std::set<int> members(ranks.begin(), ranks.end());
  if (members.size() != ranks.size()) throw refuse("a rank is in it twice", "");
  if (*members.begin() < 0 || *members.rbegin() >= size())
    throw refuse("rank " + std::to_string(*members.begin() < 0 ? *members.begin() : *members.rbegin()) +
                     " is not in a world of " + std::to_string(size()),
                 "");
  if (!members.contains(rank()))
    throw refuse("rank " + std::to_string(rank()) + " is not in it, and calls make_communicator()",
                 "let only its ranks call it");
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.names.insert(name).second)
      throw refuse("there has been one of this name", "give each group of a world another name");
  }
  std::string shape = "ranks";
  for (const int rank : ranks) shape += " " + std::to_string(rank);
  shape += ", way " + std::string(to_string(options.transport.value_or(state.options.transport)));
  if (options.hierarchical) shape += *options.hierarchical ? ", hierarchical" : ", flat";
  if (options.inner_size != 0) shape += ", inner size " + std::to_string(options.inner_size);
  store().set("world/" + name + "/shape", shape);
  const auto place = std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin();
  return {name, static_cast<int>(place), static_cast<int>(ranks.size())};
}

std::unique_ptr<Communicator> World::make_communicator(const std::string& name,
                                                       const std::vector<int>& wanted,
                                                       const CommunicatorOptions& options) {
  std::vector<int> ranks = wanted;
  const Place place = admit(name, ranks, options);
  return state_->watch(state_->connect(place, ranks, options), ranks);
}

std::unique_ptr<Communicator> World::make_communicator(const std::string& name,
                                                       const std::vector<int>& wanted,
                                                       const CommunicatorOptions& options,
                                                       const Connect& connect) {
  std::vector<int> ranks = wanted;
  const Place place = admit(name, ranks, options);
  std::vector<std::vector<int>> inner_groups;
  if (options.hierarchical.value_or(false)) {
    const Grouping grouping = state_->group(ranks, options);
    for (const RankGroup& group : grouping.groups)
      if (!grouping.is_flat()) inner_groups.push_back(group.ranks);
  }
  auto communicator = std::make_unique<State::Connected>(state_, name, ranks);
  try {
    communicator->connect(connect, {place, communicator->store(), "world/" + name, std::move(inner_groups),
                                    state_->meet_within(options), state_->call_within(options)});
  } catch (const Error& error) {
    // The others wait for this rank.
    if (state_->tcp) state_->tcp->announce(name, encode_error(error));
    throw;
  }
  return communicator;
}

std::unique_ptr<Communicator> World::survivors(const std::string& name, const CommunicatorOptions& options) {
  std::vector<int> ranks{rank()};
  if (state_->tcp) {
    ranks.clear();
    for (const auto& [rank, nothing] :
         state_->tcp->gather("world/survivors/" + name, "", true, Clock::now() + state_->options.meet_within))
      ranks.push_back(rank);
  }
  return make_communicator(name, ranks, options);
}

}  // namespace fleetrun::collective
