// The exchanging thread waits to be asked, by the push that completes an interval or by a call that needs the
// servers to have everything; it never polls.
#include "ps/geo/geo_client.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "ps/base/outcome.h"
#include "ps/base/wire.h"
#include "ps/client/forwarding_client.h"
#include "ps/geo/local_tables.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

namespace {

/// Differences of rows that go before their interval has ended, so that they fit into a message.
constexpr std::size_t kMostChangedBytes = wire::kLongestMessage / 2;

class GeoClient final : public ForwardingClient {
 public:
  GeoClient(std::unique_ptr<Client> servers, const GeoOptions& options)
      : ForwardingClient(std::move(servers)),
        options_(options),
        counts_(to().counts_epochs()),
        tables_(make_tables()),
        thread_([this] { work(); }) {}
  ~GeoClient() override {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

  std::unique_ptr<Pending> pull_async(const Pull& request) override {
    if (!request.create) return ForwardingClient::pull_async(request);
    current()->pull(request, to());
    return std::make_unique<DonePending>();
  }
  std::unique_ptr<Pending> push_async(const Push& request) override {
    if (const std::shared_ptr<LocalTables> tables = begin_step(request)) {
      tables->push(request, rate_, to());
      end_step(request);
    }
    return std::make_unique<DonePending>();
  }
  // What the servers add up has the rate in it.
  void set_rate(float rate) noexcept override { rate_ = rate; }
  void set_dense(std::uint32_t table, std::span<const float> values) override {
    const bool was_done = is_catching_up();
    ForwardingClient::set_dense(table, values);
    if (!was_done) current()->set_dense(table, values);
  }
  // What this trainer has changed arrives first.
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys,
              std::span<const float> rows) override {
    exchange_now();
    const bool was_done = is_catching_up();
    ForwardingClient::assign(table, keys, rows);
    if (!was_done) current()->assign(table, keys, rows);
  }

  void begin_epoch(const EpochStart& epoch) override {
    ForwardingClient::begin_epoch(epoch);
    const std::lock_guard lock(mutex_);
    in_epoch_ = epoch.threads;
    left_.clear();
    catches_up_ = false;
    before_.assign(counts_ ? epoch.threads : 0, {});
    for (std::uint32_t thread = 0; thread < before_.size(); ++thread) {
      before_[thread].everywhere = to().skip_steps(thread);
      before_[thread].somewhere = to().steps_ahead(thread);
      catches_up_ = catches_up_ || before_[thread].somewhere > 0;
    }
  }
  std::uint64_t skip_steps(std::uint32_t thread) override {
    const std::lock_guard lock(mutex_);
    return thread < before_.size() ? std::exchange(before_[thread].everywhere, 0) : 0;
  }
  // What a thread has changed is sent when all have come to their ends, and then the servers hear of these.
  void leave_epoch(std::uint32_t thread) override {
    std::vector<std::uint32_t> left{thread};
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      if (catches_up_ && thread < before_.size() && before_[thread].somewhere > 0 && !error_) {
        error_ = Error(ErrorKind::data,
                       "thread " + std::to_string(thread) + " ends its epoch " +
                           std::to_string(before_[thread].somewhere) +
                           " steps before the place where the process before it was",
                       "each trainer must read the same files in the same order after a restart");
        changed_.notify_all();
      }
      left_.push_back(thread);
      last = in_epoch_ > 0 && --in_epoch_ == 0;
      if (last && counts_) left.swap(left_);
      if (last) before_.clear();
    }
    if (last) exchange_now();
    if (!last && counts_) return;
    for (const std::uint32_t one : left) ForwardingClient::leave_epoch(one);
  }

