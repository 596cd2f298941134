// Examples between the trainers of a job (dataset/memory/trainer_exchange.h) over TCP, each pair of trainers
// by one connection, for one exchange.
//
//   1  each trainer opens a port                    the constructor, port()
//   2  all learn all endpoints                      the caller's business: a gathering over the servers
//   3  the higher rank connects to the lower one,
//      both prove the job's secret (ps/rpc/dial, runtime/connect/authenticating_acceptor)
//   4  frames, both ways at once                    exchange()
//
//   frame    runtime/base/frames
//   body     first one of who connected: u32 its rank, u32 trainers;  then parcels;  empty: that was the last
//
// Between hosts all of it is sealed (runtime/connect/sealed_socket).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataset/memory/trainer_exchange.h"
#include "ps/rpc/access.h"

namespace fleetrun::runtime {

struct GlobalShuffleOptions {
  std::string host;  // of this trainer, as the others reach it
  std::uint32_t rank = 0;
  std::uint32_t trainers = 1;
  ps::Access access = {};
  /// How long a trainer may take to connect, and then be silent.
  std::chrono::milliseconds patience{60000};
};

/// Threads: one.
class GlobalShuffle : public dataset::TrainerExchange {
 public:
  /// Opens a port. Throws: Error(network).
  explicit GlobalShuffle(GlobalShuffleOptions options);
  ~GlobalShuffle() override;
  GlobalShuffle(const GlobalShuffle&) = delete;
  GlobalShuffle& operator=(const GlobalShuffle&) = delete;

  std::uint16_t port() const noexcept;
  /// "host:port" of every trainer, by rank. Before exchange().
  void set_endpoints(std::vector<std::string> endpoints);

  std::uint32_t trainers() const noexcept override;
  std::uint32_t rank() const noexcept override;
  /// Throws beside what the interface says: Error(config) for a trainer with another secret.
  void exchange(const std::function<std::vector<Parcel>()>& next,
                const std::function<void(std::uint32_t, std::string_view)>& take) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
