// The client over channels, written once for all transports: what its files share.
//
//   channel_client.cc   who it is, asking all servers, meeting the other trainers
//   client_tables.cc    pulls and pushes
//   client_saving.cc    saving and loading
//   client_geo.cc       rows that others have changed
//   client_staleness.cc staleness, and its bound
//   client_watching.cc  looking inside the servers
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/base/key_groups.h"
#include "ps/base/key_partition.h"
#include "ps/base/push_history.h"
#include "ps/base/server_channel.h"
#include "ps/base/wire.h"
#include "ps/client/channel_client.h"
#include "ps/client/client.h"
#include "ps/client/error_feedback.h"
#include "ps/client/pending_calls.h"
#include "ps/client/recent_groups.h"

namespace fleetrun::ps {

/// The sections of one server's part of a request.
struct RequestPart {
  wire::Sections sections;
  std::vector<Block> blocks;  // by dense section
};

/// Numbers a client's changes. What is in flight must fit into what a server remembers
/// (ps/base/push_history.h).
///
/// Threads: any.
class ChangeNumbers {
 public:
  static constexpr std::uint64_t kMaxInFlight = PushHistory::kWindow / 2;

  explicit ChangeNumbers(std::uint64_t next) : next_(next) {}
  std::uint64_t next() const noexcept;
  /// Throws: Error(config) when an earlier change has not been waited for, and so many have followed it.
  std::uint64_t take();
  void end(std::uint64_t number) noexcept;

 private:
  mutable std::mutex mutex_;
  std::uint64_t next_;
  std::set<std::uint64_t> in_flight_;
};

/// The calls of one change.
class NumberedCalls : public PendingCalls {
 public:
  NumberedCalls(ChangeNumbers& changes, std::uint64_t number, std::chrono::milliseconds limit = {})
      : PendingCalls(limit), changes_(changes), number_(number) {}
  ~NumberedCalls() override { changes_.end(number_); }

  void wait() override {
    PendingCalls::wait();
    changes_.end(number_);
  }

 private:
  ChangeNumbers& changes_;
  std::uint64_t number_;
};

/// A client's calls of one kind that wait for the other trainers:
/// one at a time, in the order of their numbers.
struct Rounds {
  std::mutex mutex;
  std::uint64_t done = 0;

  std::uint64_t now() {
    const std::lock_guard lock(mutex);
    return done;
  }
  void raise(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    done = std::max(done, number);
  }
};

/// The save that a server has found.
struct FoundSave {
  std::uint64_t save = 0;
  std::uint64_t digest = 0;  // of its manifest

  auto operator<=>(const FoundSave&) const = default;
};

class ChannelClient final : public Client {
 public:
  ChannelClient(const ClientOptions& options, std::uint64_t incarnation,
                std::vector<std::unique_ptr<Channel>> channels, const Welcome& welcome);

  std::unique_ptr<Pending> pull_async(const Pull& request) override;
  std::unique_ptr<Pending> push_async(const Push& request) override;
  TouchedRows pull_touched() override;
  StalenessCounts take_staleness() override;
  void keep_pace(std::uint32_t thread, std::uint64_t step, std::uint64_t bound) override;
  void set_rate(float rate) noexcept override { rate_ = rate; }
  void set_dense(std::uint32_t table, std::span<const float> values) override;
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys, std::span<const float> rows) override;
  void begin_epoch(const EpochStart& epoch) override;
  bool counts_epochs() const noexcept override;
  bool has_left_epoch() const noexcept override { return has_left_epoch_; }
  void leave_epoch(std::uint32_t thread) override;
  void barrier() override;
  void all_reduce_sum(std::span<double> values) override;
  void save(const std::string& directory, SaveMode mode) override;
  std::uint64_t export_rows(const std::string& directory, std::uint64_t since) override;
  std::string load(const std::string& directory) override;
  void save_for_paddle(const std::string& directory, SaveMode mode) override;
  std::uint64_t rows(std::uint32_t table) override;
  StoredRows get(std::uint32_t table, std::span<const std::uint64_t> keys) override;
  std::uint64_t shrink(std::uint32_t table) override;
  std::vector<std::string> stat() override;
  void goodbye() override;
  bool is_late() const noexcept override { return is_late_; }
  std::uint64_t next_change() const noexcept override { return changes_.next(); }
  std::uint64_t skip_steps(std::uint32_t thread) override { return before_.skip_steps(thread); }
  std::uint64_t steps_ahead(std::uint32_t thread) const override { return before_.steps_ahead(thread); }
  bool pushes_alone() const override { return before_.is_ahead_somewhere(); }
  bool is_catching_up() const override { return before_.is_under_way(); }
  void set_generation(std::uint64_t generation) noexcept override { generation_ = generation; }

