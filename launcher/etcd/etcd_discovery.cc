#include "launcher/etcd/etcd_discovery.h"

#include <time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "launcher/etcd/key_follower.h"
#include "launcher/etcd/lease_clock.h"
#include "launcher/etcd/state_writer.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = EtcdFailure::Kind;

// A wrong address must not look like a wait for hosts.
constexpr milliseconds kFirstWord{3000}, kEveryWord{10'000};
constexpr milliseconds kPatience{2000}, kPause{50}, kTick{250}, kFarewell{700};

/// Goes on while the machine sleeps.
nanoseconds boot_time() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

std::string seconds_text(milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

const EtcdEntry* find_entry(const EtcdAnswer& answer, const std::string& key) noexcept {
  const auto found = std::find_if(answer.entries.begin(), answer.entries.end(),
                                  [&](const EtcdEntry& entry) { return entry.key == key; });
  return found == answer.entries.end() ? nullptr : &*found;
}

class EtcdDiscovery final : public Discovery {
 public:
  EtcdDiscovery(asio::io_context& loop, EtcdDiscoverySettings settings)
      : loop_(loop),
        settings_(std::move(settings)),
        keys_(job_keys(settings_.job_id)),
        client_(make_etcd_client(loop, settings_.address, settings_.times)),
        clock_(settings_.trust),
        tick_(loop),
        pause_(loop) {}

  void start(const Endpoint& own, DiscoveryListener& listener) override {
    own_ = own;
    listener_ = &listener;
    started_ = boot_time();
    follower_ = follow_key(loop_, *client_, keys_.coordinator,
                           {.on_value = [this](const auto& entry, std::int64_t) { on_value(entry); },
                            .on_trouble = [this](const EtcdFailure& failure) { on_trouble(failure); }});
    tick_later();
  }

  void publish(const std::string& state) override {
    waiting_.push_back({state, boot_time(), false});
    if (waiting_.size() > 1) return;
    asio::post(loop_, [this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) write();
    });
  }

  void stop(bool job_over) override;

 private:
  struct Waiting {
    std::string state;
    nanoseconds since;
    bool stored;  // and not told yet
  };

  void on_value(const std::optional<EtcdEntry>& entry);
  void on_trouble(const EtcdFailure& failure);
  void campaign();
  void stand();
  void on_vote(const EtcdAnswer& answer);
  void on_elected(const EtcdEntry& coordinator, const EtcdEntry* state);
  void on_other(const EtcdEntry& coordinator);
  void again();
  void renew();
  void on_renewal(const EtcdReply& reply, nanoseconds asked);
  void depose(const std::string& why);
  void write();
  void on_written(const StateOutcome& outcome);
  void tell_stored();
  void tick();
  void tick_later();
  void fail(const EtcdFailure& failure, milliseconds tried = {});
  void fail(const Error& error);

  asio::io_context& loop_;
  EtcdDiscoverySettings settings_;
  JobKeys keys_;
  std::unique_ptr<EtcdClient> client_;
  LeaseClock clock_;
  asio::steady_timer tick_, pause_;
  Endpoint own_;
  DiscoveryListener* listener_ = nullptr;  // null: over
  nanoseconds started_{}, renewed_{};
  milliseconds next_word_ = kFirstWord;  // of that it was not reached, since started_
  bool reached_ = false;                 // etcd, at least once
  bool standing_ = false;                // a lease or a vote is asked for
  bool leading_ = false, in_doubt_ = false;
  std::int64_t lease_ = 0, fence_ = 0;
  std::set<std::int64_t> leases_;  // all of ours
  std::optional<Endpoint> following_;
  std::optional<std::string> stored_;  // the state as this leader knows it
  std::deque<Waiting> waiting_;
  std::unique_ptr<EtcdActivity> follower_, asked_, renewing_, revoking_;
  std::unique_ptr<StateWriter> writer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // with the handlers of the timers
};

void EtcdDiscovery::on_value(const std::optional<EtcdEntry>& entry) {
  reached_ = true;
  if (!listener_) return;
  if (!entry) return campaign();
  if (entry->lease == lease_ && lease_ != 0) return;  // the vote's answer tells it too
  if (leases_.count(entry->lease) != 0) {             // of a vote whose answer never came
    revoking_ = client_->ask(revoke_lease(entry->lease), kPatience, [](const EtcdReply&) {});
    return;
  }
  on_other(*entry);
}

void EtcdDiscovery::on_trouble(const EtcdFailure& failure) {
  if (!listener_) return;
  const auto tried = std::chrono::duration_cast<milliseconds>(boot_time() - started_);
  if (failure.kind != Kind::unavailable) {
    if (!leading_ && !following_) fail(failure);
  } else if (!reached_ && tried >= settings_.join_timeout) {
    fail(failure, tried);
  } else if (!reached_ && tried >= next_word_) {
    next_word_ = tried + kEveryWord;
    listener_->in_doubt(client_->shown() + " has not answered yet: " + failure.text);
  }
}

/// Asks for a lease, and then for the vote. A leader whose key is gone stands again,
/// without a word to its listener.
void EtcdDiscovery::campaign() {
  if (!settings_.may_coordinate || standing_ || !listener_) return;
  standing_ = true;
  lease_ = draw_lease_id();
  leases_.insert(lease_);
  clock_.begin();
  const nanoseconds asked = boot_time();
  asked_ =
      client_->ask(grant_lease(lease_, settings_.lease), kPatience, [this, asked](const EtcdReply& reply) {
        if (reply.failure && reply.failure->kind != Kind::exists) {
          if (reply.failure->kind == Kind::unavailable) return again();
          return fail(*reply.failure);
        }
        clock_.confirm(asked);
        stand();
      });
}

void EtcdDiscovery::stand() {
  const EtcdTransaction vote{
      .compares = {{EtcdCompare::What::created, keys_.coordinator, 0}},
      .puts = {{keys_.coordinator, coordinator_text(own_), lease_}},
      .deletes = {},
      .read = {keys_.coordinator, keys_.state},
  };
  asked_ = client_->ask(run_transaction(vote), kPatience, [this](const EtcdReply& reply) {
    if (reply.failure && (reply.failure->kind == Kind::unavailable || reply.failure->kind == Kind::missing))
      return again();  // with another lease
    if (reply.failure) return fail(*reply.failure);
    try {
      on_vote(answer_in(reply.body));
    } catch (const Error&) {
      again();
    }
  });
}

void EtcdDiscovery::on_vote(const EtcdAnswer& answer) {
  const EtcdEntry* coordinator = find_entry(answer, keys_.coordinator);
  if (!coordinator || !clock_.holds(boot_time())) return again();
  standing_ = false;
  if (coordinator->lease == lease_) return on_elected(*coordinator, find_entry(answer, keys_.state));
  on_value(*coordinator);
}

void EtcdDiscovery::on_elected(const EtcdEntry& coordinator, const EtcdEntry* state) {
  const bool untouched =
      !state || state->value == stored_ || (!waiting_.empty() && state->value == waiting_.front().state);
  const std::weak_ptr alive(alive_);
  if (leading_ && !untouched) depose("another launcher led meanwhile");
  if (alive.expired() || !listener_) return;
  fence_ = coordinator.created;
  following_.reset();
  std::optional<EtcdEntry> found = state ? std::optional(*state) : std::nullopt;
  if (!found && stored_ && leading_) found = EtcdEntry{.value = *stored_};  // its lease is over too
  writer_ = make_state_writer(loop_, *client_, keys_, fence_, found, settings_.state_lease);
  renewed_ = boot_time();
  if (std::exchange(leading_, true)) {
    in_doubt_ = false;
    return write();
  }
  stored_ = state ? std::optional(state->value) : std::nullopt;
  listener_->lead(static_cast<std::uint64_t>(fence_), stored_);
  if (!alive.expired() && listener_) listener_->leads_until(clock_.lives_until(settings_.lease));
}

void EtcdDiscovery::on_other(const EtcdEntry& entry) {
  Endpoint coordinator;
  try {
    coordinator = coordinator_in(entry.value);
  } catch (Error& error) {
    error.while_doing("reading " + keys_.coordinator + " in " + client_->shown());
    return fail(error);
  }
  const std::weak_ptr alive(alive_);
  if (leading_) depose("another launcher leads now, at " + to_string(coordinator));
  if (alive.expired() || !listener_) return;
  const bool news = following_ != coordinator;
  following_ = coordinator;
  if (news) listener_->follow(coordinator);
}

/// Another try at an election that etcd did not answer.
void EtcdDiscovery::again() {
  pause_.expires_after(kPause);
  pause_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
    if (error || alive.expired()) return;
    standing_ = false;
    campaign();
  });
}

