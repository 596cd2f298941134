// What a server does as the standby of others. It takes their pieces and records as they come, and hands the
// whole back to a process that was started in another's place; that one goes on with the stream that it is
// told, and whoever used the one before is refused.
#include "ps/server/server_held.h"

#include <algorithm>
#include <utility>

#include "ps/client/channel_client.h"
#include "ps/durable/checkpoint.h"
#include "ps/durable/log_feed.h"
#include "ps/server/followed_server.h"
#include "ps/server/server_standby.h"

namespace fleetrun::ps {

std::shared_ptr<Server::State::Held> Server::State::held_of(std::uint32_t rank) {
  if (rank == options.rank || rank >= options.servers)
    throw Error(ErrorKind::config, name_of(options) + " is no standby of server " + std::to_string(rank));
  const std::lock_guard lock(mutex);
  auto& held = held_states[rank];
  if (!held) held = std::make_shared<Held>();
  return held;
}

ServerOptions Server::State::options_of(std::uint32_t rank) const {
  ServerOptions out = options;
  out.rank = rank;
  out.durability = {};
  out.standby = {};
  out.memory_limit = 0;  // what was let in there is let in here
  out.timeline = nullptr;
  return out;
}

void Server::State::check_stream(const Held& held, std::uint64_t stream, std::uint32_t rank) const {
  const std::string whose = "server " + std::to_string(rank);
  if (held.is_taken)
    throw Error(ErrorKind::config, "the process of " + name_of(options) + " serves for " + whose +
                                       ", whose host was taken for lost");
  if (held.stream == stream) return;
  if (held.stream == 0)
    throw Error(ErrorKind::network, name_of(options) + " has nothing of " + whose + " any more");
  throw Error(ErrorKind::config,
              "another process of " + whose + " has taken its state from " + name_of(options));
}

Message Server::State::follow(Reader& body) {
  const auto head = body.value<FollowHead>();
  const std::shared_ptr<Held> of_rank = held_of(head.rank);
  Held& held = *of_rank;
  const std::lock_guard lock(held.mutex);
  if (head.what != FollowHead::begin || held.is_taken) check_stream(held, head.stream, head.rank);
  held.heard = std::chrono::steady_clock::now();
  try {
    take_followed(held, head, body);
  } catch (...) {
    if (held.stream == head.stream) held.drop();
    throw;
  }
  return {};
}

void Server::State::take_followed(Held& held, const FollowHead& head, Reader& body) {
  switch (head.what) {
    case FollowHead::begin: {
      const ServerOptions theirs = options_of(head.rank);
      const std::string owner = wire::read_text(body);
      if (owner != owner_text(options, theirs))
        throw Error(ErrorKind::data, name_of(options) + " has other tables than server " +
                                         std::to_string(head.rank) + ", or is of another run");
      if (head.number < held.generation)
        throw Error(ErrorKind::config, "another process of server " + std::to_string(head.rank) +
                                           " is followed by " + name_of(options));
      held.drop();
      held.stream = head.stream;
      held.owner = owner;
      held.coming = std::make_unique<PartAssembler>(place_of(theirs), theirs.tables,
                                                    static_cast<std::uint32_t>(head.count));
      return;
    }
    case FollowHead::piece: {
      Message copy;
      if (!held.coming) throw Error(ErrorKind::data, "a piece that nobody waits for");
      return held.coming->add(static_cast<std::uint32_t>(head.number), head.count,
                              body.array<std::byte>(body.remaining(), copy));
    }
    case FollowHead::drop:
      return held.drop();
    default:
      break;
  }
  held.given.reset();
  if (held.coming) make_replica(held, head.rank);
  if (!held.replica || head.number != held.position)
    throw Error(ErrorKind::data, "records from " + std::to_string(head.number) + " on, and " +
                                     std::to_string(held.position) + " is the next");
  read_batch(body, head.count, [&](LogRecord& record) { held.replica->replay(record, true); });
  held.position += head.count;
  held.records += head.count;
  held.is_guarded = held.is_guarded || head.what == FollowHead::guard;
}

void Server::State::make_replica(Held& held, std::uint32_t rank) const {
  LoadedTables loaded = held.coming->finish();
  held.coming.reset();
  auto replica = std::make_unique<State>(options_of(rank), [] {});
  replica->take_in(std::move(loaded));
  held.replica = std::move(replica);
}

Message Server::State::hand_back(Reader& body) {
  const auto asked = body.value<HandBack>();
  const std::shared_ptr<Held> of_rank = held_of(asked.rank);
  Held& held = *of_rank;
  const std::lock_guard lock(held.mutex);
  if (asked.what == HandBack::piece || held.is_taken) {
    check_stream(held, asked.stream, asked.rank);
    if (!held.given || asked.piece_number >= held.given->count())
      throw Error(ErrorKind::data, name_of(options) + " has no such piece to hand back");
    std::vector<std::byte> bytes;
    const SavedPiece written = held.given->write(static_cast<std::uint32_t>(asked.piece_number), bytes);
    Message out(sizeof written.digest + bytes.size());
    Writer writer(out);
    writer.value(written.digest);
    writer.array(std::span<const std::byte>(bytes));
    return out;
  }
  const bool has_it = held.is_guarded && wire::read_text(body) == held.owner && asked.what == HandBack::ask;
  HandedBack answer{++held.generation};
  if (!has_it) {
    held.drop();
    return message_of(answer);
  }
  Moment moment = held.replica->take_moment([] {});
  held.given = std::make_unique<PartPieces>(held.replica->place, options.tables, std::move(moment.cut),
                                            named_state(moment.kept));
  held.stream = make_incarnation();
  held.position = 0;
  answer.stream = held.stream;
  answer.pieces = held.given->count();
  answer.records = held.records;
  return message_of(answer);
}

// Of one that is gone this may be all that there is.
bool Server::State::hears_of_all_held_since(std::chrono::steady_clock::time_point then) const {
  std::map<std::uint32_t, std::shared_ptr<Held>> all;
  {
    const std::lock_guard lock(mutex);
    all = held_states;
  }
  return std::ranges::all_of(all, [then](const auto& entry) {
    const std::lock_guard lock(entry.second->mutex);
    return !entry.second->is_guarded || entry.second->heard >= then;
  });
}

std::vector<HeldStat> Server::State::held_stats() const {
  std::map<std::uint32_t, std::shared_ptr<Held>> all;
  {
    const std::lock_guard lock(mutex);
    all = held_states;
  }
  std::vector<HeldStat> out;
  for (const auto& [rank, held] : all) {
    const std::lock_guard lock(held->mutex);
    if (!held->is_taken) out.push_back({rank, held->records, held->is_guarded});
  }
  return out;
}

std::shared_ptr<FollowedServer> Server::take_held(std::uint32_t rank) {
  const std::shared_ptr<State::Held> of_rank = state_->held_of(rank);
  State::Held& held = *of_rank;
  const std::lock_guard lock(held.mutex);
  const bool has_it = held.is_guarded && !held.is_taken;
  auto taken = std::make_unique<FollowedServer::State>();
  taken->replica = std::move(held.replica);
  taken->records = held.records;
  held.is_taken = true;
  held.drop();
  if (!has_it) return nullptr;
  return std::shared_ptr<FollowedServer>(new FollowedServer(std::move(taken)));
}

}  // namespace fleetrun::ps
