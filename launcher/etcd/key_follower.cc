#include "launcher/etcd/key_follower.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kFollowPause{50}, kLongPause{1000};

class Follower final : public EtcdActivity {
 public:
  Follower(asio::io_context& loop, EtcdClient& client, std::string key, KeyListener listener,
           FollowTimes times)
      : client_(client),
        key_(std::move(key)),
        listener_(std::move(listener)),
        times_(times),
        pause_(loop),
        check_(loop) {}

  void begin() {
    read();
    check_later();
  }

 private:
  void read() {
    watch_.reset();
    read_ = client_.ask(read_key(key_), times_.patience, [this](const EtcdReply& reply) { on_read(reply); });
  }

  void on_read(const EtcdReply& reply) {
    if (reply.failure) return on_trouble(*reply.failure);
    const auto answer = parsed(reply);
    if (!answer)
      return on_trouble({EtcdFailure::Kind::unavailable, client_.shown() + " sends a malformed answer"});
    next_ = answer->revision + 1;
    const std::weak_ptr alive(alive_);
    tell(answer->entries.empty() ? std::nullopt : std::optional(answer->entries.front()), answer->revision);
    if (!alive.expired()) listen();
  }

  void listen() {
    has_watched_ = false;
    watch_ = client_.listen(
        watch_key(key_, next_), [this](std::string_view line) { on_line(line); },
        [this](const EtcdFailure& failure) { on_watch_end(failure); });
  }

  void on_line(std::string_view line) {
    EtcdWatchNews news;
    try {
      news = watch_news_in(line);
    } catch (const Error&) {
      return read_later(kFollowPause);
    }
    if (news.failure || news.ended) return read_later(kFollowPause);
    has_watched_ = true;
    const std::weak_ptr alive(alive_);
    for (const EtcdChange& change : news.changes) {
      next_ = std::max(next_, change.entry.modified + 1);
      tell(change.removed ? std::nullopt : std::optional(change.entry), change.entry.modified);
      if (alive.expired()) return;
    }
  }

  void on_watch_end(const EtcdFailure& failure) {
    watch_.reset();
    if (failure.kind == EtcdFailure::Kind::unavailable && has_watched_) return listen();
    read_later(kFollowPause);  // which tells the trouble, if it goes on
  }

  void on_trouble(const EtcdFailure& failure) {
    const std::weak_ptr alive(alive_);
    if (listener_.on_trouble) listener_.on_trouble(failure);
    if (!alive.expired())
      read_later(failure.kind == EtcdFailure::Kind::unavailable ? kFollowPause : kLongPause);
  }

  void read_later(milliseconds pause) {
    watch_.reset();
    pause_.expires_after(pause);
    pause_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
      if (!error && !alive.expired()) read();
    });
  }

  void check_later() {
    check_.expires_after(times_.check);
    check_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& error) {
      if (error || alive.expired()) return;
      if (watch_)
        checking_ =
            client_.ask(read_key(key_), times_.patience, [this](const EtcdReply& reply) { on_check(reply); });
      check_later();
    });
  }

  void on_check(const EtcdReply& reply) {
    const auto answer = reply.failure ? std::nullopt : parsed(reply);
    if (!watch_ || !answer || answer->revision < revision_) return;
    const std::int64_t modified = answer->entries.empty() ? 0 : answer->entries.front().modified;
    if (modified == modified_) return;
    client_.turn_away();  // the watch should have told it
    read();
  }

  static std::optional<EtcdAnswer> parsed(const EtcdReply& reply) {
    try {
      return answer_in(reply.body);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  void tell(const std::optional<EtcdEntry>& entry, std::int64_t revision) {
    const std::int64_t modified = entry ? entry->modified : 0;
    if (revision < revision_ || (told_ && modified == modified_)) return;
    told_ = true;
    revision_ = revision;
    modified_ = modified;
    listener_.on_value(entry, revision);
  }

  EtcdClient& client_;
  std::string key_;
  KeyListener listener_;
  FollowTimes times_;
  asio::steady_timer pause_, check_;
  std::unique_ptr<EtcdActivity> read_, watch_, checking_;
  std::int64_t next_ = 0;                     // revision from which the watch goes on
  std::int64_t revision_ = 0, modified_ = 0;  // of what was told last; 0: no key
  bool told_ = false, has_watched_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // with the handlers of the timers
};

}  // namespace

std::unique_ptr<EtcdActivity> follow_key(asio::io_context& loop, EtcdClient& client, std::string key,
                                         KeyListener listener, FollowTimes times) {
  auto follower = std::make_unique<Follower>(loop, client, std::move(key), std::move(listener), times);
  follower->begin();
  return follower;
}

}  // namespace fleetrun::launcher