 private:
  std::uint32_t servers() const noexcept { return static_cast<std::uint32_t>(channels_.size()); }
  wire::Header header(wire::Method method, std::uint32_t thread = 0) const {
    return {method, options_.trainer, thread, incarnation_, generation_, 0};
  }
  /// Calls `ask` with the number of the next call of a kind that waits for other trainers.
  static void meet(Rounds& rounds, const std::function<void(std::uint64_t)>& ask);
  StoredRows get_dense(const TableConfig& config);
  const TableConfig& table(std::uint32_t id, TableConfig::Kind kind) const;
  void check_rows(const TableConfig& config, std::uint64_t width, std::size_t keys, std::size_t floats) const;
  void add_dense(std::uint32_t id, std::size_t floats, std::vector<RequestPart>& parts) const;
  using Groups = std::vector<std::shared_ptr<const KeyGroups>>;
  Groups add_sparse(const auto& sections, const auto& rows_of, const auto& groups_of,
                    std::vector<RequestPart>& parts) const;
  wire::Rows pulled_rows(const SparsePull& pull, bool create) const;
  wire::Rows pushed_rows(const SparsePush& push) const;
  void assign_part(const TableConfig& config, std::span<const std::uint64_t> keys,
                   std::span<const float> rows);
  struct ThreadStep {
    std::uint32_t thread = 0;
    std::uint64_t step = 0;
  };
  std::vector<ThreadStep> next_steps(const Push& request);
  std::vector<wire::PushDraft> draft_pushes(const Push& request, std::size_t squares);
  /// How many tables are clipped to a norm that no server has all of.
  std::size_t split_norms() const;
  /// Fills in the squares of the step, once every participant has sent what it pushes.
  void measure(const wire::Header& head, std::vector<wire::PushDraft>& drafts);
  void encode(const Push& request, std::vector<wire::PushDraft>& drafts);
  /// One request made by make(server) to every server; join as in PendingCalls.
  void ask_all(wire::Header header, const std::function<Message(std::uint32_t)>& make,
               PendingCalls::Join join = {});
  void ask_all(wire::Header header) {
    ask_all(header, [&](std::uint32_t) { return wire::draft(header, 0).message; });
  }
  /// Has calls that wait for other trainers say so when nobody goes on.
  void watch(PendingCalls& pending);
  bool tell_waits();
  /// A number that no save in the directory has, on any server's host.
  std::uint64_t begin_save(const std::string& directory);
  /// Afterwards the same changes are on all servers, and no others come until each begins its cut.
  void settle();
  using SavedParts = std::vector<std::vector<SavedPiece>>;  // by server
  SavedParts save_parts(const std::string& directory, std::uint64_t save, SaveMode mode,
                        const Changes& changes, bool replaces);
  void complete(const std::function<void()>& work);
  SavedParts write_save(const std::string& directory, SaveMode mode, const Changes& changes,
                        bool replaces = false);
  void save_with(const std::string& directory, const std::function<void()>& work);
  void save_text(const std::string& directory, SaveMode mode);
  std::string load_all(const std::string& directory);
  void commit_save(const SavedParts& parts);
  void end_save(bool committed);
  /// The saves that the servers have read: `wanted`, or the newest whole one of each for 0.
  std::vector<FoundSave> prepare_load(const std::string& directory, std::uint64_t wanted,
                                      std::string& fallen_back);
  void read_touched(std::uint32_t server, Reader& answer, TouchedRows& out);
  Message directory_request(const wire::Header& header, const std::string& directory, std::size_t more = 0,
                            const std::function<void(Writer&)>& write_more = {}) const;

  ClientOptions options_;
  std::uint64_t incarnation_;
  std::map<std::uint32_t, TableConfig> tables_;
  std::vector<std::unique_ptr<Channel>> channels_;
  RecentGroups recent_;
  ErrorFeedback feedback_;
  std::atomic<bool> said_goodbye_{false};
  std::atomic<bool> has_told_waits_{false};
  bool is_late_;
  std::atomic<std::uint64_t> generation_;
  std::atomic<float> rate_{1.0f};
  ChangeNumbers changes_;
  FastForward before_;
  Rounds barriers_, sums_, epochs_;
  std::atomic<bool> is_counted_ = false;  // the epoch
  std::atomic<bool> has_left_epoch_ = false;
  std::mutex touched_mutex_;  // guards what follows
  std::uint64_t touched_asked_ = 0;
  std::vector<std::uint64_t> generations_;  // by server, as last heard
};

}  // namespace fleetrun::ps
