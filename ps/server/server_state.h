// A server's state, and who answers what:
//
//   server.cc         who may ask, and what they disagree on; requests that meet
//   server_changes.cc changes: each once, in or out of a cut
//   server_durable.cc the log of what was answered, checkpoints, going on after a restart
//   server_moving.cc  another process that goes on with it
//   server_expiry.cc  rows that expire by time
//   server_tables.cc  pulls and pushes
//   server_saving.cc  saving and loading
//   server_standby.cc its standby on another server
//   server_held.cc    the states of other servers that it holds as their standby
//   server_geo.cc     rows that other trainers have changed
//   server_staleness.cc  staleness, and its bound
//   server_watching.cc  what it has done so far, and who only looks on
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/durable/write_barrier.h"
#include "ps/durable/write_barrier_hold.h"
#include "ps/saving/part_loader.h"
#include "ps/server/request_gate.h"
#include "ps/server/server.h"
#include "ps/server/server_durable.h"
#include "ps/server/server_saving.h"
#include "ps/server/server_standby.h"
#include "ps/server/stat_json.h"
#include "ps/server/touched_keys.h"
#include "ps/sync/barrier_service.h"
#include "ps/sync/staleness.h"
#include "ps/sync/staleness_bound.h"
#include "ps/sync/sync_step.h"
#include "ps/table/table_set.h"
#include "ps/watch/metrics.h"
#include "ps/watch/request_tracks.h"

namespace fleetrun::ps {

inline std::string name_of(const ServerOptions& options) {
  return "server " + std::to_string(options.rank);
}

template <class T>
Message message_of(const T& value) {
  Message out(sizeof value);
  Writer(out).value(value);
  return out;
}

/// Whether another process of a trainer goes on after what the one before it did.
inline BarrierService::GoesOn goes_on_in(Mode mode) {
  return mode == Mode::sync ? BarrierService::GoesOn::yes : BarrierService::GoesOn::where_counted;
}

struct Server::State {
  ServerOptions options;
  ServerPlace place;
  RequestGate gate;  // closed while the server is handed on, and from then on
  WriteBarrier write_barrier;
  mutable MemoryQuota quota;
  BarrierService barrier_service;
  const std::shared_ptr<Metrics> metrics;  // shared with the calls under way
  RequestTracks tracks;
  mutable std::mutex mutex;  // guards what follows
  // Owned by the server and by the requests that are using it, so that a load can replace it.
  std::shared_ptr<TableSet> tables;
  std::weak_ptr<TableSet> recorded_tables;  // those that `touched` is about
  bool recorded_any = false;
  std::map<std::uint32_t, WaitingLoad> loaded;  // by trainer; those that found the same save share its tables
  std::optional<std::uint32_t> saving;          // the trainer whose save is under way
  std::deque<WaitingSave> waiting_saves;
  std::shared_ptr<WriteBarrierHold> hold;  // until the cut is made; shared with the request that uses it
  std::shared_ptr<SavedCut> part;          // what was written, shared with the request that commits it
  std::shared_ptr<SavedCut> told_cut;      // of a save of which the log has the beginning, and no end yet
  std::atomic<std::uint64_t> stale_requests{0};
  std::atomic<std::uint64_t> started_from{0};  // digest of the manifest of the save
  TouchedKeys touched;
  Staleness staleness;
  std::mutex bound_mutex;  // guards what follows
  StalenessBound staleness_bound;
  std::uint64_t number = make_incarnation();  // kept by a server that goes on with what it had
  std::optional<Recovery> recovery;
  std::uint32_t origin = 0;  // wire::kResumed, wire::kBeganEmpty; set before the first request
  bool log_is_open = false;  // set before the first request
  std::atomic<bool> is_handed_on{false};
  std::atomic<std::uint64_t> offered{0};
  std::uint64_t wanted_offer = 0;  // of who calls hand_on(), as the next
  std::chrono::steady_clock::time_point wanted_since;
  std::atomic<std::uint64_t> other_tables{0};  // how often its tables have become others than the log says
  // How many have begun; guarded by the frozen write barrier.
  std::uint64_t checkpoints = 0, standbys = 0;
  struct Held;
  std::map<std::uint32_t, std::shared_ptr<Held>> held_states;  // by rank; shared with who is using one
  std::unique_ptr<Following> following;                        // where it has a standby
  std::unique_ptr<Durable> durable;                            // its thread uses the others
  std::mutex expiring;                                         // guards what follows
  std::map<std::uint32_t, SparseTable::ExpiryPlace> expiry;
  std::unique_ptr<Checkpointer> expirer;  // the last member: its thread uses the others

  State(const ServerOptions& wanted, std::function<void()> all_done)
      : options(wanted),
        place{wanted.rank, wanted.servers, wanted.memory, wanted.clock},
        quota(wanted.memory_limit, name_of(wanted), wanted.memory_used),
        barrier_service(
            name_of(wanted), wanted.trainers,
            {[this](const std::vector<Contribution>& step) { apply_step(step); }, std::move(all_done),
             [this](const BarrierEvent& event) { keep_event(event); },
             [this](std::function<void()> answer) { when_safe(std::move(answer)); }, goes_on_in(wanted.mode),
             [this](const Requests& step) { return measure_step(step); }},
            wanted.generation),
        metrics(std::make_shared<Metrics>(wanted.tables)),
        tracks(wanted.timeline),
        tables(std::make_shared<TableSet>(wanted.tables, place)) {}
  std::shared_ptr<TableSet> current() const {
    const std::lock_guard lock(mutex);
    return tables;
  }

