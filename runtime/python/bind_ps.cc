// Parameter servers: the client of a trainer, in this process or over gRPC, and a server.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/client/client.h"
#include "ps/client/client_environment.h"
#include "ps/disk/disk_settings.h"
#include "ps/durable/durable_settings.h"
#include "ps/memory/in_process.h"
#include "ps/modes/row_cache.h"
#include "ps/modes/trainer_mode.h"
#include "ps/rpc/connect.h"
#include "ps/rpc/hosted_servers.h"
#include "ps/rpc/rpc_server.h"
#include "ps/rpc/standby_link.h"
#include "ps/server/server.h"
#include "ps/table/memory_quota.h"
#include "runtime/base/environ.h"
#include "runtime/base/text.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/timelines.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

using Client = ps::Client;
using ClientPtr = std::shared_ptr<Client>;
using engine::DataType;
using engine::Tensor;

std::shared_ptr<Tensor> tensor_of(const Buffer& values) {
  auto tensor = std::make_shared<Tensor>();
  assign(*tensor, values);
  return tensor;
}

// A call that is left behind after Ctrl-C must own its buffers and the client: hence the shared tensors.

void set_dense(ClientPtr client, std::uint32_t table, const Buffer& values) {
  run_interruptibly(
      [=, tensor = tensor_of(values)] { client->set_dense(table, std::as_const(*tensor).values<float>()); });
}

std::shared_ptr<Tensor> pull_dense(ClientPtr client, std::uint32_t table, std::int64_t width) {
  auto tensor = std::make_shared<Tensor>(DataType::float32, engine::Shape{width});
  run_interruptibly([=] { client->pull({.sparse = {}, .dense = {{table, tensor->values<float>()}}}); });
  return tensor;
}

std::shared_ptr<Tensor> pull_rows(ClientPtr client, std::uint32_t table,
                                  const std::vector<std::uint64_t>& keys, std::int64_t width) {
  auto tensor = std::make_shared<Tensor>(DataType::float32,
                                         engine::Shape{static_cast<std::int64_t>(keys.size()), width});
  run_interruptibly([=] { client->pull({.sparse = {{table, keys, tensor->values<float>()}}, .dense = {}}); });
  return tensor;
}

std::shared_ptr<Tensor> all_reduce_sum(ClientPtr client, const Buffer& values) {
  auto tensor = tensor_of(values);
  run_interruptibly([=] { client->all_reduce_sum(tensor->values<double>()); });
  return tensor;
}

void save(ClientPtr client, const std::string& directory, std::uint32_t mode) {
  run_interruptibly([=] { client->save(directory, static_cast<ps::SaveMode>(mode)); });
}

/// Whether this process was that trainer before: what it did then, up to its goodbye,
/// is nothing to go on after.
bool was_here(std::uint32_t trainer) {
  static std::mutex mutex;
  static std::set<std::uint32_t> trainers;
  const std::lock_guard lock(mutex);
  return !trainers.insert(trainer).second;
}

ClientPtr connect(const std::vector<std::string>& endpoints, std::uint32_t trainer, std::uint32_t trainers,
                  const std::string& mode, std::vector<ps::TableConfig> tables, std::uint64_t generation,
                  const std::string& launcher, const std::array<std::uint32_t, 4>& exchange,
                  std::uint64_t identity, bool counts_epochs,
                  std::shared_ptr<ps::ServerAddresses> addresses) {
  const auto client = std::make_shared<ClientPtr>();
  const ps::TrainerMode trained{ps::mode_of(mode), trainers,    std::move(tables), exchange[0],
                                exchange[1],       exchange[2], exchange[3]};
  run_interruptibly([=, options = ps::ClientOptions{
                            trainer, trainers, trained.mode, ps::server_tables(trained.mode, trained.tables),
                            generation, launcher, identity, was_here(trainer)}]() mutable {
    const Environ environ = Environ::of_process();
    ps::read_environment(environ, options);
    options.counts_epochs = counts_epochs && ps::recover_within_of(environ).count() > 0;
    auto connected = ps::connect(endpoints, options,
                                 {.access = ps::access_of(environ),
                                  .transport = ps::transport_of(environ),
                                  .recover_within = ps::recover_within_of(environ),
                                  .addresses = std::move(addresses)});
    *client = ps::with_mode(
        ps::with_row_cache(std::move(connected), options.mode, options.tables, ps::row_cache_of(environ)),
        trained);
  });
  return *client;
}

