// A server that outlives its process: everything that an answer promises is in the log before the answer is
// given, and a checkpoint now and then makes the log short. A checkpoint lies between changes (the write
// barrier is frozen) and between events of the barrier service (its lock is held): there the log's next
// segment begins.
#include "ps/server/server_durable.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "ps/durable/checkpoint.h"
#include "ps/saving/part_writer.h"
#include "ps/saving/snapshot.h"
#include "ps/saving/table_cut.h"
#include "ps/server/server_state.h"
#include "ps/sync/barrier_events.h"
#include "runtime/base/recovery_words.h"

namespace fleetrun::ps {
namespace {

std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

void append(BytePieces& pieces, const std::vector<std::span<const std::byte>>& more) {
  pieces.insert(pieces.end(), more.begin(), more.end());
}

void check_same(const std::string& kept, const std::string& here, const std::string& directory) {
  std::size_t at = 0;
  while (at < kept.size() && at < here.size() && kept[at] == here[at]) ++at;
  if (at == kept.size() && at == here.size()) return;
  const auto line = [at](const std::string& text) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return begin >= text.size() ? std::string("nothing") : text.substr(begin, text.find('\n', begin) - begin);
  };
  throw Error(ErrorKind::config,
              "the checkpoint in " + directory + " is of " + line(kept) + ", this is " + line(here),
              "start the job again as it was, or with an empty checkpoint directory");
}

bool goes_on_from_others(FoundCheckpoint found) {
  return found == FoundCheckpoint::resume || found == FoundCheckpoint::require;
}

constexpr const char* kOtherDirectory =
    "name another directory, or let it be removed: --ps_checkpoint_found=replace";

// What an earlier run has left is not removed unasked, but by a later attempt of that run.
void check_may_go(const Owner& owner, const Durability& wanted, const std::string& directory) {
  const auto run_of = [](const std::string& text) { return text.substr(0, text.rfind('-')); };
  if (wanted.found != FoundCheckpoint::refuse || run_of(owner.run) == run_of(wanted.run)) return;
  throw Error(
      ErrorKind::config,
      directory + " has the checkpoint of an earlier run: " + owner.server.substr(0, owner.server.find('\n')),
      "go on from it with --ps_checkpoint_found=resume, remove it with =replace, or name another directory");
}

}  // namespace

std::string describe(const ServerOptions& options) {
  std::string text = "server " + std::to_string(options.rank) + " of " + std::to_string(options.servers) +
                     ", mode " + std::string(to_string(options.mode)) + "\n";
  for (const TableConfig& table : options.tables) text += describe(table) + "\n";
  return text;
}

void Server::State::recover(std::function<void(const Error&, bool)> report) {
  durable = std::make_unique<Durable>();
  durable->directory = directory_of_server(options.durability.directory, options.rank);
  durable->report = std::move(report);
  if (options.standby.connect) following = std::make_unique<Following>();
  if (options.followed) return take_over_followed();
  durable->lock = lock_directory(durable->directory);
  const Owner mine{options.durability.run, describe(options)};
  if (following && take_back()) {
    // What the directory has may be older, or have what was never answered.
    clear_directory(durable->directory);
    write_owner(durable->directory, mine);
    return begin_log(1);
  }
  const std::optional<Owner> owner = read_owner(durable->directory);
  const bool is_there = std::filesystem::exists(manifest_path(durable->directory)) ||
                        std::filesystem::exists(previous_manifest_path(durable->directory));
  const bool is_same_run = is_there && owner && owner->run == mine.run;
  check_not_lost(is_there, is_same_run);
  if (is_there && owner && !is_same_run) check_may_go(*owner, options.durability, durable->directory);
  const bool may_go_on = goes_on_from_others(options.durability.found);
  if (may_go_on && !is_there) start_without_checkpoint();
  if (is_same_run || (is_there && may_go_on)) {
    if (!owner)
      throw Error(ErrorKind::data, durable->directory + " has a checkpoint, and does not say of what",
                  kOtherDirectory);
    check_same(owner->server, mine.server, durable->directory);
    go_on(is_same_run);
    if (is_same_run) return;
    origin = wire::kResumed;
    // The checkpoint first: were this run to end before the directory is its own,
    // another would go on from the same.
    make_checkpoint();
    return write_owner(durable->directory, mine);
  }
  begin_directory();
}

