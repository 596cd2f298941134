// What a server has done so far, and who only looks on: an observer has proved the job's secret, as everybody has, and
// is no trainer. Nobody waits for it, it keeps no job alive, and it changes nothing that training depends on.
#include "ps/server_state.h"
#include "ps/watch/stat_json.h"

namespace fleetrun::ps {
namespace {

bool is_for_trainers(wire::Method method) noexcept {
  using enum wire::Method;
  switch (method) {
    case attend:
    case goodbye:
    case pull:
    case pull_touched:
    case push:
    case set_dense:
    case begin_pass:
    case leave_pass:
    case barrier:
    case all_reduce:
    case load_prepare:
    case load_commit:
    case load_abort:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Server::State::check_observer(wire::Method method) const {
  if (!is_for_trainers(method)) return;
  throw Error(ErrorKind::config, "who looks on may not " + std::string(wire::to_string(method)) +
                                     ": that is for the job's trainers");
}

Message Server::State::hello_observer(Reader& body) const {
  static_cast<void>(body.value<std::uint32_t>());  // mode and trainers: not an observer's to know
  static_cast<void>(body.value<std::uint32_t>());
  compare("the number of servers", std::to_string(options.servers),
          std::to_string(body.value<std::uint32_t>()));
  compare("the server's rank", std::to_string(options.rank), std::to_string(body.value<std::uint32_t>()));
  return message_of(wire::HelloAnswer{});
}

std::string Server::stat() const {
  const State& state = *state_;
  return stat_json({state.options, *state.figures, *state.current(), state.stale_requests});
}

Message Server::State::stat() const {
  const std::string text = stat_json({options, *figures, *current(), stale_requests});
  std::size_t size = sizeof(std::uint32_t) + wire::text_size(text);
  for (const TableConfig& table : options.tables)
    size += 2 * sizeof(std::uint32_t) + sizeof table.width + wire::text_size(table.name);
  Message out(size);
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(options.tables.size()));
  for (const TableConfig& table : options.tables) {
    writer.value(table.id);
    writer.value(static_cast<std::uint32_t>(table.kind));
    writer.value(table.width);
    wire::write_text(writer, table.name);
  }
  wire::write_text(writer, text);
  return out;
}

}  // namespace fleetrun::ps
