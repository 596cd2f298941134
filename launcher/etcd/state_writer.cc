#include "launcher/etcd/state_writer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kWritePatience{2000}, kWritePause{100};

class Writer final : public StateWriter {
 public:
  Writer(asio::io_context& loop, EtcdClient& client, JobKeys keys, std::int64_t fence,
         std::optional<EtcdEntry> found, std::chrono::seconds time_to_live)
      : client_(client),
        keys_(std::move(keys)),
        fence_(fence),
        time_to_live_(time_to_live),
        pause_(loop),
        renewal_(loop) {
    if (found) {
      modified_ = found->modified;
      state_ = std::move(found->value);
    }
  }

  void begin() {
    if (state_) step();
    renew_later();
  }

  void write(const std::string& state, std::function<void(const StateOutcome&)> done) override {
    state_ = state;
    done_ = std::move(done);
    if (!busy_) step();  // else after what is under way
  }

 private:
  void step() {
    busy_ = true;
    if (lease_ != 0) return put();
    drawn_ = draw_lease_id();
    asked_ = client_.ask(grant_lease(drawn_, time_to_live_), kWritePatience, [this](const EtcdReply& reply) {
      if (reply.failure && reply.failure->kind != EtcdFailure::Kind::exists)
        return on_failure(*reply.failure);
      lease_ = drawn_;
      put();
    });
  }

  void put() {
    written_ = *state_;
    const EtcdTransaction transaction{
        .compares = {{EtcdCompare::What::created, keys_.coordinator, fence_},
                     {EtcdCompare::What::modified, keys_.state, modified_}},
        .puts = {{keys_.state, written_, lease_}},
        .deletes = {},
        .read = {keys_.coordinator, keys_.state},
    };
    asked_ = client_.ask(run_transaction(transaction), kWritePatience, [this](const EtcdReply& reply) {
      if (reply.failure) return on_failure(*reply.failure);
      try {
        on_answer(answer_in(reply.body));
      } catch (const Error&) {
        later();
      }
    });
  }

  void on_answer(const EtcdAnswer& answer) {
    const auto find = [&](const std::string& key) {
      return std::find_if(answer.entries.begin(), answer.entries.end(),
                          [&](const EtcdEntry& entry) { return entry.key == key; });
    };
    const auto coordinator = find(keys_.coordinator), state = find(keys_.state);
    const auto none = answer.entries.end();
    if (coordinator == none || coordinator->created != fence_) return finish({StateOutcome::Kind::deposed});
    modified_ = state == none ? 0 : state->modified;
    const bool stored = state != none && state->value == written_ && state->lease == lease_;
    if (!stored || written_ != *state_)
      return step();  // a write of before came late, or there is a newer state
    finish({StateOutcome::Kind::stored});
  }

  void on_failure(const EtcdFailure& failure) {
    using Kind = EtcdFailure::Kind;
    if (failure.kind == Kind::unavailable) return later();
    if (failure.kind == Kind::missing) {  // the lease is over
      lease_ = 0;
      return later();
    }
    finish({StateOutcome::Kind::refused, failure});
  }

  void later() {
    pause_.expires_after(kWritePause);
    pause_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
      if (!error && !alive.expired()) step();
    });
  }

  void finish(const StateOutcome& outcome) {
    busy_ = false;
    if (const auto done = std::exchange(done_, nullptr)) done(outcome);  // may end this writer
  }

  void renew_later() {
    renewal_.expires_after(std::chrono::milliseconds(time_to_live_) / 6);
    renewal_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
      if (error || alive.expired()) return;
      renew();
      renew_later();
    });
  }

  void renew() {
    if (lease_ == 0 || busy_) return;
    renewing_ = client_.ask(keep_lease(lease_), kWritePatience, [this](const EtcdReply& reply) {
      try {
        const bool gone = reply.failure ? reply.failure->kind == EtcdFailure::Kind::missing
                                        : time_to_live_in(reply.body) == 0;
        if (!gone || busy_) return;
        lease_ = 0;
        step();
      } catch (const Error&) {
        // no answer: the next renewal asks again
      }
    });
  }

  EtcdClient& client_;
  JobKeys keys_;
  std::int64_t fence_, modified_ = 0;
  std::chrono::seconds time_to_live_;
  std::int64_t lease_ = 0, drawn_ = 0;
  std::optional<std::string> state_;  // the newest
  std::string written_;               // the one under way
  bool busy_ = false;
  std::function<void(const StateOutcome&)> done_;
  asio::steady_timer pause_, renewal_;
  std::unique_ptr<EtcdActivity> asked_, renewing_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // with the handlers of the timers
};

}  // namespace

JobKeys job_keys(std::string_view job_id) {
  const std::string prefix = "/fleetrun/" + std::string(job_id) + "/";
  return {.coordinator = prefix + "coordinator", .state = prefix + "state"};
}

std::unique_ptr<StateWriter> make_state_writer(asio::io_context& loop, EtcdClient& client, JobKeys keys,
                                               std::int64_t fence, std::optional<EtcdEntry> found,
                                               std::chrono::seconds time_to_live) {
  auto writer =
      std::make_unique<Writer>(loop, client, std::move(keys), fence, std::move(found), time_to_live);
  writer->begin();
  return writer;
}

std::int64_t draw_lease_id() {
  return static_cast<std::int64_t>(random_number<std::uint64_t>() >> 1 | 1);  // positive
}

}  // namespace fleetrun::launcher
