// A client that hands every call on to another one: what clients are made of that change the meaning of some.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/client/client.h"

namespace fleetrun::ps {

class ForwardingClient : public Client {
 public:
  explicit ForwardingClient(std::unique_ptr<Client> to) : to_(std::move(to)) {}

  std::unique_ptr<Pending> pull_async(const Pull& request) override { return to_->pull_async(request); }
  std::unique_ptr<Pending> push_async(const Push& request) override { return to_->push_async(request); }
  TouchedRows pull_touched() override { return to_->pull_touched(); }
  StalenessCounts take_staleness() override { return to_->take_staleness(); }
  void keep_pace(std::uint32_t thread, std::uint64_t step, std::uint64_t bound) override {
    to_->keep_pace(thread, step, bound);
  }
  void set_dense(std::uint32_t table, std::span<const float> values) override {
    to_->set_dense(table, values);
  }
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys,
              std::span<const float> rows) override {
    to_->assign(table, keys, rows);
  }
  void set_rate(float rate) noexcept override { to_->set_rate(rate); }
  void begin_epoch(const EpochStart& epoch) override { to_->begin_epoch(epoch); }
  void leave_epoch(std::uint32_t thread) override { to_->leave_epoch(thread); }
  void barrier() override { to_->barrier(); }
  void all_reduce_sum(std::span<double> values) override { to_->all_reduce_sum(values); }
  void save(const std::string& directory, ps::SaveMode mode) override { to_->save(directory, mode); }
  std::uint64_t export_rows(const std::string& directory, std::uint64_t since) override {
    return to_->export_rows(directory, since);
  }
  void save_for_paddle(const std::string& directory, SaveMode mode) override {
    to_->save_for_paddle(directory, mode);
  }
  std::string load(const std::string& directory) override { return to_->load(directory); }
  std::uint64_t rows(std::uint32_t table) override { return to_->rows(table); }
  StoredRows get(std::uint32_t table, std::span<const std::uint64_t> keys) override {
    return to_->get(table, keys);
  }
  std::uint64_t shrink(std::uint32_t table) override { return to_->shrink(table); }
  std::vector<std::string> stat() override { return to_->stat(); }
  bool is_late() const noexcept override { return to_->is_late(); }
  std::uint64_t next_change() const noexcept override { return to_->next_change(); }
  bool counts_epochs() const noexcept override { return to_->counts_epochs(); }
  bool has_left_epoch() const noexcept override { return to_->has_left_epoch(); }
  bool is_catching_up() const override { return to_->is_catching_up(); }
  bool pushes_alone() const override { return to_->pushes_alone(); }
  std::uint64_t steps_ahead(std::uint32_t thread) const override { return to_->steps_ahead(thread); }
  std::uint64_t skip_steps(std::uint32_t thread) override { return to_->skip_steps(thread); }
  void set_generation(std::uint64_t generation) noexcept override { to_->set_generation(generation); }
  void goodbye() override { to_->goodbye(); }

 protected:
  Client& to() const noexcept { return *to_; }

 private:
  std::unique_ptr<Client> to_;
};

/// A call that is done.
class DonePending final : public Pending {
 public:
  void wait() override {}
};

}  // namespace fleetrun::ps