void EtcdDiscovery::renew() {
  renewed_ = boot_time();
  renewing_ = client_->ask(keep_lease(lease_), settings_.renewal,
                           [this, asked = renewed_](const EtcdReply& reply) { on_renewal(reply, asked); });
}

void EtcdDiscovery::on_renewal(const EtcdReply& reply, nanoseconds asked) {
  if (!leading_ || standing_) return;
  bool gone = reply.failure && reply.failure->kind == Kind::missing;
  if (!reply.failure) {
    try {
      gone = time_to_live_in(reply.body) == 0;
    } catch (const Error&) {
      return;
    }
  }
  if (gone) return campaign();
  if (reply.failure) return;
  clock_.confirm(asked);
  in_doubt_ = in_doubt_ && !clock_.holds(boot_time());
  const std::weak_ptr alive(alive_);
  listener_->leads_until(clock_.lives_until(settings_.lease));
  if (!alive.expired() && listener_) tell_stored();
}

void EtcdDiscovery::depose(const std::string& why) {
  leading_ = in_doubt_ = false;
  writer_.reset();
  stored_.reset();
  const std::size_t unanswered = std::exchange(waiting_, {}).size();
  const std::weak_ptr alive(alive_);
  for (std::size_t i = 0; i < unanswered && !alive.expired() && listener_; ++i)
    listener_->on_published(false);
  if (!alive.expired() && listener_) listener_->lost_lead(why);
}

