// A parameter server client that writes down what passes through it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ps/client/client.h"

namespace fleetrun::tests {

/// Threads: as Client.
class CountingClient : public ps::Client {
 public:
  explicit CountingClient(ps::Client& inner) : inner_(inner) {}

  std::unique_ptr<ps::Pending> pull_async(const ps::Pull& request) override {
    const std::lock_guard lock(mutex_);
    calls.push_back("pull" + what(request));
    sparse_pulls += request.sparse.size();
    for (const ps::SparsePull& sparse : request.sparse) keys += sparse.keys.size();
    return inner_.pull_async(request);
  }
  std::unique_ptr<ps::Pending> push_async(const ps::Push& request) override {
    {
      const std::lock_guard lock(mutex_);
      calls.push_back("push" + what(request));
      sparse_pushes += request.sparse.size();
    }
    return inner_.push_async(request);
  }
  ps::TouchedRows pull_touched() override { return inner_.pull_touched(); }
  ps::StalenessCounts take_staleness() override { return inner_.take_staleness(); }
  void keep_pace(std::uint32_t thread, std::uint64_t step, std::uint64_t bound) override {
    inner_.keep_pace(thread, step, bound);
  }
  void set_rate(float rate) noexcept override { inner_.set_rate(rate); }
  void set_dense(std::uint32_t table, std::span<const float> values) override {
    inner_.set_dense(table, values);
  }
  void assign(std::uint32_t table, std::span<const std::uint64_t> wanted,
              std::span<const float> values) override {
    inner_.assign(table, wanted, values);
  }
  void begin_epoch(const ps::EpochStart& epoch) override { inner_.begin_epoch(epoch); }
  void leave_epoch(std::uint32_t thread) override { inner_.leave_epoch(thread); }
  bool counts_epochs() const noexcept override { return counts_steps; }
  void barrier() override { inner_.barrier(); }
  void all_reduce_sum(std::span<double> values) override { inner_.all_reduce_sum(values); }
  void save(const std::string& directory, ps::SaveMode mode) override { inner_.save(directory, mode); }
  std::uint64_t export_rows(const std::string& directory, std::uint64_t since) override {
    return inner_.export_rows(directory, since);
  }
  void save_for_paddle(const std::string& directory, ps::SaveMode mode) override {
    inner_.save_for_paddle(directory, mode);
  }
  std::string load(const std::string& directory) override { return inner_.load(directory); }
  std::uint64_t rows(std::uint32_t table) override { return inner_.rows(table); }
  ps::StoredRows get(std::uint32_t table, std::span<const std::uint64_t> wanted) override {
    return inner_.get(table, wanted);
  }
  std::uint64_t shrink(std::uint32_t table) override { return inner_.shrink(table); }
  std::vector<std::string> stat() override { return inner_.stat(); }
  void goodbye() override { inner_.goodbye(); }
  bool is_late() const noexcept override { return inner_.is_late(); }
  void set_generation(std::uint64_t generation) noexcept override { inner_.set_generation(generation); }

  /// "pull rows", "push dense", "pull rows dense" …, in order.
  std::vector<std::string> calls;
  /// What it says of the servers.
  bool counts_steps = false;
  std::size_t sparse_pulls = 0, sparse_pushes = 0, keys = 0;

 private:
  static std::string what(const auto& request) {
    return std::string(request.sparse.empty() ? "" : " rows") + (request.dense.empty() ? "" : " dense");
  }

  ps::Client& inner_;
  std::mutex mutex_;
};

}  // namespace fleetrun::tests
