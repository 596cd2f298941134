// Saving and loading on one server. A save is done in steps that the client leads through (ps/client_saving.cc).
#include "ps/server_state.h"
#include "ps/snapshot.h"

namespace fleetrun::ps {

void Server::load(const std::string& directory) {
  const Manifest manifest = read_manifest(directory);
  std::shared_ptr<TableSet> loaded = load_tables(directory, manifest, state_->place, state_->options.tables);
  const std::lock_guard lock(state_->mutex);
  state_->tables = std::move(loaded);
}

Message Server::State::save(const wire::Header& header, Reader& body) {
  const std::string directory = wire::read_text(body);
  const auto save = body.value<std::uint64_t>();
  {
    const std::lock_guard lock(mutex);
    if (saving && *saving != header.trainer && meeting.is_here(*saving)) {
      throw Error(ErrorKind::config,
                  "trainer " + std::to_string(header.trainer) + " wants to save while trainer " +
                      std::to_string(*saving) + " does",
                  "let one trainer save");
    }
    saving = header.trainer;
  }
  const SavedPart part = save_part(directory, save, place, options.tables, *current());
  Message out(sizeof part.bytes + sizeof part.checksum);
  Writer writer(out);
  writer.value(part.bytes);
  writer.value(part.checksum);
  return out;
}

void Server::State::commit_save(Reader& body) {
  const std::string directory = wire::read_text(body);
  Manifest manifest;
  manifest.save = body.value<std::uint64_t>();
  const auto parts = body.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < parts; ++i) {
    SavedPart part;
    part.bytes = body.value<std::uint64_t>();
    part.checksum = body.value<std::uint32_t>();
    manifest.parts.push_back(part);
  }
  wire::expect_end(body);
  write_manifest(directory, manifest, place);
}

void Server::State::clean_save(Reader& body) {
  const std::string directory = wire::read_text(body);
  {
    const std::lock_guard lock(mutex);
    saving.reset();
  }
  remove_other_parts(directory);
}

Message Server::State::prepare_load(Reader& body) {
  const std::string directory = wire::read_text(body);
  const Manifest manifest = read_manifest(directory);
  std::shared_ptr<TableSet> set = load_tables(directory, manifest, place, options.tables);
  const std::lock_guard lock(mutex);
  loaded = std::move(set);
  return message_of(manifest.save);
}

void Server::State::commit_load() {
  const std::lock_guard lock(mutex);
  if (!loaded) throw Error(ErrorKind::config, name_of(options) + " has nothing loaded to take over");
  tables = std::move(loaded);
  loaded.reset();
}

}  // namespace fleetrun::ps
