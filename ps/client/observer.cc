#include "ps/client/observer.h"

#include "ps/base/wire.h"
#include "ps/client/channel_client.h"
#include "ps/client/pending_calls.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

TableConfig read_table(Reader& reader) {
  TableConfig table;
  table.id = reader.value<std::uint32_t>();
  const auto kind = reader.value<std::uint32_t>();
  if (kind > static_cast<std::uint32_t>(TableConfig::Kind::sparse))
    throw Error(ErrorKind::data, "table " + std::to_string(table.id) + " is of a kind that is not known here",
                "run the same fleetrun on all hosts");
  table.kind = static_cast<TableConfig::Kind>(kind);
  table.width = reader.value<std::uint64_t>();
  table.name = wire::read_text(reader);
  return table;
}

}  // namespace

ClientOptions observer_options() {
  ClientOptions options;
  options.trainer = wire::kObserver;
  return options;
}

Observer make_observer(ClientOptions options, std::uint64_t incarnation,
                       std::vector<std::unique_ptr<Channel>> channels) {
  const wire::Header header{wire::Method::stat, options.trainer, 0, incarnation, options.generation};
  PendingCalls pending(options.deadlines.data);
  pending.on_answer([&](std::uint32_t, Reader answer) {
    for (auto left = answer.value<std::uint32_t>(); left > 0; --left)
      options.tables.push_back(read_table(answer));
  });
  pending.start(*channels.at(0), 0, header, wire::draft(header, 0).message);
  pending.wait();
  Observer observer;
  observer.tables = options.tables;
  observer.client = make_channel_client(options, incarnation, std::move(channels), {});
  return observer;
}

}  // namespace fleetrun::ps
