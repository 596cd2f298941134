// The parameter servers that a process serves: one, and, with standbys (--ps_replicas=1), those that it
// stands by for, once their hosts are lost; or, where a job grows and shrinks (--server_num=2:5), some of
// as many as there can ever be, which move between the processes while trainers train.
//
// A job that grows and shrinks has a fixed number of servers, and so trainers, saves and the split of keys
// never change; what changes is how many processes serve them. Server s belongs to process s mod N. A file
// says what N is; when it changes, a process that is to get a server follows its checkpoint and log, and then
// the process that has it hands it on (ps/server/server_moving.cc), between two requests and at the same
// endpoint. Who serves what is in a note beside that file (ps/durable/move_note.h), which is the only
// truth: a process that is started again serves what it says. A process without servers that N leaves out has
// nothing more to do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ps/base/background_queue.h"
#include "ps/durable/move_note.h"
#include "ps/rpc/rpc_server.h"
#include "ps/rpc/server_addresses.h"
#include "ps/server/server.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

struct HostedServersOptions {
  /// Of this process; where servers do not move, of its server.
  std::uint32_t rank = 0;
  /// Of its server; where they move, of all servers, by rank.
  std::vector<std::string> endpoints;
  /// The file with the number of processes; empty: servers do not move.
  std::string process_count_file = {};
  /// Where it serves for servers whose hosts are lost, one each; empty: it does not.
  std::vector<std::string> standby_endpoints = {};
  std::shared_ptr<ServerAddresses> addresses = nullptr;  // with a standby: those that its connection uses
  std::function<ServerOptions(std::uint32_t rank)> server;
  std::function<RpcServerOptions(std::uint32_t rank)> rpc;
};

class HostedServers {
 public:
  /// As RpcServer. Where servers move: Error(config) for tables on disk, geo mode, and without
  /// Durability::directory.
  explicit HostedServers(HostedServersOptions options, bool listens = true);
  ~HostedServers();
  HostedServers(const HostedServers&) = delete;
  HostedServers& operator=(const HostedServers&) = delete;

  /// Once, where it does not listen yet.
  void listen();
  const std::string& endpoint() const;
  /// `servers`: where they are now, by rank. One that is at one of the standby_endpoints is served from
  /// here on. Not from several threads at once.
  void update(const MembershipUpdate& membership_update, const std::map<std::uint32_t, std::string>& servers);
  std::uint64_t stale_requests() const;
  /// Of its server; of the first of them where it has several.
  /// Throws: Error(config) where it has none now.
  std::string stat() const;
  /// As RpcServer::load(), for all that it serves.
  std::string load(const std::string& directory, const std::vector<std::string>& only = {});
  /// As RpcServer::wait(). Where servers move it also returns when there is nothing more to do for this
  /// process.
  void wait();
  /// From any thread.
  void stop() noexcept;
  /// The servers that it serves now.
  std::vector<std::uint32_t> ranks() const;

 private:
  struct Follower;
  bool moves() const noexcept { return !options_.process_count_file.empty(); }
  bool stands_by() const noexcept { return !options_.standby_endpoints.empty(); }
  std::unique_ptr<RpcServer> make(std::uint32_t server, bool listens_later,
                                  std::shared_ptr<FollowedServer> followed = nullptr) const;
  void serve_for(std::uint32_t server, const std::string& endpoint);
  void check() const;
  void begin_with();
  void move_on();
  bool look_after(std::uint32_t server, std::uint32_t processes);
  bool give(std::uint32_t server, RpcServer& from, std::uint32_t to);
  bool take(std::uint32_t server);
  void adopt(std::uint32_t server, std::shared_ptr<FollowedServer> followed);
  void forget(std::uint32_t server);
  bool is_over();
  std::string directory_of(std::uint32_t server) const;
  MoveNotes notes_of(std::uint32_t server) const;

  HostedServersOptions options_;
  std::string run_, directory_;  // Durability
  std::uint32_t processes_ = 1;  // as last read
  mutable std::mutex mutex_;     // guards what follows
  std::condition_variable changed_;
  std::map<std::uint32_t, std::shared_ptr<RpcServer>> servers_;  // shared with who asks one, and who ends it
  std::optional<MembershipUpdate> membership_update_;
  std::optional<Error> failure_;
  bool is_left_out_ = false;
  bool listens_ = false;  // so do those that come later
  std::atomic<bool> ending_{false}, stopped_{false};
  std::map<std::uint32_t, std::unique_ptr<Follower>> followers_;               // of the thread that moves
  std::map<std::uint32_t, std::chrono::steady_clock::time_point> not_before_;  // likewise, after an error
  std::optional<BackgroundQueue> ends_;  // of servers that were handed on
  std::thread mover_;
};

}  // namespace fleetrun::ps