// What it has now is all that there is.
void Server::State::begin_directory() {
  clear_directory(durable->directory);
  write_owner(durable->directory, {options.durability.run, describe(options)});
  begin_log(1);
  make_checkpoint();
}

// With empty tables in the place of those that were lost the job would go on as if nothing had happened.
void Server::State::check_not_lost(bool is_there, bool is_same_run) const {
  const std::string& served = options.durability.served;
  if (served.empty()) return;
  const bool is_lost = served == options.durability.run
                           ? !is_same_run
                           : !is_there && goes_on_from_others(options.durability.found);
  if (!is_lost) return;
  const std::string gone = "what its earlier process kept in " + durable->directory + " is gone";
  const std::string on = options.standby.connect ? ", and its standby on " + options.standby.name() : "";
  // A standby that has not answered may be there the next time.
  if (following && following->generation == 0)
    throw Error(ErrorKind::network,
                name_of(options) + std::string(kMayHaveLostItsTables) + gone + on + " does not answer",
                "the log of that server says why");
  throw Error(
      ErrorKind::data,
      name_of(options) + std::string(kHasLostItsTables) + gone + (on.empty() ? on : on + " does not have it"),
      "start the job again, from what it has saved; a directory on a disk that stays "
      "(--ps_checkpoint=DIR), or a copy on another server (--ps_replicas=1), survives this");
}

// There is nothing to go on from, although somebody has asked for that.
void Server::State::start_without_checkpoint() {
  origin = wire::kBeganEmpty;
  const std::string what = durable->directory + " has no checkpoint to go on from";
  if (options.durability.found == FoundCheckpoint::require)
    throw Error(ErrorKind::config, what,
                "name the directory of the run to go on from, or start with empty tables: "
                "--ps_checkpoint_found=resume");
  durable->report(Error(ErrorKind::config, what + "; its tables start empty"), false);
}

// Another run's trainers are not known here: only what they had changed,
// in case one of them comes back with its identity.
void Server::State::go_on(bool is_same_run) {
  LoadedTables found = load_tables(durable->directory, place, options.tables);
  const Manifest manifest = found.manifest;
  const std::string fallen_back = found.fallen_back;
  const KeptState kept = take_in(std::move(found), is_same_run);
  durable->first_segment = kept.first_segment;
  const ReplayedLog replayed = replay_log(durable->directory, kept.first_segment,
                                          [&](LogRecord& record) { replay(record, is_same_run); });
  recovery = Recovery{manifest.save, replayed.records, replayed.cut_off, {}, fallen_back, {}};
  if (is_same_run) {
    recovery->awaited = barrier_service.go_on();
  } else {
    for (const auto& [client, history] : write_barrier.histories()) write_barrier.end(client);
  }
  begin_log(replayed.next_segment);
}

void Server::State::begin_log(std::uint64_t segment) {
  log_is_open = true;
  durable->watch = std::make_unique<DiskWatch>(
      options.durability.disk_patience,
      [this](std::chrono::milliseconds waited, bool is_over) { report_disk(waited, is_over); });
  durable->log = std::make_unique<WriteLog>(
      durable->directory, segment, options.durability.sync,
      [this](const Error& error) { durable->report(error, true); }, durable->watch.get());
}

void Server::State::report_disk(std::chrono::milliseconds waited, bool is_over) const {
  const std::string seconds = std::to_string(std::chrono::round<std::chrono::seconds>(waited).count()) + " s";
  durable->report(
      Error(ErrorKind::host, is_over ? durable->directory + " takes the log again, after " + seconds
                                     : durable->directory + " has not taken the log for " + seconds +
                                           ": its disk does not answer, and trainers wait for it"),
      false);
}

void Server::State::start_checkpoints() {
  if (!durable) return;
  durable->checkpointer = std::make_unique<Checkpointer>(options.durability.interval, [this] {
    try {
      make_checkpoint();
    } catch (const Error& error) {
      durable->report(error, false);
    }
  });
  // It has taken over more than its directory has.
  if (recovery && !recovery->standby.empty()) durable->checkpointer->wake();
}

