// A server that has a standby. Its thread connects to the server that holds it, sends all that this one has,
// and from there on each record of the log; once that has been heard, no answer is given before the standby
// has what it promises. Where the standby is gone the server goes on alone, says so, and begins again when
// there is one: its checkpoint and log are what it has meanwhile, and a file says that they are the newer.
#include "ps/server/server_standby.h"

#include <fcntl.h>

#include <filesystem>
#include <utility>

#include "ps/base/block_file.h"
#include "ps/base/directory_sync.h"
#include "ps/client/channel_client.h"
#include "ps/server/server_state.h"
#include "runtime/base/own_file.h"

namespace fleetrun::ps {
namespace {

constexpr std::chrono::milliseconds kTryAgain{100}, kTryAgainWhatFailed{5000};
constexpr std::chrono::milliseconds kSayThatAlone{2000};  // a holder that is started again is there sooner
constexpr std::chrono::milliseconds kLookAround{50};      // whether the server is ending

constexpr const char* kOtherTables = "the tables have become others";

// While it is there the standby may have less than the directory.
std::string alone_path(const std::string& directory) {
  return directory + "/without-standby";
}

wire::Header header_of(wire::Method method) {
  return {method, wire::kObserver, 0, 0};
}

// A call that has been answered. Throws: Error as the standby sent it, Error(network) when it is gone.
class Asked {
 public:
  Asked(Channel& channel, wire::Header header, Message request)
      : endings_(std::make_shared<Endings>()), call_(channel.start(header, std::move(request), endings_)) {}

  Reader wait(const Following& mine) {
    while (!endings_->wait(1, std::chrono::steady_clock::now() + kLookAround)) {
      if (mine.ending) throw Error(ErrorKind::network, "this server is ending");
      if (mine.has_moved()) throw Error(ErrorKind::network, "the host of its standby is lost");
    }
    return call_->result();
  }

 private:
  std::shared_ptr<Endings> endings_;
  std::unique_ptr<Call> call_;
};

Asked tell(Channel& channel, const FollowHead& head, std::span<const std::byte> bytes) {
  const wire::Header header = header_of(wire::Method::follow);
  wire::Draft draft = wire::draft(header, sizeof head + bytes.size());
  draft.writer.value(head);
  draft.writer.array(bytes);
  return {channel, header, std::move(draft.message)};
}

Asked ask_back(Channel& channel, const HandBack& wanted, const std::string& owner = {}) {
  const wire::Header header = header_of(wire::Method::hand_back);
  const bool has_owner = wanted.what != HandBack::piece;
  wire::Draft draft = wire::draft(header, sizeof wanted + (has_owner ? wire::text_size(owner) : 0));
  draft.writer.value(wanted);
  if (has_owner) wire::write_text(draft.writer, owner);
  return {channel, header, std::move(draft.message)};
}

}  // namespace

Moment Server::State::take_moment(const std::function<void()>& at_once) {
  KeptState kept;
  kept.server = number;
  write_barrier.freeze();
  try {
    barrier_service.describe([&](const Bytes& bytes) {
      kept.barrier_service.assign(bytes.bytes().begin(), bytes.bytes().end());
      at_once();
    });
    kept.histories = write_barrier.histories();
    const std::shared_ptr<TableSet> set = current();
    Moment out{std::move(kept), TableCut(set, options.tables), set->marks().number()};
    write_barrier.open();
    return out;
  } catch (...) {
    write_barrier.open();
    throw;
  }
}

// Tables and histories of a moment, and of the same run its barrier service.
KeptState Server::State::take_in(LoadedTables loaded, bool is_same_run) {
  const auto mine = std::ranges::find(loaded.named, kStateName, &NamedBytes::name);
  if (mine == loaded.named.end()) throw Error(ErrorKind::data, "the save is not a checkpoint of a server");
  KeptState kept = parse_kept_state(mine->bytes);
  tables = std::move(loaded.tables);
  write_barrier.restore(std::exchange(kept.histories, {}));
  if (!is_same_run) return kept;
  number = kept.server;
  Reader in{std::span<const std::byte>(kept.barrier_service)};
  barrier_service.restore(in);
  return kept;
}

// Asks the standby for what a process before this one had. False: it has nothing, or nothing that is the
// newest.
bool Server::State::take_back() {
  if (std::filesystem::exists(alone_path(durable->directory))) return false;
  std::optional<LoadedTables> loaded;
  HandedBack found;
  try {
    const auto channel = reach_standby();
    found = ask_back(*channel, {options.rank, HandBack::ask}, owner_text(options, options))
                .wait(*following)
                .value<HandedBack>();
    following->generation = found.generation;
    if (found.stream == 0) return false;
    PartAssembler pieces(place, options.tables, static_cast<std::uint32_t>(found.pieces));
    const auto ask_for = [&](std::uint64_t piece) {
      return ask_back(*channel, {options.rank, HandBack::piece, found.stream, piece});
    };
    Asked next = ask_for(0);
    for (std::uint64_t piece = 0; piece < found.pieces; ++piece) {
      Asked here = std::move(next);
      Reader answer = here.wait(*following);
      if (piece + 1 < found.pieces) next = ask_for(piece + 1);  // it is made while this one is read
      const auto digest = answer.value<std::uint64_t>();
      Message copy;
      pieces.add(static_cast<std::uint32_t>(piece), digest,
                 answer.array<std::byte>(answer.remaining(), copy));
    }
    loaded = pieces.finish();
  } catch (const Error& error) {
    // Nobody there: what it had has gone with it.
    if (error.kind() == ErrorKind::network) return false;
    throw;
  }
  take_in(std::move(*loaded));
  following->stream = found.stream;
  following->feed.open();
  following->feed.guard();
  following->feed.reached(0);
  recovery = Recovery{0, found.records, 0, barrier_service.go_on(), {}, options.standby.name()};
  return true;
}

void Server::State::start_following() {
  if (!following) return;
  following->thread = std::thread([this] {
    follow_on();
    following->end();  // nobody waits for it any more
  });
}

void Server::State::end_following() noexcept {
  if (!following) return;
  following->end();
  if (following->thread.joinable()) following->thread.join();
  following->feed.close();
}

// Its tables are no longer what the log says: before anybody hears of that, the standby must not hand them
// back.
void Server::State::begin_standby_anew() {
  ++other_tables;
  offered = 0;
  if (!following) return;
  if (!following->feed.is_guarded()) return;
  following->begins_anew = true;
  following->feed.wake();
  std::unique_lock lock(following->mutex);
  following->changed.wait(lock, [this] { return !following->begins_anew || following->ending; });
}

// Whatever answers there instead: the standby is not reached.
std::unique_ptr<Channel> Server::State::reach_standby() const {
  try {
    return options.standby.connect(following->ending);
  } catch (const Error& error) {
    throw Error(ErrorKind::network, error.what());
  }
}

void Server::State::follow_on() {
  std::optional<std::chrono::steady_clock::time_point> alone_since;  // since it had one
  bool is_said = false;
  while (!following->ending) {
    auto again = kTryAgain;
    following->look_where(options.standby);
    try {
      const auto channel = reach_standby();
      if (following->stream == 0) attach(*channel);
      alone_since.reset();
      is_said = false;
      send_records(*channel);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::config && !following->ending) {
        // What waits is never answered: another process answers for this server.
        return durable->report(error, true);
      }
      const auto now = std::chrono::steady_clock::now();
      if (leave_alone()) alone_since = now;
      const bool cannot = error.kind() != ErrorKind::network;
      if (cannot) again = kTryAgainWhatFailed;
      const bool is_long = cannot || (alone_since && now - *alone_since > kSayThatAlone);
      if (is_long && !std::exchange(is_said, true) && !barrier_service.are_all_done()) report_alone(error);
    }
    std::unique_lock lock(following->mutex);
    following->begins_anew = false;
    following->changed.notify_all();
    following->changed.wait_for(lock, again, [this] { return following->ending.load(); });
  }
}

