#include "ps/rpc/hosted_servers.h"

#include <algorithm>
#include <utility>

#include "ps/durable/checkpoint.h"
#include "runtime/base/error.h"
#include "runtime/log/log.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

// How often a process looks whether there is something to do, and while there is.
constexpr std::chrono::milliseconds kIdle{50}, kBusy{1};
constexpr std::chrono::milliseconds kAfterError{500};
constexpr std::chrono::milliseconds kLookAround{20};
// A follower that reads no more than this at once has caught up.
constexpr std::uint64_t kFewRecords = 64;

std::string name_of(std::uint32_t server) {
  return "server " + std::to_string(server);
}

// Whether nobody serves from the directory.
bool is_free(const std::string& directory) {
  try {
    lock_directory(directory);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    return false;
  }
}

}  // namespace

// A server that is to come here.
struct HostedServers::Follower {
  std::uint64_t offer = 0;
  std::shared_ptr<FollowedServer> server;  // given to the server that is made from it
  bool is_ready = false;                   // and the note says so
};

HostedServers::HostedServers(HostedServersOptions options, bool listens) : options_(std::move(options)) {
  if (!moves()) {
    servers_.emplace(options_.rank, make(options_.rank, !listens));
    listens_ = listens;
    return;
  }
  check();
  ends_.emplace();
  begin_with();
  if (listens) listen();
}

HostedServers::~HostedServers() {
  ending_ = true;
  if (mover_.joinable()) mover_.join();
}

std::string HostedServers::directory_of(std::uint32_t server) const {
  return directory_of_server(directory_, server);
}

MoveNotes HostedServers::notes_of(std::uint32_t server) const {
  const std::string& count = options_.process_count_file;
  return {count.substr(0, count.rfind('/')), server};
}

std::unique_ptr<RpcServer> HostedServers::make(std::uint32_t server, bool listens_later,
                                               std::shared_ptr<FollowedServer> followed) const {
  ServerOptions mine = options_.server(server);
  if (moves()) mine.process = options_.rank;
  mine.followed = std::move(followed);
  RpcServerOptions rpc = options_.rpc(server);
  rpc.listens_later = listens_later;
  return std::make_unique<RpcServer>(mine, options_.endpoints.at(moves() ? server : 0), std::move(rpc));
}

void HostedServers::check() const {
  const ServerOptions mine = options_.server(0);
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ErrorKind::config, what + ", and servers that move between processes cannot be so", hint);
  };
  const char* kFixed = "start a fixed number of servers: --server_num=N";
  if (mine.durability.directory.empty())
    refuse("the servers keep nothing", "add --max_restart or --ps_checkpoint");
  if (mine.mode == Mode::geo) refuse("the mode is geo", kFixed);
  for (const TableConfig& table : mine.tables)
    if (table.on_disk) refuse("table '" + table.name + "' has rows on disk", kFixed);
}

// What a process before this one served, or what a job begins with.
void HostedServers::begin_with() {
  const ServerOptions any = options_.server(0);
  run_ = any.durability.run;
  directory_ = any.durability.directory;
  processes_ = read_process_count(options_.process_count_file);
  for (std::uint32_t server = 0; server < options_.endpoints.size(); ++server) {
    const MoveNotes notes = notes_of(server);
    const auto host = notes.read(kHostNote, run_);
    if ((host ? host->process : server % processes_) != options_.rank) continue;
    // It was handed on to the process before this one just now: it comes as to that one.
    if (host && !is_free(directory_of(server))) continue;
    servers_.emplace(server, make(server, true));
    notes.remove(kOfferNote);
    notes.write(kHostNote, {options_.rank, host ? host->number : 0, run_});
  }
}

void HostedServers::listen() {
  std::map<std::uint32_t, std::shared_ptr<RpcServer>> waiting;
  {
    const std::lock_guard lock(mutex_);
    listens_ = true;
    waiting = servers_;
  }
  for (const auto& [server, here] : waiting) here->listen();
  if (moves()) mover_ = std::thread([this] { move_on(); });
}

const std::string& HostedServers::endpoint() const {
  return moves() ? options_.endpoints.at(options_.rank) : servers_.at(options_.rank)->endpoint();
}

