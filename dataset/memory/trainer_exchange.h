// How the trainers of a job hand examples to each other: an interface, since dataset/ knows no network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

class TrainerExchange {
 public:
  virtual ~TrainerExchange() = default;

  virtual std::uint32_t trainers() const noexcept = 0;
  virtual std::uint32_t rank() const noexcept = 0;

  /// Bytes for a trainer other than this one.
  struct Parcel {
    std::uint32_t trainer;
    std::string bytes;
  };
  /// Sends what `next` gives, call by call until it gives nothing, and hands to `take` what the others send
  /// to this trainer: whole parcels, each once, those of one sender in their order. Returns when all have
  /// sent all. Both are called from the caller's thread. `next` is called when little is on its way, so
  /// memory is bounded. Throws: Error(network) when a trainer is gone, or silent for too long;
  /// what `next` and `take` throw.
  virtual void exchange(const std::function<std::vector<Parcel>()>& next,
                        const std::function<void(std::uint32_t from, std::string_view bytes)>& take) = 0;
};

}  // namespace fleetrun::dataset
