// A parameter server without its transport: tables, the barrier service, save and load.
// ps/rpc/rpc_server.h serves it over gRPC; ps/memory/in_process.h calls it directly.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps/base/durability.h"
#include "ps/base/outcome.h"
#include "ps/base/standby.h"
#include "ps/base/table_config.h"
#include "ps/base/wire.h"
#include "ps/durable/write_barrier.h"
#include "ps/saving/remote_directory.h"
#include "ps/sync/trainer_registry.h"
#include "ps/table/memory_quota.h"
#include "ps/table/row_clock.h"
#include "ps/table/table_memory.h"
#include "runtime/base/timeline.h"

namespace fleetrun::ps {

class FollowedServer;

struct ServerOptions {
  std::uint32_t rank = 0;
  std::uint32_t servers = 1;
  std::uint32_t trainers = 1;
  Mode mode = Mode::async;
  std::vector<TableConfig> tables;
  /// Of the world that the server was started in; 0 without any.
  std::uint64_t generation = 0;
  /// For tables that are on_disk (ps/disk/disk_settings.h reads it from the environment).
  TableMemory memory = {};
  /// The run of the job (FLEETRUN_RUN): generations of different runs do not compare.
  std::string run = {};
  /// What the server's process may use before it refuses requests (ps/table/memory_quota.h); 0 for no limit.
  std::uint64_t memory_limit = 0;
  /// What it does use.
  std::function<std::uint64_t()> memory_used = resident_bytes;
  /// What the server keeps, so that it can be started again and go on.
  Durability durability = {};
  /// Who else has its state. Only with Durability::directory.
  StandbyOptions standby = {};
  /// What copies saves of directories that are not on the server's host.
  CopyCommands copies = {};
  /// How long a trainer whose connection has ended, or a trainer of before the server was started again, may
  /// take to come back. 0: it is lost at once.
  std::chrono::milliseconds recover_within{0};
  /// Where requests are drawn; may be null.
  std::shared_ptr<Timeline> timeline = nullptr;
  /// By which rows expire (TableConfig::expire_seconds).
  RowClock clock = seconds_now;
  /// How often a thread of the server calls expire_some(); 0: never.
  std::chrono::milliseconds expiry_interval{1000};
  /// Where servers move between processes: the process that serves this one, and, where it has moved or comes
  /// from a standby, what that process has of it. Only with Durability::directory.
  std::optional<std::uint32_t> process = {};
  std::shared_ptr<FollowedServer> followed = {};
};

/// How a server that was started again has found itself.
struct Recovery {
  std::uint64_t checkpoint = 0;
  std::uint64_t records = 0;  // of the log after it
  std::uint64_t cut_off = 0;  // bytes that were never answered
  std::vector<ClientId> awaited;
  /// What was wrong with the newest checkpoint, where the one before it was taken.
  std::string fallen_back = {};
  /// The server that held its standby, where it goes on from that; there is no checkpoint then.
  std::string standby = {};
  /// It has moved here from another process, which has ended it.
  bool has_moved = false;
};

/// Threads: all calls may be made from several threads at once.
class Server {
 public:
  /// With Durability::directory, what was kept there is restored before this returns. `all_done` is called
  /// once all trainers have said goodbye, from the thread of the last one; `report` when a checkpoint could
  /// not be made, or, which is fatal, when the disk has failed to keep the log: some of what was asked is
  /// never answered then. Throws: Error(config) for options that cannot work;
  /// Error(data) for a log or a checkpoint that is damaged.
  explicit Server(
      const ServerOptions& options, std::function<void()> all_done = [] {},
      std::function<void(const Error&, bool is_fatal)> report = [](const Error&, bool) {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers one request by calling `respond` once: at once, or, when it waits for other trainers, later and
  /// from the thread of the last of them. `body` is what read_header() left; its bytes must live until then.
  /// Never blocks on other trainers. A request that is wrong is answered with an Error; it changes nothing.
  /// Answers that carry rows are made in memory of `answers`.
  void handle(const wire::Header& header, Reader body, Respond respond,
              const MessageSource& answers = {}) noexcept;

  /// A new world of the job: from now on its trainers count, and stale ones are refused
  /// (ps/sync/trainer_registry.h). Returns the trainers that are gone with it.
  std::vector<std::uint32_t> update(const MembershipUpdate& membership_update);
  /// Requests that were refused because their trainer is stale.
  std::uint64_t stale_requests() const noexcept;
  /// Whether a request would be refused for that reason now.
  bool is_stale(const wire::Header& header) const noexcept;

  /// The connection of a trainer ended without a goodbye. Whoever waits for it gets Error(network), or goes
  /// on waiting for the job's next world where trainers come and go.
  /// `connection`: its hello's sequence, 0 for any. True when the trainer may come back: give_up() is due
  /// ServerOptions::recover_within later.
  bool lost(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection = 0) noexcept;
  /// It was given time: whoever waits for it is told now, unless it has come back.
  void give_up(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection = 0) noexcept;
  /// What was found, where the server was started again.
  const std::optional<Recovery>& recovery() const noexcept;
  /// Whether all trainers have said goodbye.
  bool is_done() const;
  /// Only with Durability::directory: makes a checkpoint now. Throws: Error(host).
  void make_checkpoint();
  /// A second's share of the search for rows that have expired by time: all of a table's rows are looked at
  /// in a quarter of that time. Returns how many went.
  std::uint64_t expire_some();
  /// Fails whatever waits, and every later barrier: the server is stopping.
  void close() noexcept;
  /// What it has done so far, as JSON (ps/server/stat_json.h).
  std::string stat() const;
  /// Restores the newest save in the directory that is whole. Returns what was wrong with a newer one; empty
  /// as a rule. Throws: Error(data), Error(config) as ps/saving/snapshot.h, and where trainers have come
  /// whose changes would be gone; the tables are unchanged then. only: the rows of these sparse tables; the
  /// others stay as they are.
  std::string load(const std::string& directory, const std::vector<std::string>& only = {});

  // Where another process is to go on with it (server_moving.cc).

  /// Makes a checkpoint from which, and from the log on, another process can follow. Returns the number of
  /// that offer; 0: not now. Until it is withdrawn no other checkpoint is made. Throws: Error(host).
  std::uint64_t offer();
  /// The offer that holds; 0: none. It ends by itself when the tables become others than the log says.
  std::uint64_t offered() const noexcept;
  void withdraw_offer() noexcept;
  /// Stops the server between two requests, and calls `commit`: from there on another process has it. What
  /// has come and not been answered, and what comes, is never answered. False: not now, and all goes on.
  /// Throws: what `commit` throws; all goes on then.
  bool hand_on(std::uint64_t offer, const std::function<void()>& commit);
  /// After hand_on(), once nobody comes here any more: the other process gets log and directory.
  void release() noexcept;
  /// The state of a server for which this one stands by, for a server that is made from it here, once nobody
  /// else can serve it any more: whoever still does is refused from then on. Null where it does not have all
  /// that was answered.
  std::shared_ptr<FollowedServer> take_held(std::uint32_t rank);
  /// The log is lost, and nobody hears an answer any more: what waits for it, or for the standby, ends.
  void abandon() noexcept;
  /// After release(), once nobody hears it any more: ends what waits.
  void end_handed_on() noexcept;

 private:
  friend class FollowedServer;
  struct State;
  std::unique_ptr<State> state_;
};

/// What another process's server has, made from its checkpoint and kept up with by its log, or held for it
/// (Server::take_held()).
///
/// Threads: one at a time.
class FollowedServer {
 public:
  /// Loads the newest checkpoint. Throws: Error, also where it is being replaced.
  explicit FollowedServer(const ServerOptions& options);
  ~FollowedServer();
  FollowedServer(const FollowedServer&) = delete;
  FollowedServer& operator=(const FollowedServer&) = delete;

  /// Takes what has come to the log since. Returns how many records. Throws: Error.
  std::uint64_t follow();
  /// Whether the directory is this process's now: the other has released it, and all of the log is here.
  bool take_directory();

 private:
  friend class Server;
  struct State;
  explicit FollowedServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
