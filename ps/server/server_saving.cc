// Saving and loading on one server, in steps that the client leads through (ps/client/client_saving.cc).
#include <algorithm>
#include <utility>

#include "dataset/pipes/remote_file.h"
#include "ps/saving/paddle_checkpoint.h"
#include "ps/saving/parallel.h"
#include "ps/saving/remote_directory.h"
#include "ps/saving/snapshot.h"
#include "ps/saving/table_cut.h"
#include "ps/server/server_state.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

Message message_of_pieces(const std::vector<SavedPiece>& pieces) {
  Message out(sizeof(std::uint32_t) +
              pieces.size() * (sizeof(SavedPiece::bytes) + sizeof(SavedPiece::digest)));
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(pieces.size()));
  for (const SavedPiece& piece : pieces) {
    writer.value(piece.bytes);
    writer.value(piece.digest);
  }
  return out;
}

// So long a server keeps changes waiting for a save that does not go on.
constexpr std::chrono::seconds kLongestHold{120};
// So long a change that another server has may take to come here too.
constexpr std::chrono::seconds kSettling{60};

bool is_of_changed_rows(SaveMode mode) {
  return mode == SaveMode::delta || mode == SaveMode::changes;
}

// Its rows replace those that are there, and the others stay.
void overlay(TableSet& delta, const std::vector<TableConfig>& configs, TableSet& tables) {
  for (const TableConfig& config : configs) {
    if (config.kind == TableConfig::Kind::dense) {
      tables.dense(config.id).restore(delta.dense(config.id).contents());
      continue;
    }
    const auto cut = delta.sparse(config.id).begin_cut();
    SparseTable& to = tables.sparse(config.id);
    ColdBlock block;
    for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
      while (cut->read(shard, block)) {
        static_cast<void>(tables.stay());  // makes room where memory has a budget
        for (std::size_t i = 0; i < block.keys.size(); ++i) {
          to.insert(block.keys[i], std::span(block.rows).subspan(i * to.row_floats(), to.row_floats()));
        }
      }
    }
  }
}

// Throws: Error(config) for a name that no sparse table has.
std::vector<TableConfig> sparse_tables_named(const std::vector<std::string>& names,
                                             const std::vector<TableConfig>& tables) {
  std::vector<TableConfig> out;
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(tables, [&](const TableConfig& table) {
      return table.kind == TableConfig::Kind::sparse && table.name == name;
    });
    if (found != tables.end()) {
      out.push_back(*found);
      continue;
    }
    std::string there;
    for (const TableConfig& table : tables)
      if (table.kind == TableConfig::Kind::sparse) there += (there.empty() ? "" : ", ") + table.name;
    throw Error(ErrorKind::config, "no sparse table is called '" + printable(name) + "'",
                "there are: " + there);
  }
  return out;
}

std::string name_in_directory(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// A number of things of so many bytes each that follow.
std::uint32_t read_count(Reader& body, std::size_t bytes) {
  const auto count = body.value<std::uint32_t>();
  if (count > body.remaining() / bytes) {
    throw Error(ErrorKind::data, "the message announces " + std::to_string(count) + " parts and has " +
                                     std::to_string(body.remaining()) + " bytes for them");
  }
  return count;
}

}  // namespace

// Readers of a server that follows another's exports are no trainers of it until they push.
void Server::State::check_nobody_loses(const Manifest& save, const std::string& directory) const {
  const auto histories = write_barrier.histories();
  const bool has_lost = std::ranges::any_of(histories, [&](const auto& client) {
    return !save.changes.is_export() || client.second.highest() != 0;
  });
  if (!has_lost) return;
  throw Error(ErrorKind::config,
              "trainers have come to the server already, so it does not load " + printable(directory),
              "load before they are let in (RpcServerOptions::listens_later, in Python ps.Server(load=))");
}

std::string Server::load(const std::string& directory, const std::vector<std::string>& only) {
  const std::vector<TableConfig> chosen = sparse_tables_named(only, state_->options.tables);
  // Started again, it has more than was loaded then; unless its earlier process ended before that, and before
  // anybody came to it.
  const bool has_been_used = !state_->write_barrier.histories().empty() || state_->origin == wire::kResumed;
  if (state_->recovery && has_been_used) return {};
  LoadedTables loaded = state_->load_from(directory, std::nullopt);
  state_->current()->marks().has(loaded.manifest.changes);
  {
    const std::lock_guard lock(state_->mutex);
    // Whoever has come meanwhile, too: they pulled other rows, and what they pushed would go.
    if (!is_of_changed_rows(loaded.manifest.mode)) state_->check_nobody_loses(loaded.manifest, directory);
    if (only.empty()) {
      state_->take_over({loaded.manifest, std::move(loaded.tables), std::move(loaded.erased)});
    } else {
      overlay(*loaded.tables, chosen, *state_->tables);
    }
    state_->started_from = digest_of(loaded.manifest);
  }
  state_->begin_standby_anew();
  if (state_->durable) state_->make_checkpoint();
  return loaded.fallen_back;
}