  void barrier() override {
    exchange_now();
    ForwardingClient::barrier();
  }
  void save_for_paddle(const std::string& directory, SaveMode mode) override {
    exchange_now();
    ForwardingClient::save_for_paddle(directory, mode);
  }
  void save(const std::string& directory, SaveMode mode) override {
    exchange_now();
    ForwardingClient::save(directory, mode);
  }
  std::uint64_t export_rows(const std::string& directory, std::uint64_t since) override {
    exchange_now();
    return ForwardingClient::export_rows(directory, since);
  }
  // The copy of what was there before is dropped: rows come anew when they are used.
  std::string load(const std::string& directory) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_asked_; });
    lock.unlock();
    std::string fallen_back = ForwardingClient::load(directory);
    lock.lock();
    tables_ = make_tables();
    return fallen_back;
  }
  std::uint64_t rows(std::uint32_t table) override {
    exchange_now();
    return ForwardingClient::rows(table);
  }
  void goodbye() override {
    exchange_now();
    ForwardingClient::goodbye();
  }

 private:
  struct Before {
    std::uint64_t everywhere = 0, somewhere = 0;
  };

  /// Throws: what the last exchange has failed of.
  std::shared_ptr<LocalTables> current() const {
    const std::lock_guard lock(mutex_);
    throw_error();
    return tables_;
  }

  /// With the lock held.
  void throw_error() const {
    if (error_) throw separate_copy(*error_);
  }
  std::shared_ptr<LocalTables> make_tables() const {
    return std::make_shared<LocalTables>(options_.tables, counts_);
  }
  /// The copy that the step changes; none for a step that was done before this
  /// trainer was started again. A thread that has all that any server has waits until the others have that,
  /// too.
  std::shared_ptr<LocalTables> begin_step(const Push& request) {
    std::unique_lock lock(mutex_);
    if (request.thread < before_.size()) {
      Before& before = before_[request.thread];
      if (before.everywhere == kWholeEpoch) return nullptr;
      if (before.everywhere > 0) {
        --before.everywhere;
        return nullptr;
      }
      if (before.somewhere == 0) changed_.wait(lock, [this] { return !catches_up_ || error_; });
    }
    throw_error();
    return tables_;
  }
  void end_step(const Push& request) {
    std::unique_lock lock(mutex_);
    if (catches_up_ && request.thread < before_.size())
      return end_repeated_step(before_[request.thread], lock);
    if (request.sparse.empty() && request.dense.empty()) return;
    if (++steps_ % options_.steps == 0 || tables_->changed_bytes() >= kMostChangedBytes) ask(lock);
  }
  // The last one that any server has ends the repetition, for all threads.
  void end_repeated_step(Before& before, std::unique_lock<std::mutex>& lock) {
    if (--before.somewhere > 0) return;
    if (std::ranges::any_of(before_, [](const Before& other) { return other.somewhere > 0; })) {
      changed_.wait(lock, [this] { return !catches_up_ || error_; });
      return throw_error();
    }
    ask(lock);
    changed_.wait(lock, [this] { return !is_asked_; });
    throw_error();
    tables_ = make_tables();
    catches_up_ = false;
    changed_.notify_all();
  }
  void exchange_now() {
    std::unique_lock lock(mutex_);
    ask(lock);
    changed_.wait(lock, [this] { return !is_asked_; });
    throw_error();
  }
  /// Asks for an exchange, after the one under way.
  void ask(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [this] { return !is_asked_; });
    throw_error();
    is_asked_ = true;
    changed_.notify_all();
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || is_asked_; });
      if (ending_) return;
      const std::shared_ptr<LocalTables> tables = tables_;
      lock.unlock();
      std::optional<Error> error;
      try {
        tables->exchange(1.0f / static_cast<float>(options_.trainers), to());
      } catch (const Error& thrown) {
        error = separate_copy(thrown);
        error->while_doing("exchanging differences with the servers");
      } catch (const std::exception& thrown) {
        error = Error(ErrorKind::host, std::string("exchanging differences failed: ") + thrown.what());
      }
      lock.lock();
      is_asked_ = false;
      if (error) error_ = std::move(error);
      changed_.notify_all();
    }
  }

  const GeoOptions options_;
  const bool counts_;
  std::atomic<float> rate_{1.0f};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  // Owned by this and by the calls that are using it, so that a load can replace it.
  std::shared_ptr<LocalTables> tables_;
  std::uint64_t steps_ = 0;
  std::uint32_t in_epoch_ = 0;
  std::vector<std::uint32_t> left_;  // the threads that are not in it any more
  /// By thread, where steps count: those of this epoch that a process before this one has done, and that are
  /// still to come here.
  std::vector<Before> before_;
  bool catches_up_ = false;  // with what only some servers have
  bool is_asked_ = false;
  bool ending_ = false;
  std::optional<Error> error_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace

std::vector<TableConfig> geo_tables(std::vector<TableConfig> tables) {
  for (TableConfig& table : tables) {
    if (table.admission.kind != Admission::Kind::always) {
      throw Error(ErrorKind::config,
                  "table '" + table.name + "' admits keys by " +
                      std::string(to_string(table.admission.kind)) + ", in geo mode",
                  "leave the entry out, or train in another mode");
    }
    if (table.accessor.kind == Accessor::Kind::ctr) {
      throw Error(ErrorKind::config,
                  "table '" + table.name + "' gives show and click with its rows, in geo mode",
                  "train in another mode");
    }
    table.rule = UpdateRule{.kind = UpdateRule::Kind::sum};
    table.accessor = {};
  }
  return tables;
}

std::unique_ptr<Client> make_geo_client(std::unique_ptr<Client> servers, const GeoOptions& options) {
  if (options.steps == 0 || options.trainers == 0) {
    throw Error(ErrorKind::config,
                "geo mode with " + std::to_string(options.steps) + " steps between exchanges and " +
                    std::to_string(options.trainers) + " trainers",
                "both must be at least 1");
  }
  GeoOptions local = options;
  for (TableConfig& table : local.tables) {
    table.accessor = {};
    table.on_disk = false;
    table.expire_seconds = 0;
  }
  // From now on the servers tell what others change.
  static_cast<void>(servers->pull_touched());
  return std::make_unique<GeoClient>(std::move(servers), local);
}

}  // namespace fleetrun::ps