void bind_client(nb::module_& module) {
  nb::class_<ps::ServerAddresses>(module, "ServerAddresses",
                                  "Where the servers are reached, by rank, which may change.")
      .def(make<ps::ServerAddresses, std::vector<std::string>>(), "endpoints"_a)
      .def(
          "move",
          [](ps::ServerAddresses& self, const std::map<std::uint32_t, std::string>& servers) {
            const WithoutGil released;
            self.move(servers);
          },
          "servers"_a, "Those that are somewhere else from now on, {rank: endpoint}.");
  nb::class_<Client>(module, "Client",
                     "A trainer's view of all servers. Calls throw Error(network) when a server is gone.")
      .def("set_dense", set_dense, "table"_a, "values"_a,
           "First values of a dense table. Shape: float32 [width].")
      .def("pull_dense", pull_dense, "table"_a, "width"_a,
           "Shape: float32 [width]. Throws: Error(config) before the table has values.")
      .def("pull_rows", pull_rows, "table"_a, "keys"_a, "width"_a, "Shape: float32 [len(keys), width].")
      .def("all_reduce_sum", all_reduce_sum, "values"_a,
           "Sums over all trainers, a barrier. Shape: float64, any.")
      .def(
          "barrier", [](ClientPtr self) { run_interruptibly([=] { self->barrier(); }); },
          "Returns when every trainer has called it.")
      .def("save", save, "directory"_a, "mode"_a = 0,
           "Every server writes its tables below `directory`: 0 all rows, 1 changed ones, 2 those to serve, "
           "3 a "
           "checkpoint. Throws: Error(host).")
      .def(
          "export_rows",
          [](ClientPtr self, const std::string& directory, std::uint64_t since) {
            const auto number = std::make_shared<std::uint64_t>();
            run_interruptibly([=] { *number = self->export_rows(directory, since); });
            return *number;
          },
          "directory"_a, "since"_a = 0,
          "Saves what has changed since the export of that number; 0: all rows. The number of this one.")
      .def(
          "save_for_paddle",
          [](ClientPtr self, const std::string& directory, std::uint32_t mode) {
            run_interruptibly([=] { self->save_for_paddle(directory, static_cast<ps::SaveMode>(mode)); });
          },
          "directory"_a, "mode"_a = 0, "The same as Paddle 2.6.2 reads it; for one server.")
      .def(
          "load",
          [](ClientPtr self, const std::string& directory) {
            const auto warning = std::make_shared<std::string>();
            run_interruptibly([=] { *warning = self->load(directory); });
            return *warning;
          },
          "directory"_a, "What is wrong with the newest save, \"\" when all is well. Throws: Error(data).")
      .def(
          "shrink",
          [](ClientPtr self, std::uint32_t table) {
            const auto erased = std::make_shared<std::uint64_t>();
            run_interruptibly([=] { *erased = self->shrink(table); });
            return *erased;
          },
          "table"_a, "Ends a day; how many rows went.")
      .def(
          "rows",
          [](ClientPtr self, std::uint32_t table) {
            const auto count = std::make_shared<std::uint64_t>();
            run_interruptibly([=] { *count = self->rows(table); });
            return *count;
          },
          "table"_a, "How many rows the table has on all servers.")
      // nanobind does not see that a noexcept function of a base is one of Client.
      .def_prop_ro(
          "is_late", [](const Client& client) { return client.is_late(); },
          "Whether the other trainers train already.")
      .def_prop_ro(
          "next_change", [](const Client& client) { return client.next_change(); },
          "The number of the next push, from 1.")
      .def_prop_ro("is_catching_up", &Client::is_catching_up,
                   "Whether it does again what the process before it did.")
      .def_prop_ro(
          "counts_epochs", [](const Client& client) { return client.counts_epochs(); },
          "Whether it goes on in the middle of an epoch when its process is started again.")
      .def("skip_steps", &Client::skip_steps, "steps"_a, "Takes up to so many steps as done; how many were.")
      .def(
          "set_epoch", [](Client& client, std::uint64_t epoch) { client.set_generation(epoch); }, "epoch"_a,
          "The number of the world that the job has now.")
      .def(
          "set_rate", [](Client& client, float rate) { client.set_rate(rate); }, "rate"_a,
          "What pushes from now on multiply scheduled rates by.")
      .def(
          "goodbye", [](ClientPtr self) { run_interruptibly([=] { self->goodbye(); }); },
          "This trainer is done; servers end when all are.");
  module.def("connect", connect, "endpoints"_a, "trainer"_a, "trainers"_a, "mode"_a, "tables"_a,
             "epoch"_a = 0, "launcher"_a = "", "exchange"_a = std::array<std::uint32_t, 4>{400, 1, 16, 0},
             "identity"_a = 0, "counts_epochs"_a = false, "addresses"_a = nb::none(),
             "A Client of servers by rank; of `addresses`, where those may change. exchange: geo_steps, "
             "merged, waiting, max_ahead of "
             "ps::TrainerMode. counts_epochs: as ps::ClientOptions. Throws: "
             "Error(network) naming those that do not answer, Error(config) when the tables of both sides "
             "disagree.");
  module.def(
      "make_in_process",
      [](const std::string& mode, const std::vector<ps::TableConfig>& tables) {
        const ps::TableMemory memory = ps::table_memory_of(Environ::of_process(), tables, 0);
        return ClientPtr(std::move(ps::make_in_process(1, 1, ps::mode_of(mode), tables, memory).front()));
      },
      "mode"_a, "tables"_a, "A Client whose one server is in this process.");
}