// What was held or written is given up outside the lock: changes that waited go on then, on this thread.
void Server::State::drop_save() noexcept {
  std::shared_ptr<WriteBarrierHold> held;
  std::shared_ptr<SavedCut> written;  // its end removes what no manifest names
  std::optional<WaitingSave> next;
  {
    const std::lock_guard lock(mutex);
    held.swap(hold);
    written.swap(part);
    saving.reset();
    if (!waiting_saves.empty()) {
      next = std::move(waiting_saves.front());
      waiting_saves.pop_front();
      saving = next->trainer;
    }
  }
  held.reset();
  written.reset();
  if (next) start_save(*next);
}

void Server::State::end_save(const wire::Header& header, Reader& body) {
  const auto committed = body.value<std::uint32_t>();
  wire::expect_end(body);
  std::shared_ptr<SavedCut> written;
  bool is_mine = false;
  {
    const std::lock_guard lock(mutex);
    is_mine = saving == header.trainer;
    if (is_mine) {
      written.swap(part);
    } else if (told_cut && told_cut->trainer == header.trainer) {
      written.swap(told_cut);  // the process before this one had committed it
    }
  }
  // Only now: where a server could not commit, the rows are in the next delta again.
  if (written && committed != 0) settle(*written);
  if (is_mine) drop_save();
}

// Between changes, so that whoever follows the log does the same. A standby that has begun since the cut has
// not seen that, and is told the rows; a log with a checkpoint younger than the cut needs another checkpoint.
void Server::State::settle(const SavedCut& saved) {
  if (!saved.cut->changes_rows()) return;
  WriteBarrierHold between_changes(write_barrier, kLongestHold);
  bool is_in_log = false;
  between_changes.cut([&] {
    const bool has_standby_seen = saved.standbys == standbys;
    TableCut::Settled tell;
    if (following && !has_standby_seen)
      tell = [&](auto table, auto keys, auto rows) {
        Bytes bytes;
        bytes.value(table);
        bytes.value(static_cast<std::uint32_t>(saved.cut->mode()));
        bytes.value(std::uint64_t{keys.size()});
        bytes.array(keys);
        bytes.array(rows);
        following->feed.append(static_cast<std::uint32_t>(Kept::settled_rows), {bytes.bytes()});
      };
    saved.cut->settle(tell);
    is_in_log = saved.checkpoints == checkpoints;
    if (log_is_open && is_in_log) durable->log->append(static_cast<std::uint32_t>(Kept::settled), {});
    if (following && has_standby_seen) following->feed.append(static_cast<std::uint32_t>(Kept::settled), {});
    return true;
  });
  if (is_in_log) return;
  offered = 0;  // whoever reads the log to take the server over begins with the checkpoint
  if (durable) make_checkpoint();
}

void Server::State::lost_saver(std::uint32_t trainer) noexcept {
  std::shared_ptr<SavedCut> told;
  {
    const std::lock_guard lock(mutex);
    if (told_cut && told_cut->trainer == trainer) told.swap(told_cut);
    std::erase_if(waiting_saves, [trainer](const WaitingSave& save) { return save.trainer == trainer; });
    if (saving != trainer) return;
  }
  drop_save();
}

void Server::State::end_saves() {
  std::deque<WaitingSave> waiting;
  {
    const std::lock_guard lock(mutex);
    waiting.swap(waiting_saves);
  }
  for (const WaitingSave& save : waiting)
    save.respond(Error(ErrorKind::network, name_of(options) + " is ending"));
}

// Trainers save one after the other: the next one's turn comes when the save under way ends.
void Server::State::begin_save(const wire::Header& header, Reader& body, Respond& respond) {
  WaitingSave next{header.trainer, wire::read_text(body), nullptr};
  wire::expect_end(body);
  next.respond = std::exchange(respond, nullptr);
  std::shared_ptr<WriteBarrierHold> held;
  std::shared_ptr<SavedCut> written, told;
  {
    const std::lock_guard lock(mutex);
    told.swap(told_cut);
    if (saving && *saving != header.trainer && barrier_service.is_here(*saving))
      return waiting_saves.push_back(std::move(next));
    held.swap(hold);
    written.swap(part);
    saving = header.trainer;
  }
  held.reset();
  written.reset();
  told.reset();
  start_save(next);
}

