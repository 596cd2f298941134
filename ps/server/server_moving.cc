// A server that another process goes on with. That process reads the checkpoint and the log as they are
// written (FollowedServer). When it has all but the last records, this one stops between two requests
// (hand_on): nothing is kept or answered from there on, and where the note says that the server is the other
// process's it is, whatever becomes of either. To trainers it is a server that was killed there and started
// again: they come back with what was not answered, and the histories tell what was applied already.
#include <chrono>
#include <thread>
#include <utility>

#include "ps/durable/checkpoint.h"
#include "ps/saving/snapshot.h"
#include "ps/server/followed_server.h"

namespace fleetrun::ps {
namespace {

// Requests that take longer, loads for example, are not waited for: those behind them would have to.
constexpr std::chrono::milliseconds kClosing{20};

}  // namespace

FollowedServer::FollowedServer(const ServerOptions& options) : state_(std::make_unique<State>()) {
  ServerOptions theirs = options;
  theirs.durability = {};
  theirs.standby = {};
  theirs.memory_limit = 0;  // what was let in there is let in here
  theirs.timeline = nullptr;
  theirs.followed = nullptr;
  state_->directory = directory_of_server(options.durability.directory, options.rank);
  state_->replica = std::make_unique<Server::State>(theirs, [] {});
  LoadedTables loaded = load_tables(state_->directory, state_->replica->place, options.tables);
  state_->checkpoint = loaded.manifest.save;
  state_->first_segment = state_->replica->take_in(std::move(loaded)).first_segment;
  state_->tail.emplace(state_->directory, state_->first_segment);
}

FollowedServer::FollowedServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

FollowedServer::~FollowedServer() = default;

std::uint64_t FollowedServer::follow() {
  const std::uint64_t records =
      state_->tail->read([this](LogRecord& record) { state_->replica->replay(record, true); });
  state_->records += records;
  return records;
}

bool FollowedServer::take_directory() {
  if (!state_->lock) {
    try {
      state_->lock = lock_directory(state_->directory);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::config) return false;  // the other process still has it
      throw;
    }
  }
  follow();
  return true;
}

// Nobody else uses the replica any more.
void Server::State::take_over_followed() {
  FollowedServer::State& theirs = *options.followed->state_;
  State& replica = *theirs.replica;
  durable->lock = theirs.tail ? std::move(theirs.lock) : lock_directory(durable->directory);
  tables = std::move(replica.tables);
  write_barrier.restore(replica.write_barrier.histories());
  number = replica.number;
  told_cut = std::move(replica.told_cut);
  replica.barrier_service.describe([this](const Bytes& bytes) {
    Reader in{bytes.bytes()};
    barrier_service.restore(in);
  });
  recovery = Recovery{theirs.checkpoint, theirs.records, 0, barrier_service.go_on(), {}, {}, true};
  if (theirs.tail) {
    durable->first_segment = theirs.first_segment;
    begin_log(theirs.tail->segment() + 1);
  } else {
    recovery->standby = "this host, for its own is lost";
    begin_directory();
  }
  options.followed = nullptr;
}

bool Server::State::is_saving_or_loading() const {
  const std::lock_guard lock(mutex);
  return saving || !loaded.empty();
}

std::uint64_t Server::offer() {
  if (state_->is_saving_or_loading()) return 0;
  state_->make_checkpoint(make_incarnation());
  return offered();
}

std::uint64_t Server::offered() const noexcept {
  return state_->offered;
}

void Server::withdraw_offer() noexcept {
  state_->offered = 0;
}

bool Server::hand_on(std::uint64_t offer, const std::function<void()>& commit) {
  State& state = *state_;
  if (std::exchange(state.wanted_offer, offer) != offer)
    state.wanted_since = std::chrono::steady_clock::now();
  if (!state.hears_of_all_held_since(state.wanted_since)) return false;
  if (state.is_saving_or_loading() || !state.gate.close(kClosing)) return false;
  // Held, a checkpoint is under way, and changes wait in the write barrier for its cut.
  const std::unique_lock making(state.durable->making, std::try_to_lock);
  const bool may = making && state.offered == offer && offer != 0 && !state.is_saving_or_loading() &&
                   !state.barrier_service.are_all_done();
  if (!may) {
    state.gate.open();
    return false;
  }
  try {
    state.durable->log->finish();
    state.leave_standby();
    commit();
  } catch (...) {
    if (state.following) state.following->is_left = false;
    state.gate.open();
    throw;
  }
  state.is_handed_on = true;
  if (state.following) state.following->end();
  return true;
}

void Server::release() noexcept {
  state_->gate.end();
  state_->expirer.reset();
  state_->durable->checkpointer.reset();
  state_->durable->log.reset();
  state_->durable->lock.reset();
}

// What waited for its standby is in the log, which the other process has read.
void Server::end_handed_on() noexcept {
  close();
  state_->end_following();
  state_->gate.answer();
}

}  // namespace fleetrun::ps