/// Whether FLEETRUN_LISTEN, the endpoints that fleetrun holds for this process, names `endpoint`.
bool is_held_by_launcher(const std::string& endpoint) {
  const std::vector<std::string> held = split(Environ::of_process().value_or("FLEETRUN_LISTEN", ""), ',');
  return std::find(held.begin(), held.end(), endpoint) != held.end();
}

/// The servers of this process, as the environment says.
ps::HostedServersOptions hosted_servers(ps::ServerOptions options, const std::string& endpoint,
                                        std::shared_ptr<ps::ServerAddresses> addresses) {
  const Environ environ = Environ::of_process();
  const std::uint32_t rank = options.rank;
  options.tables = ps::server_tables(options.mode, options.tables);
  options.memory_limit = ps::memory_limit_of(environ);
  options.run = environ.value_or("FLEETRUN_RUN", "");
  options.durability = ps::durability_of(environ);
  if (!addresses)
    addresses = std::make_shared<ps::ServerAddresses>(
        split(environ.value_or("PADDLE_PSERVERS_IP_PORT_LIST", ""), ','));
  options.standby = ps::standby_options_of(environ, rank, addresses);
  options.copies = ps::copy_commands_of(environ);
  options.recover_within = ps::recover_within_of(environ);
  options.timeline = timeline_of(environ, "server", rank, "run");
  ps::HostedServersOptions hosted{rank, {endpoint}, environ.value_or("FLEETRUN_PS_PROCESSES", ""), {}, {},
                                  {},   {}};
  if (!hosted.process_count_file.empty())
    hosted.endpoints = split(environ.value_or("PADDLE_PSERVERS_IP_PORT_LIST", ""), ',');
  if (options.standby.connect) {
    if (const std::string* standbys = environ.find("FLEETRUN_PS_STANDBY"))
      hosted.standby_endpoints = split(*standbys, ',');
    hosted.addresses = addresses;
  }
  hosted.server = [options, environ, addresses](std::uint32_t server) {
    ps::ServerOptions mine = options;
    mine.rank = server;
    mine.standby = ps::standby_options_of(environ, server, addresses);
    mine.memory = ps::table_memory_of(environ, mine.tables, server);
    return mine;
  };
  hosted.rpc = [environ, rank, endpoints = hosted.endpoints](std::uint32_t server) {
    // The figures of each server are where the launcher looks for those of its rank.
    std::string figures = environ.value_or("FLEETRUN_SERVER_FIGURES", "");
    const std::string own = "." + std::to_string(rank) + ".";
    if (const auto at = figures.rfind(own); server != rank && at != std::string::npos)
      figures.replace(at, own.size(), "." + std::to_string(server) + ".");
    return ps::RpcServerOptions{
        is_held_by_launcher(endpoints.size() == 1 ? endpoints[0] : endpoints.at(server)),
        ps::access_of(environ), ps::transport_of(environ), figures};
  };
  return hosted;
}

}  // namespace