void Server::State::make_checkpoint(std::uint64_t offer) {
  const std::lock_guard lock(durable->making);
  // Who follows the server reads the checkpoint before this one, and its log.
  if (is_handed_on || (offered != 0 && offer == 0)) return;
  const std::uint64_t tables_then = other_tables;
  Manifest manifest;
  manifest.save = next_save(durable->directory);
  manifest.parts.resize(place.servers);
  std::uint64_t segment = 0;
  Moment moment = take_moment([&] {
    segment = durable->log->rotate();
    ++checkpoints;
  });
  moment.kept.first_segment = segment;
  manifest.changes.number = moment.changes;
  PartWriter writer({durable->directory, manifest.save}, place);
  manifest.parts[place.rank] = writer.write(options.tables, moment.cut, named_state(moment.kept));
  durable->log->sync_begun();
  commit_manifest(durable->directory, manifest, place.rank);
  // The checkpoint before this one stays, and what follows it:
  // it is taken where this one turns out to be damaged.
  remove_log_before(durable->directory, durable->first_segment);
  durable->first_segment = segment;
  offered = offer;
  if (other_tables != tables_then) offered = 0;
}

void Server::State::wake_checkpointer() {
  const std::uint64_t limit = options.durability.log_bytes;
  if (limit == 0 || !durable->checkpointer || offered != 0) return;
  if (durable->log->bytes() >= limit) durable->checkpointer->wake();
}

void Server::State::keep(Kept kind, const BytePieces& payload) {
  durable->log->append(static_cast<std::uint32_t>(kind), payload);
  if (following) following->feed.append(static_cast<std::uint32_t>(kind), payload);
}

void Server::State::keep_change(const wire::Header& header, const Reader& body) {
  if (!log_is_open) return;
  const ChangeHead head{static_cast<std::uint32_t>(header.method),
                        header.trainer,
                        header.thread,
                        0,
                        header.incarnation,
                        header.sequence,
                        body.remaining()};
  BytePieces pieces{bytes_of(head)};
  append(pieces, body.pieces());
  keep(Kept::change, pieces);
  wake_checkpointer();
}

void Server::State::keep_step(const std::vector<Contribution>& step) {
  if (!log_is_open) return;
  const std::uint64_t pushes = step.size();
  std::vector<ChangeHead> heads;
  heads.reserve(step.size());
  BytePieces pieces{bytes_of(pushes)};
  for (const Contribution& push : step) {
    heads.push_back({static_cast<std::uint32_t>(wire::Method::push), push.from.trainer, push.from.thread, 0,
                     push.change.client.incarnation, push.change.number, push.body.remaining()});
    pieces.push_back(bytes_of(heads.back()));
    append(pieces, push.body.pieces());
  }
  keep(Kept::step, pieces);
  wake_checkpointer();
}

void Server::State::keep_refusal(const ChangeId& id, const Error& error) {
  if (!log_is_open || id.number == 0) return;
  Bytes bytes;
  bytes.value(ChangeHead{0, id.client.trainer, 0, 0, id.client.incarnation, id.number, 0});
  bytes.value(static_cast<std::uint32_t>(error.kind()));
  bytes.text(error.what());
  bytes.text(error.hint());
  keep(Kept::refusal, {bytes.bytes()});
}

void Server::State::keep_event(const BarrierEvent& event) {
  if (!log_is_open) return;
  Bytes bytes;
  write(bytes, event);
  keep(Kept::event, {bytes.bytes()});
}

void Server::State::keep_cut(std::uint32_t trainer, SaveMode mode) {
  if (!log_is_open) return;
  Bytes bytes;
  bytes.value(trainer);
  bytes.value(static_cast<std::uint32_t>(mode));
  keep(Kept::cut, {bytes.bytes()});
}

void Server::State::when_safe(std::function<void()> then) {
  if (!log_is_open || is_handed_on) return then();
  if (!following) return durable->log->when_safe(std::move(then));
  durable->log->when_safe(
      [this, then = std::move(then)]() mutable { following->feed.when_safe(std::move(then)); });
}