  void dispatch(const wire::Header& header, Reader& body, Respond& respond, const MessageSource& answers);
  bool dispatch_barrier(const wire::Header& header, Reader& body, Respond& respond);
  Message answer(const wire::Header& header, Reader& body, const MessageSource& answers);
  Message hello(const wire::Header& header, Reader& body);
  void compare(const std::string& what, const std::string& here, const std::string& there) const;
  void handle(const wire::Header& header, Reader body, Respond respond,
              const MessageSource& answers) noexcept;
  void give_up(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) noexcept;
  void change(const wire::Header& header, Reader& body, Respond& respond);
  Message make_change(const wire::Header& header, Reader body, const ChangeId& id);
  Outcome apply_counted(const wire::Header& header, Reader body, const wire::PushRequest* push,
                        const std::function<void()>& keep);
  Outcome apply_checked(const wire::Header& header, Reader body, const wire::PushRequest* push);
  void push_in_step(const wire::Header& header, Reader body, Respond& respond, const ChangeId& id);
  void measure(const wire::Header& header, Reader& body, Respond& respond);
  Message measure_step(const Requests& step) const;
  void apply_step(const std::vector<Contribution>& step);
  static bool has_rows(wire::Method method) noexcept {
    return method == wire::Method::push || method == wire::Method::assign;
  }
  std::unique_ptr<wire::PushRequest> read_checked_push(Reader& body) const;
  void check_quota(const wire::Sections& sections,
                   const std::vector<std::span<const std::uint64_t>>& keys) const;
  void begin_save(const wire::Header& header, Reader& body, Respond& respond);
  void start_save(const WaitingSave& save) noexcept;
  Message freeze_save();
  void settle_save(Reader& body);
  std::shared_ptr<WriteBarrierHold> held_barrier() const;
  Message save_part(const wire::Header& header, Reader& body);
  void save_text(const wire::Header& header, Reader& body);
  std::shared_ptr<SavedCut> begin_cut(std::uint32_t trainer, SaveMode mode, const Changes& changes = {});
  void settle(const SavedCut& saved);
  LoadedTables load_from(const std::string& directory, std::optional<std::uint64_t> wanted) const;
  void recover(std::function<void(const Error&, bool)> report);
  void check_not_lost(bool is_there, bool is_same_run) const;
  void start_without_checkpoint();
  void go_on(bool is_same_run);
  void begin_log(std::uint64_t segment);
  void report_disk(std::chrono::milliseconds waited, bool is_over) const;
  void begin_directory();
  void start_checkpoints();
  void make_checkpoint(std::uint64_t offer = 0);
  void wake_checkpointer();
  void take_over_followed();
  bool is_saving_or_loading() const;
  Moment take_moment(const std::function<void()>& at_once);
  KeptState take_in(LoadedTables loaded, bool is_same_run = true);
  bool take_back();
  void start_following();
  void end_following() noexcept;
  void begin_standby_anew();
  void follow_on();
  void attach(Channel& channel);
  void send_records(Channel& channel);
  bool leave_alone();
  void leave_standby();
  void report_alone(const Error& why) const;
  std::unique_ptr<Channel> reach_standby() const;
  std::shared_ptr<Held> held_of(std::uint32_t rank);
  ServerOptions options_of(std::uint32_t rank) const;
  void check_stream(const Held& held, std::uint64_t stream, std::uint32_t rank) const;
  Message follow(Reader& body);
  void take_followed(Held& held, const FollowHead& head, Reader& body);
  void make_replica(Held& held, std::uint32_t rank) const;
  Message hand_back(Reader& body);
  std::vector<HeldStat> held_stats() const;
  bool hears_of_all_held_since(std::chrono::steady_clock::time_point then) const;
  void keep(Kept kind, const BytePieces& payload);
  void keep_change(const wire::Header& header, const Reader& body);
  void keep_step(const std::vector<Contribution>& step);
  void keep_refusal(const ChangeId& id, const Error& error);
  void keep_event(const BarrierEvent& event);
  void keep_cut(std::uint32_t trainer, SaveMode mode);
  void when_safe(std::function<void()> then);
  void replay(LogRecord& record, bool is_same_run);
  void replay_event(const BarrierEvent& event, bool is_same_run);
  void replay_change(Reader& in);
  void replay_step(Reader& in);
  void replay_cut(Reader& in);
  void commit_save(Reader& body);
  void end_save(const wire::Header& header, Reader& body);
  void end_saves();
  void drop_save() noexcept;
  void lost_saver(std::uint32_t trainer) noexcept;
  Message prepare_load(const wire::Header& header, Reader& body);
  void commit_load(std::uint32_t trainer);
  void check_nobody_loses(const Manifest& save, const std::string& directory) const;
  void take_over(const WaitingLoad& load);
  void set_dense(Reader& body);
  void start_expiry();
  std::uint64_t expire_some();
  std::uint64_t expire_all(std::uint32_t table);
  std::uint64_t expire_slice(std::uint32_t table, SparseTable::ExpiryPlace& place, std::size_t rows);
  void shrink_expired(Reader body, Respond& respond);
  void follow_tables();
  void record_touched(const wire::Header& header, const wire::PushRequest& request);
  Message pull_touched(const wire::Header& header, Reader& body);
  void note_pull(const wire::Header& header, const wire::PullRequest& request);
  void note_push(const wire::Header& header, const wire::PushRequest& request);
  Message take_staleness(const wire::Header& header);
  Message who_waits(Reader& body) const;
  void keep_pace(const wire::Header& header, Reader& body, Respond& respond);
  void leave_bound(std::uint32_t trainer);
  void end_bound();
  Message stat() const;
  std::string stat_text() const;
  Message get(Reader& body) const;
  Message get_dense(const DenseTable& table) const;
  Message shrink(Reader& body);
  void check_observer(wire::Method method) const;
  Message hello_observer(Reader& body) const;
};

}  // namespace fleetrun::ps