void bind_ps(nb::module_& module) {
  using Server = ps::HostedServers;
  nb::class_<ps::TableConfig>(module, "TableConfig", "A table as servers and trainers agree on it.")
      .def_ro("id", &ps::TableConfig::id)
      .def_ro("name", &ps::TableConfig::name)
      .def_ro("width", &ps::TableConfig::width, "float32 values of a row, or of a dense table in all.")
      .def_prop_ro(
          "has_statistics",
          [](const ps::TableConfig& self) { return self.accessor.kind != ps::Accessor::Kind::plain; })
      .def("__str__", [](const ps::TableConfig& self) { return ps::describe(self); })
      .def_prop_ro(
          "decays",
          [](const ps::TableConfig& self) {
            return std::map<std::string, float>{{"L1Decay", self.rule.l1_decay},
                                                {"L2Decay", self.rule.l2_decay},
                                                {"AdamW", self.rule.own_decay}};
          },
          "By how much its rule lets values decay, 0 where it does not.")
      .def_prop_ro("sparse",
                   [](const ps::TableConfig& self) { return self.kind == ps::TableConfig::Kind::sparse; });
  bind_client(module);
  nb::class_<Server>(module, "RpcServer",
                     "The parameter server of this process, or those that it "
                     "serves now.")
      .def(nb::new_([](std::uint32_t rank, std::uint32_t servers, std::uint32_t trainers,
                       const std::string& mode, std::vector<ps::TableConfig> tables,
                       const std::string& endpoint, std::uint64_t generation, bool listens,
                       std::shared_ptr<ps::ServerAddresses> addresses) {
             ps::ServerOptions options{rank,      servers, trainers, ps::mode_of(mode), std::move(tables),
                                       generation};
             return std::make_shared<Server>(
                 hosted_servers(std::move(options), endpoint, std::move(addresses)), listens);
           }),
           "rank"_a, "servers"_a, "trainers"_a, "mode"_a, "tables"_a, "endpoint"_a, "epoch"_a = 0,
           "listens"_a = true, "addresses"_a = nb::none(),
           "Binds `endpoint` and serves from then on, or from listen() on. Throws: Error(network) for a port "
           "that is taken, Error(config).")
      .def("listen", &Server::listen, "Lets trainers in; once, where it does not listen yet.")
      .def(
          "update",
          [](Server& self, std::uint64_t generation, bool in_place,
             std::map<std::uint32_t, std::string> trainers,
             const std::map<std::uint32_t, std::string>& servers) {
            const WithoutGil released;
            self.update({generation, in_place, std::move(trainers)}, servers);
          },
          "epoch"_a, "in_place"_a, "trainers"_a, "servers"_a,
          "Tells of the trainers that there are now, {rank: id}, and where the servers are, {rank: "
          "endpoint}. Returns once a server that is to be served here is.")
      .def("stale_requests", &Server::stale_requests, "Requests of trainers that were lost, refused so far.")
      .def_prop_ro("endpoint", &Server::endpoint, "HOST:PORT that was bound.")
      .def("stat", &Server::stat, "What it has done so far, as JSON.")
      .def(
          "load",
          [](std::shared_ptr<Server> self, const std::string& directory,
             const std::vector<std::string>& only) {
            const auto warning = std::make_shared<std::string>();
            run_interruptibly([=] { *warning = self->load(directory, only); });
            return *warning;
          },
          "directory"_a, "only"_a = std::vector<std::string>{},
          "As Client.load(), for this server alone; only: the rows of these tables.")
      .def(
          "wait",
          [](std::shared_ptr<Server> self) {
            run_interruptibly([=] { self->wait(); }, [=] { self->stop(); });
          },
          "Serves until all trainers have said goodbye, or stop().")
      .def(
          "stop", [](Server& self) { self.stop(); }, "Ends wait().");
}

}  // namespace fleetrun::python