void HostedServers::update(const MembershipUpdate& membership_update,
                           const std::map<std::uint32_t, std::string>& servers) {
  if (options_.addresses) options_.addresses->move(servers);
  {
    const std::lock_guard lock(mutex_);
    membership_update_ = membership_update;
    for (const auto& [server, here] : servers_) here->update(membership_update);
  }
  if (!stands_by()) return;
  for (const auto& [server, endpoint] : servers)
    if (std::ranges::find(options_.standby_endpoints, endpoint) != options_.standby_endpoints.end())
      serve_for(server, endpoint);
}

// One of those that are here holds its standby; where this process was started again, the directory or its
// next standby has what the one before this served.
void HostedServers::serve_for(std::uint32_t server, const std::string& endpoint) {
  std::map<std::uint32_t, std::shared_ptr<RpcServer>> holders;
  {
    const std::lock_guard lock(mutex_);
    if (servers_.contains(server) || failure_) return;
    holders = servers_;
  }
  try {
    ServerOptions theirs = options_.server(server);
    theirs.durability.served = theirs.durability.run;
    for (const auto& [rank, holder] : holders)
      if (auto held = holder->server().take_held(server)) theirs.followed = std::move(held);
    RpcServerOptions rpc = options_.rpc(server);
    rpc.held_by_launcher = true;
    rpc.listens_later = true;
    auto here = std::make_shared<RpcServer>(theirs, endpoint, std::move(rpc));
    here->update(*membership_update_);
    bool listens = false;
    {
      const std::lock_guard lock(mutex_);
      listens = listens_;
      servers_.emplace(server, here);
    }
    if (listens) here->listen();
    log::warning(name_of(server) + " is served here from now on, for its host is lost");
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    failure_ = error;
  }
  changed_.notify_all();
}

std::uint64_t HostedServers::stale_requests() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& [server, here] : servers_) all += here->stale_requests();
  return all;
}

std::string HostedServers::stat() const {
  const std::lock_guard lock(mutex_);
  if (servers_.empty()) throw Error(ErrorKind::config, "this process serves no server now");
  return servers_.begin()->second->stat();
}

std::string HostedServers::load(const std::string& directory, const std::vector<std::string>& only) {
  std::string warning;
  for (const auto& [server, here] : servers_) {
    const std::string said = here->load(directory, only);
    if (warning.empty()) warning = said;
  }
  return warning;
}

std::vector<std::uint32_t> HostedServers::ranks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> out;
  for (const auto& [server, here] : servers_) out.push_back(server);
  return out;
}

void HostedServers::stop() noexcept {
  if (!moves() && !stands_by()) return servers_.begin()->second->stop();
  stopped_ = true;
}

// One that ended before its trainers were done has failed.
bool HostedServers::is_over() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || is_left_out_ || failure_) return true;
  const auto has_ended = [](const auto& entry) { return entry.second->has_ended(); };
  const auto has_failed = [](const auto& entry) {
    return entry.second->has_ended() && !entry.second->server().is_done();
  };
  return std::ranges::any_of(servers_, has_failed) ||
         (!servers_.empty() && std::ranges::all_of(servers_, has_ended));
}

void HostedServers::wait() {
  if (!moves() && !stands_by()) return servers_.begin()->second->wait();
  while (!is_over()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLookAround);
  }
  ending_ = true;
  if (mover_.joinable()) mover_.join();
  std::map<std::uint32_t, std::shared_ptr<RpcServer>> all;
  {
    const std::lock_guard lock(mutex_);
    all = servers_;
  }
  for (const auto& [server, here] : all) here->stop();
  for (const auto& [server, here] : all) here->wait();
  if (ends_) ends_->finish();
  if (failure_) throw Error(*failure_);
}

void HostedServers::move_on() {
  while (!ending_) {
    bool is_busy = false;
    try {
      processes_ = read_process_count(options_.process_count_file);
    } catch (const Error& error) {
      log::warning(error.what());
    }
    for (std::uint32_t server = 0; server < options_.endpoints.size() && !ending_; ++server)
      is_busy = look_after(server, processes_) || is_busy;
    std::unique_lock lock(mutex_);
    if (servers_.empty() && followers_.empty() && options_.rank >= processes_) {
      is_left_out_ = true;
      changed_.notify_all();
      return;
    }
    changed_.wait_for(lock, is_busy ? kBusy : kIdle);
  }
}