void Server::State::start_save(const WaitingSave& save) noexcept {
  try {
    for (const TableConfig& table : options.tables) expire_all(table.id);
    if (dataset::is_remote(save.directory)) {
      check_can_upload(save.directory, options.copies);
      return save.respond(message_of(next_remote_save()));
    }
    remove_other_pieces(save.directory);
    save.respond(message_of(next_save(save.directory)));
  } catch (const Error& error) {
    save.respond(error);
    drop_save();
  }
}

Message Server::State::freeze_save() {
  std::shared_ptr<WriteBarrierHold> before;
  {
    const std::lock_guard lock(mutex);
    before.swap(hold);
  }
  before.reset();
  auto held = std::make_shared<WriteBarrierHold>(write_barrier, kLongestHold);
  const WriteBarrier::Sequences& sequences = held->sequences();
  Message out(sizeof(std::uint32_t) + sequences.size() * sizeof(wire::Progress));
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(sequences.size()));
  for (const auto& [client, number] : sequences) {
    writer.value(wire::Progress{client.trainer, 0, client.incarnation, number});
  }
  const std::lock_guard lock(mutex);
  hold = std::move(held);
  return out;
}

void Server::State::settle_save(Reader& body) {
  WriteBarrier::Sequences upto;
  for (std::uint32_t left = read_count(body, sizeof(wire::Progress)); left > 0; --left) {
    const auto progress = body.value<wire::Progress>();
    upto[{progress.trainer, progress.incarnation}] = progress.number;
  }
  wire::expect_end(body);
  held_barrier()->settle(upto, kSettling);
}

std::shared_ptr<WriteBarrierHold> Server::State::held_barrier() const {
  const std::lock_guard lock(mutex);
  if (!hold) throw Error(ErrorKind::config, name_of(options) + " is not about to save");
  return hold;
}

Message Server::State::save_part(const wire::Header& header, Reader& body) {
  SaveName name;
  name.directory = wire::read_text(body);
  name.save = body.value<std::uint64_t>();
  const auto mode = body.value<std::uint32_t>();
  const bool replaces = body.value<std::uint32_t>() != 0;  // an export that this one repeats
  name.changes = body.value<Changes>();
  wire::expect_end(body);
  name.mode = name.changes.since != 0 ? SaveMode::changes : save_mode_of(mode);
  if (!dataset::is_remote(name.directory))
    check_replaceable(name.directory, replaces ? Changes{} : name.changes);
  name.generation = header.generation;
  const bool is_run =
      options.run.size() <= 64 && options.run.find_first_not_of("0123456789abcdef") == std::string::npos;
  name.run = is_run ? options.run : "";  // the environment's: it may be anything
  const std::shared_ptr<SavedCut> saved = begin_cut(header.trainer, name.mode, name.changes);
  if (dataset::is_remote(name.directory)) {
    saved->remote = std::make_unique<RemoteDirectory>(name.directory, options.copies);
    name.directory = saved->remote->here();
  }
  saved->writer = std::make_unique<PartWriter>(std::move(name), place);
  const std::vector<SavedPiece> pieces = saved->writer->write(options.tables, *saved->cut);
  Message out = message_of_pieces(pieces);
  if (saved->remote) {
    work_in_parallel(pieces.size(), [&](std::size_t piece) {
      const std::string path =
          piece_path(saved->writer->save(), place.rank, static_cast<std::uint32_t>(piece));
      saved->remote->upload(name_in_directory(path));
    });
  }
  const std::lock_guard lock(mutex);
  part = saved;
  return out;
}

std::shared_ptr<SavedCut> Server::State::begin_cut(std::uint32_t trainer, SaveMode mode,
                                                   const Changes& changes) {
  auto saved = std::make_shared<SavedCut>(SavedCut{trainer});
  held_barrier()->cut([&] {
    const std::shared_ptr<TableSet> set = current();
    const ChangeWindow window = changes.is_export() ? set->marks().mark(changes) : ChangeWindow{};
    saved->cut = std::make_unique<TableCut>(set, options.tables, mode, window);
    saved->checkpoints = checkpoints;
    saved->standbys = standbys;
    if (saved->cut->changes_rows()) keep_cut(trainer, mode);
    return true;
  });
  return saved;
}