void EtcdDiscovery::write() {
  if (!listener_ || waiting_.empty() || waiting_.front().stored) return;
  if (!leading_) {
    waiting_.pop_front();
    const std::weak_ptr alive(alive_);
    listener_->on_published(false);
    if (!alive.expired()) write();
    return;
  }
  writer_->write(waiting_.front().state, [this](const StateOutcome& outcome) { on_written(outcome); });
}

void EtcdDiscovery::on_written(const StateOutcome& outcome) {
  switch (outcome.kind) {
    case StateOutcome::Kind::stored:
      stored_ = waiting_.front().state;
      waiting_.front().stored = true;
      return tell_stored();
    case StateOutcome::Kind::deposed:
      // The key is gone or another one's. The follower sees which,
      // and a leader whose key is gone stands again.
      return campaign();
    case StateOutcome::Kind::refused:
      return fail(outcome.failure);
  }
}

/// An answer may have lain here while this launcher was stopped: it counts once the lease is known to hold.
void EtcdDiscovery::tell_stored() {
  if (waiting_.empty() || !waiting_.front().stored || !clock_.holds(boot_time())) return;
  waiting_.pop_front();
  const std::weak_ptr alive(alive_);
  listener_->on_published(true);
  if (!alive.expired()) write();
}

void EtcdDiscovery::tick() {
  if (!listener_ || !leading_) return;
  const nanoseconds now = boot_time();
  if (!standing_ && now - renewed_ >= settings_.renewal) renew();
  if (!in_doubt_ && !clock_.holds(now)) {
    in_doubt_ = true;
    const std::weak_ptr alive(alive_);
    listener_->in_doubt(
        client_->shown() + " has not answered for " + seconds_text(settings_.trust) +
        ": running processes continue, but hosts cannot join or be replaced until it is back");
    if (alive.expired() || !listener_) return;
  }
  if (!waiting_.empty() && now - waiting_.front().since >= settings_.join_timeout)
    fail({Kind::unavailable, "a new world could not be stored"}, settings_.join_timeout);
}

