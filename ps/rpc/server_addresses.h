// Where the servers of a job are reached. That changes for those of a host that is lost: their standbys serve
// then (ps/rpc/hosted_servers.h), and fleetrun tells all processes where.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class ServerAddresses {
 public:
  /// "host:port", in rank order.
  explicit ServerAddresses(std::vector<std::string> endpoints)
      : first_(std::move(endpoints)), endpoints_(first_) {}

  std::string at(std::uint32_t rank) const;
  std::vector<std::string> all() const;
  /// Where they were at first.
  const std::vector<std::string>& first() const noexcept { return first_; }
  /// Grows whenever a server moves, and of one server when it does.
  std::uint64_t moves() const noexcept { return moves_; }
  std::uint64_t moves(std::uint32_t rank) const;
  /// What is not in it stays; nor is a rank taken that there is not.
  void move(const std::map<std::uint32_t, std::string>& endpoints);
  /// `moved` is called once the server is somewhere else than at `endpoint`, from the thread that says so; at
  /// once where it is. It takes the place of what was called before for this server.
  void watch(std::uint32_t rank, const std::string& endpoint, std::function<void()> moved);

 private:
  const std::vector<std::string> first_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::string> endpoints_;
  std::map<std::uint32_t, std::function<void()>> watching_;
  std::map<std::uint32_t, std::uint64_t> moves_of_;
  std::atomic<std::uint64_t> moves_{0};
};

}  // namespace fleetrun::ps