void Server::State::replay(LogRecord& record, bool is_same_run) {
  switch (static_cast<Kept>(record.kind)) {
    case Kept::change:
      return replay_change(record.payload);
    case Kept::step:
      return replay_step(record.payload);
    case Kept::refusal: {
      const auto head = record.payload.value<ChangeHead>();
      const auto kind = static_cast<ErrorKind>(record.payload.value<std::uint32_t>());
      const std::string what = wire::read_text(record.payload);
      const ChangeId id{{head.trainer, head.incarnation}, head.sequence};
      return write_barrier.note_refusal(id, Error(kind, what, wire::read_text(record.payload)));
    }
    case Kept::event:
      return replay_event(read_barrier_event(record.payload), is_same_run);
    case Kept::expiry: {
      const auto table = record.payload.value<std::uint32_t>();
      Message copy;
      const auto keys = record.payload.value<std::uint32_t>();
      current()->sparse(table).erase(record.payload.array<std::uint64_t>(keys, copy));
      return;
    }
    case Kept::cut:
      return replay_cut(record.payload);
    case Kept::settled:
      if (!told_cut) throw Error(ErrorKind::data, "the end of a save of which the log has no beginning");
      told_cut->cut->settle();
      return told_cut.reset();
    case Kept::settled_rows: {
      const auto table = record.payload.value<std::uint32_t>();
      const SaveMode mode = save_mode_of(record.payload.value<std::uint32_t>());
      const auto rows = record.payload.value<std::uint64_t>();
      Message keys, saved;
      const auto of = record.payload.array<std::uint64_t>(rows, keys);
      return current()->sparse(table).note_saved_rows(mode, of,
                                                      record.payload.array<Statistics>(rows, saved));
    }
  }
  throw Error(ErrorKind::data, "a log record of kind " + std::to_string(record.kind));
}

void Server::State::replay_event(const BarrierEvent& event, bool is_same_run) {
  if (is_same_run) barrier_service.replay(event);
  if (const auto* came = std::get_if<TrainerCame>(&event))
    write_barrier.begin({came->newcomer.trainer, came->newcomer.incarnation});
}

void Server::State::replay_change(Reader& in) {
  const auto head = in.value<ChangeHead>();
  const ChangeId id{{head.trainer, head.incarnation}, head.sequence};
  const Reader whole = in;
  std::optional<Error> refusal;
  try {
    const auto push = has_rows(static_cast<wire::Method>(head.method)) ? read_checked_push(in) : nullptr;
    const Outcome outcome =
        apply_counted({static_cast<wire::Method>(head.method), head.trainer, head.thread, head.incarnation},
                      whole, push.get(), [] {});
    if (const Error* why = std::get_if<Error>(&outcome)) refusal = *why;
  } catch (const Error& error) {
    refusal = error;
  }
  if (refusal) return write_barrier.note_refusal(id, *refusal);
  write_barrier.note(id);
}

void Server::State::replay_cut(Reader& in) {
  const auto trainer = in.value<std::uint32_t>();
  const SaveMode mode = save_mode_of(in.value<std::uint32_t>());
  told_cut.reset();
  told_cut = std::make_shared<SavedCut>(SavedCut{trainer, checkpoints, standbys});
  told_cut->cut = std::make_unique<TableCut>(current(), options.tables, mode);
  told_cut->cut->pass_over();
}

void Server::State::replay_step(Reader& in) {
  std::vector<Contribution> step;
  std::vector<Message> copies;
  const auto pushes = in.value<std::uint64_t>();
  for (std::uint64_t i = 0; i < pushes; ++i) {
    const auto head = in.value<ChangeHead>();
    copies.emplace_back();
    Reader body(in.array<std::byte>(head.bytes, copies.back()));
    Contribution push;
    push.from = {head.trainer, head.thread};
    push.change = {{head.trainer, head.incarnation}, head.sequence};
    push.push = std::make_unique<wire::PushRequest>(wire::read_push(body));
    step.push_back(std::move(push));
  }
  barrier_service.count(step);
  try {
    apply_averaged(step, *current());
    for (const Contribution& push : step) write_barrier.note(push.change);
  } catch (const Error& error) {
    for (const Contribution& push : step) write_barrier.note_refusal(push.change, error);
  }
}

}  // namespace fleetrun::ps
