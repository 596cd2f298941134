// Saving and loading on one server, in steps that the client leads through (ps/client_saving.cc).
#include "ps/saving/table_cut.h"
#include "ps/server_state.h"
#include "ps/snapshot.h"

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

std::string Server::load(const std::string& directory) {
  LoadedTables loaded = load_tables(directory, state_->place, state_->options.tables);
  const std::lock_guard lock(state_->mutex);
  state_->tables = std::move(loaded.tables);
  return loaded.fallen_back;
}

Message Server::State::begin_save(const wire::Header& header, Reader& body) {
  const std::string directory = wire::read_text(body);
  wire::expect_end(body);
  std::shared_ptr<PartWriter> left_behind;
  {
    const std::lock_guard lock(mutex);
    if (saving && *saving != header.trainer && meeting.is_here(*saving)) {
      throw Error(ErrorKind::config,
                  "trainer " + std::to_string(header.trainer) + " wants to save while trainer " +
                      std::to_string(*saving) + " does",
                  "let one trainer save");
    }
    saving = header.trainer;
    left_behind = std::move(part);
  }
  left_behind.reset();
  remove_other_pieces(directory);
  return message_of(next_save(directory));
}

Message Server::State::save_part(const wire::Header& header, Reader& body) {
  SaveName name;
  name.directory = wire::read_text(body);
  name.save = body.value<std::uint64_t>();
  name.mode = save_mode_of(body.value<std::uint32_t>());
  wire::expect_end(body);
  name.epoch = header.epoch;
  name.run = options.run;
  const TableCut cut(current(), options.tables);
  auto writer = std::make_shared<PartWriter>(std::move(name), place);
  Message out = message_of_pieces(writer->write(options.tables, cut));
  const std::lock_guard lock(mutex);
  part = std::move(writer);
  return out;
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
  std::shared_ptr<PartWriter> written;
  {
    const std::lock_guard lock(mutex);
    written = part;
  }
  if (!written)
    throw Error(ErrorKind::config, name_of(options) + " has written nothing that could be committed");
  const SaveName& name = written->save();
  manifest.save = name.save;
  manifest.mode = name.mode;
  manifest.epoch = name.epoch;
  manifest.run = name.run;
  written->check_still_there();
  commit_manifest(name.directory, manifest, place.rank);
}

void Server::State::end_save() {
  std::shared_ptr<PartWriter> done;  // its end removes what no manifest names, without the lock
  const std::lock_guard lock(mutex);
  saving.reset();
  done.swap(part);
}

Message Server::State::prepare_load(Reader& body) {
  const std::string directory = wire::read_text(body);
  const auto wanted = body.value<std::uint64_t>();
  wire::expect_end(body);
  LoadedTables set = load_tables(directory, place, options.tables,
                                 wanted == 0 ? std::nullopt : std::optional<std::uint64_t>(wanted));
  Message out(2 * sizeof(std::uint64_t) + wire::text_size(set.fallen_back));
  Writer writer(out);
  writer.value(set.manifest.save);
  writer.value(digest_of(set.manifest));
  wire::write_text(writer, set.fallen_back);
  const std::lock_guard lock(mutex);
  loaded = std::make_unique<LoadedTables>(std::move(set));
  return out;
}

void Server::State::commit_load() {
  const std::lock_guard lock(mutex);
  if (!loaded) throw Error(ErrorKind::config, name_of(options) + " has nothing loaded to take over");
  tables = std::move(loaded->tables);
  loaded.reset();
}

}  // namespace fleetrun::ps