// Whether there is something to do for it.
bool HostedServers::look_after(std::uint32_t server, std::uint32_t processes) {
  const std::uint32_t owner = server % processes;
  std::shared_ptr<RpcServer> here;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = servers_.find(server); found != servers_.end()) here = found->second;
  }
  if (!here && owner != options_.rank) {
    // One that is here by its note has to go on from here, also to be handed on.
    const auto host = notes_of(server).read(kHostNote, run_);
    if (!host || host->process != options_.rank) {
      forget(server);
      return false;
    }
  }
  if (here && owner == options_.rank) {
    if (here->server().offered() != 0) here->server().withdraw_offer();
    return false;
  }
  if (const auto wait = not_before_.find(server); wait != not_before_.end()) {
    if (Clock::now() < wait->second) return true;
    not_before_.erase(wait);
  }
  try {
    return here ? give(server, *here, owner) : take(server);
  } catch (const Error& error) {
    log::warning(name_of(server) + " does not move yet: " + error.what());
    followers_.erase(server);
    not_before_[server] = Clock::now() + kAfterError;
    return true;
  }
}

bool HostedServers::give(std::uint32_t server, RpcServer& from, std::uint32_t to) {
  if (from.server().is_done()) return false;
  const MoveNotes notes = notes_of(server);
  const auto wanted = notes.read(kWantedNote, run_);
  if (!wanted || wanted->process != to) return true;
  std::uint64_t offered = from.server().offered();
  if (offered == 0) {
    notes.remove(kOfferNote);
    offered = from.server().offer();
    if (offered == 0) return true;
  }
  const MoveNote offer{to, offered, run_};
  if (notes.read(kOfferNote, run_) != offer) notes.write(kOfferNote, offer);
  if (wanted->number != offered) return true;
  const auto began = Clock::now();
  if (!from.hand_on(offered, [&] { notes.write(kHostNote, offer); })) return true;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  log::info(name_of(server) + " has moved to process " + std::to_string(to) + ", and was closed here after " +
            std::to_string(took.count()) + " us");
  std::shared_ptr<RpcServer> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = servers_.find(server);
    gone = std::move(found->second);
    servers_.erase(found);
  }
  ends_->add([gone = std::move(gone)] {});
  return true;
}

bool HostedServers::take(std::uint32_t server) {
  const MoveNotes notes = notes_of(server);
  const auto host = notes.read(kHostNote, run_);
  if (!host) return true;  // nobody has begun with it yet
  const auto found = followers_.find(server);
  Follower* follower = found == followers_.end() ? nullptr : found->second.get();
  if (host->process == options_.rank) {
    if (!follower || follower->offer != host->number || !follower->server) {
      if (is_free(directory_of(server))) adopt(server, nullptr);
    } else if (follower->server->take_directory()) {
      adopt(server, std::move(follower->server));
    }
    return true;
  }
  if (!follower) follower = (followers_[server] = std::make_unique<Follower>()).get();
  const auto offer = notes.read(kOfferNote, run_);
  const bool is_mine = offer && offer->process == options_.rank;
  if (is_mine && follower->offer != offer->number) {
    *follower = Follower{offer->number, std::make_shared<FollowedServer>(options_.server(server)), false};
  } else if (!is_mine && follower->offer != 0) {
    *follower = Follower{};
  }
  if (follower->server && follower->server->follow() <= kFewRecords) follower->is_ready = true;
  // Whoever had the server before may have removed it as the note of another move.
  const MoveNote wanted{options_.rank, follower->is_ready ? follower->offer : 0, run_};
  if (notes.read(kWantedNote, run_) != wanted) notes.write(kWantedNote, wanted);
  return true;
}

void HostedServers::adopt(std::uint32_t server, std::shared_ptr<FollowedServer> followed) {
  const auto began = Clock::now();
  std::shared_ptr<RpcServer> here = make(server, false, std::move(followed));
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  log::info(name_of(server) + " was opened here after " + std::to_string(took.count()) + " us");
  followers_.erase(server);
  notes_of(server).remove(kWantedNote);
  notes_of(server).remove(kOfferNote);
  const std::lock_guard lock(mutex_);
  if (membership_update_) here->update(*membership_update_);
  servers_.emplace(server, std::move(here));
}

// It was to come here, and is not any more.
void HostedServers::forget(std::uint32_t server) {
  if (followers_.erase(server) == 0) return;
  const auto wanted = notes_of(server).read(kWantedNote, run_);
  if (wanted && wanted->process == options_.rank) notes_of(server).remove(kWantedNote);
}

}  // namespace fleetrun::ps