void EtcdDiscovery::tick_later() {
  tick_.expires_after(kTick);
  tick_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
    if (error || alive.expired()) return;
    tick();
    if (!alive.expired() && listener_) tick_later();
  });
}

void EtcdDiscovery::fail(const EtcdFailure& failure, milliseconds tried) {
  const std::string shown = client_->shown(), user = settings_.address.user;
  switch (failure.kind) {
    case Kind::unavailable:
      return fail(Error(ErrorKind::network,
                        shown + " could not be reached for " + seconds_text(tried) + ": " + failure.text,
                        "check that etcd runs there, and that its client port is open to this host"));
    case Kind::login:
      return fail(Error(ErrorKind::config, shown + " wants a login: " + failure.text,
                        "write it as --master etcd://USER:PASSWORD@HOST:2379"));
    case Kind::denied:
      return fail(Error(ErrorKind::config,
                        shown + " does not let user '" + printable(user) + "' use /fleetrun/" +
                            settings_.job_id + "/: " + failure.text,
                        "grant it: etcdctl role grant-permission ROLE readwrite --prefix=true /fleetrun/"));
    default:
      return fail(Error(ErrorKind::network, shown + " refused: " + failure.text,
                        user.empty() ? "check that it is an etcd of version 3.4 or later"
                                     : "check the user and the password in --master"));
  }
}

void EtcdDiscovery::fail(const Error& error) {
  follower_.reset();
  asked_.reset();
  renewing_.reset();
  writer_.reset();
  std::exchange(listener_, nullptr)->failed(error);
}

/// Nobody runs the loop any more after this: the last words are said on a loop of their own,
/// within a bounded time.
void EtcdDiscovery::stop(bool job_over) {
  const bool was_leading = leading_ && listener_, was_standing = std::exchange(standing_, false);
  listener_ = nullptr;
  leading_ = false;
  follower_.reset();
  asked_.reset();
  renewing_.reset();
  writer_.reset();
  if (!was_leading && !was_standing) return;
  asio::io_context loop;
  const auto client = make_etcd_client(loop, settings_.address, settings_.times);
  EtcdTransaction last{.compares = {{EtcdCompare::What::created, keys_.coordinator, fence_}},
                       .puts = {},
                       .deletes = {keys_.coordinator},
                       .read = {}};
  if (job_over) last.deletes.push_back(keys_.state);
  std::unique_ptr<EtcdActivity> farewell;
  const auto revoke = [&](const EtcdReply&) {
    farewell = client->ask(revoke_lease(lease_), kFarewell, [](const EtcdReply&) {});
  };
  if (was_leading)
    farewell = client->ask(run_transaction(last), kFarewell, revoke);
  else
    revoke({});
  loop.run_for(kFarewell);
}

}  // namespace

std::unique_ptr<Discovery> make_etcd_discovery(asio::io_context& loop, EtcdDiscoverySettings settings) {
  return std::make_unique<EtcdDiscovery>(loop, std::move(settings));
}

std::string coordinator_text(const Endpoint& coordinator) {
  return json_text(nlohmann::json{{"coordinator", to_string(coordinator)}, {"version", 1}});
}

Endpoint coordinator_in(std::string_view text) {
  const auto value = read_json<nlohmann::json>(text);
  const auto found = value.is_object() ? value.find("coordinator") : value.end();
  if (value.is_object() && found != value.end() && found->is_string()) {
    try {
      return parse_endpoint(found->get_ref<const std::string&>());
    } catch (const Error&) {
      // said below
    }
  }
  throw Error(ErrorKind::data, "'" + printable(text) + "' was not written by fleetrun",
              "remove the key, or choose another job id with --job_id");
}

}  // namespace fleetrun::launcher