void Server::State::save_text(const wire::Header& header, Reader& body) {
  const std::string directory = wire::read_text(body);
  const SaveMode mode = save_mode_of(body.value<std::uint32_t>());
  wire::expect_end(body);
  if (dataset::is_remote(directory))
    throw Error(ErrorKind::config,
                printable(directory) + " is not a directory of this host, as Paddle's files need it",
                "save to a directory of the server's host, and copy that");
  const std::shared_ptr<SavedCut> saved = begin_cut(header.trainer, mode);
  save_paddle_checkpoint(directory, options.tables, *saved->cut);
  const std::lock_guard lock(mutex);
  part = saved;
}

void Server::State::commit_save(Reader& body) {
  Manifest manifest;
  manifest.parts.resize(read_count(body, sizeof(std::uint32_t)));
  for (std::vector<SavedPiece>& pieces : manifest.parts) {
    pieces.resize(read_count(body, sizeof(SavedPiece::bytes) + sizeof(SavedPiece::digest)));
    for (SavedPiece& piece : pieces) {
      piece.bytes = body.value<std::uint64_t>();
      piece.digest = body.value<std::uint64_t>();
    }
  }
  wire::expect_end(body);
  std::shared_ptr<SavedCut> written;
  {
    const std::lock_guard lock(mutex);
    written = part;
  }
  if (!written || !written->writer)
    throw Error(ErrorKind::config, name_of(options) + " has written nothing that could be committed");
  const SaveName& name = written->writer->save();
  manifest.save = name.save;
  manifest.mode = name.mode;
  manifest.generation = name.generation;
  manifest.run = name.run;
  manifest.changes = name.changes;
  written->writer->check_still_there();
  // All pieces are there: each server has answered so. One manifest is for all of them.
  if (written->remote && place.rank != 0) return;
  commit_manifest(name.directory, manifest, place.rank);
  if (written->remote) written->remote->upload(name_in_directory(manifest_path(name.directory)));
}

LoadedTables Server::State::load_from(const std::string& directory,
                                      std::optional<std::uint64_t> wanted) const {
  if (directory.empty()) throw Error(ErrorKind::config, "the name of the directory to load is empty");
  if (!dataset::is_remote(directory)) return load_tables(directory, place, options.tables, wanted);
  const RemoteDirectory remote(directory, options.copies);
  remote.download(name_in_directory(manifest_path(remote.here())));
  return load_tables(remote.here(), place, options.tables, wanted,
                     [&](const std::string& path) { remote.download(name_in_directory(path)); });
}

Message Server::State::prepare_load(const wire::Header& header, Reader& body) {
  const std::string directory = wire::read_text(body);
  const auto wanted = body.value<std::uint64_t>();
  wire::expect_end(body);
  LoadedTables set = load_from(directory, wanted == 0 ? std::nullopt : std::optional<std::uint64_t>(wanted));
  Message out(2 * sizeof(std::uint64_t) + wire::text_size(set.fallen_back));
  Writer writer(out);
  writer.value(set.manifest.save);
  writer.value(digest_of(set.manifest));
  wire::write_text(writer, set.fallen_back);
  const std::lock_guard lock(mutex);
  tables->marks().has(set.manifest.changes);
  WaitingLoad found{std::move(set.manifest), std::move(set.tables), std::move(set.erased)};
  for (const auto& [trainer, other] : loaded)
    if (trainer != header.trainer && other.manifest == found.manifest) found.tables = other.tables;
  loaded[header.trainer] = std::move(found);
  return out;
}

void Server::State::take_over(const WaitingLoad& load) {
  if (!is_of_changed_rows(load.manifest.mode)) {
    tables = load.tables;
    return;
  }
  if (tables->marks().has(load.manifest.changes)) return;
  tables->marks().note_change();
  overlay(*load.tables, options.tables, *tables);
  for (const auto& [id, keys] : load.erased) tables->sparse(id).erase(keys);
  tables->marks().set_number(load.manifest.changes.number);
}

void Server::State::commit_load(std::uint32_t trainer) {
  {
    const std::lock_guard lock(mutex);
    const auto mine = loaded.find(trainer);
    if (mine == loaded.end())
      throw Error(ErrorKind::config, name_of(options) + " has nothing loaded to take over",
                  "it was killed in between: load once more");
    take_over(mine->second);
    started_from = digest_of(mine->second.manifest);
    loaded.erase(mine);
  }
  begin_standby_anew();
  if (durable) make_checkpoint();
}

}  // namespace fleetrun::ps