void Server::State::attach(Channel& channel) {
  Following& mine = *following;
  const std::string owner = owner_text(options, options);
  if (mine.generation == 0)
    mine.generation =
        ask_back(channel, {options.rank, HandBack::claim}, owner).wait(mine).value<HandedBack>().generation;
  const std::uint64_t tables_then = other_tables;
  Moment moment = take_moment([&] {
    mine.feed.open();
    ++standbys;
  });
  const PartPieces pieces(place, options.tables, std::move(moment.cut), named_state(moment.kept));
  mine.stream = make_incarnation();
  Bytes text;
  text.text(owner);
  tell(channel, {options.rank, FollowHead::begin, mine.stream, mine.generation, pieces.count()}, text.bytes())
      .wait(mine);
  for (std::uint32_t piece = 0; piece < pieces.count(); ++piece) {
    std::vector<std::byte> bytes;
    const SavedPiece written = pieces.write(piece, bytes);
    tell(channel, {options.rank, FollowHead::piece, mine.stream, piece, written.digest}, bytes).wait(mine);
  }
  mine.feed.guard();
  if (other_tables != tables_then) throw Error(ErrorKind::network, kOtherTables);
  const LogBatch batch = mine.feed.take({});
  tell(channel, {options.rank, FollowHead::guard, mine.stream, batch.first, batch.records},
       batch.bytes.bytes())
      .wait(mine);
  {
    const std::lock_guard lock(mine.mutex);
    std::error_code ignored;
    if (!mine.is_left) std::filesystem::remove(alone_path(durable->directory), ignored);
  }
  mine.feed.reached(batch.first + batch.records);
}

void Server::State::send_records(Channel& channel) {
  Following& mine = *following;
  while (!mine.ending) {
    const LogBatch batch = mine.feed.take(options.standby.idle);
    if (mine.begins_anew) {
      tell(channel, {options.rank, FollowHead::drop, mine.stream}, {}).wait(mine);
      throw Error(ErrorKind::network, kOtherTables);
    }
    tell(channel, {options.rank, FollowHead::records, mine.stream, batch.first, batch.records},
         batch.bytes.bytes())
        .wait(mine);
    mine.feed.reached(batch.first + batch.records);
  }
}

void Server::State::report_alone(const Error& why) const {
  durable->report(
      Error(ErrorKind::network, "it has no standby on " + options.standby.name() + " (" + why.what() +
                                    "); until it has, only its checkpoint directory has what it has"),
      false);
}

// Another process goes on with it from its directory, which may have more than the standby gets to hear.
void Server::State::leave_standby() {
  if (!following) return;
  const std::lock_guard lock(following->mutex);
  following->is_left = true;
  // Nothing waits for the disk: the standby is on this host, and goes down with it.
  const std::string path = alone_path(durable->directory);
  UniqueFd(check_errno(open_own(path, O_WRONLY | O_CREAT, Readers::owner), "open", path));
}

// Whether it had a standby up to now.
bool Server::State::leave_alone() {
  Following& mine = *following;
  mine.stream = 0;
  const bool had_one = mine.feed.is_guarded();
  if (had_one && !mine.ending) {
    try {
      write_file_atomically(alone_path(durable->directory), alone_path(durable->directory) + ".tmp", "");
    } catch (const Error& error) {
      durable->report(error, false);
    }
  }
  mine.feed.close();
  return had_one && !mine.begins_anew;
}

}  // namespace fleetrun::ps
