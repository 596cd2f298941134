// Connections are counted (`generation`); what a connection of before says is not heard. A thread of its own
// makes the next one, and sends what is unanswered, in the order in which it was first sent.
#include "ps/client/recovering_channel.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/base/push_history.h"

namespace fleetrun::ps {
namespace {

// One request. Guarded by the channel's mutex, apart from what never changes.
struct Sent {
  std::uint64_t number = 0;
  wire::Header header;
  std::shared_ptr<Message> request;  // shared by the attempts to send it
  std::shared_ptr<Endings> endings;
  InFlight::Ticket ticket;  // until it has ended

  std::uint64_t generation = 0;  // of the last attempt
  bool is_started = false;       // that attempt: `call` is set
  bool has_come_back = false;    // likewise: the inner call has ended
  bool failed = false;
  std::shared_ptr<Call> call;
  bool ended = false;
  std::optional<Error> error;  // instead of the call's

  bool is_numbered_change() const noexcept {
    using enum wire::Method;
    const bool is_change = header.method == push || header.method == assign || header.method == set_dense ||
                           header.method == shrink;
    return is_change && header.sequence != 0;
  }

  void end(bool has_failed) {
    ended = true;
    ticket = {};
    endings->ended(has_failed);
  }
};

// A request that is kept while it is sent.
Message same_bytes(const std::shared_ptr<Message>& request) {
  return Message(request->data(), request->size(), [request](std::byte*) {});
}

}  // namespace

struct RecoveringChannel::State : std::enable_shared_from_this<State> {
  Reconnect connect;
  std::atomic<bool> ending{false};
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::shared_ptr<Channel> channel;  // shared with who is sending; none while there is no connection
  std::uint64_t generation = 0;
  std::uint64_t lost = 0;  // the newest generation that is
  std::map<std::uint64_t, std::shared_ptr<Sent>> unanswered;
  std::uint64_t next = 1;
  PushHistory answered;  // changes
  std::optional<Error> failure;
  std::thread thread;

  std::function<void()> on_lost(std::uint64_t of) {
    return [weak = weak_from_this(), of] {
      if (const auto state = weak.lock()) state->lose(of);
    };
  }

  void lose(std::uint64_t of) {
    const std::lock_guard lock(mutex);
    lost = std::max(lost, of);
    changed.notify_all();
  }

  void transmit(const std::shared_ptr<Sent>& sent);
  void come_back(const std::shared_ptr<Sent>& sent, std::uint64_t of, bool failed);
  void settle(const std::shared_ptr<Sent>& sent);
  void run();
  bool reconnect(std::unique_lock<std::mutex>& lock);
  void fail(const Error& error);
};

namespace {

// Hears of the end of an attempt.
template <class State>
class Watch : public Endings {
 public:
  Watch(std::shared_ptr<State> state, std::shared_ptr<Sent> sent, std::uint64_t generation)
      : state_(std::move(state)), sent_(std::move(sent)), generation_(generation) {}

  void ended(bool failed) noexcept override { state_->come_back(sent_, generation_, failed); }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Sent> sent_;
  std::uint64_t generation_;
};

}  // namespace

class RecoveringChannel::RecoveringCall : public Call {
 public:
  RecoveringCall(std::shared_ptr<State> state, std::shared_ptr<Sent> sent)
      : state_(std::move(state)), sent_(std::move(sent)) {}

  ~RecoveringCall() override {
    std::shared_ptr<Call> given_up;
    const std::lock_guard lock(state_->mutex);
    state_->unanswered.erase(sent_->number);
    sent_->generation = 0;
    sent_->ticket = {};
    given_up = std::move(sent_->call);
  }

  bool has_ended() const override {
    const std::lock_guard lock(state_->mutex);
    return sent_->ended;
  }

  Reader result() override {
    if (sent_->error) throw separate_copy(*sent_->error);
    return sent_->call->result();
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Sent> sent_;
};

// Sends it by the connection that is there; without one, that is left to the next.
void RecoveringChannel::State::transmit(const std::shared_ptr<Sent>& sent) {
  std::shared_ptr<Channel> by;
  std::uint64_t of = 0;
  {
    const std::lock_guard lock(mutex);
    // The thread that began it and the one that made the connection may both come to send it.
    if (!channel || sent->generation == generation || !unanswered.contains(sent->number)) return;
    by = channel;
    of = sent->generation = generation;
    sent->is_started = sent->has_come_back = false;
    sent->call.reset();
  }
  std::shared_ptr<Call> call;
  try {
    call = by->start(sent->header, same_bytes(sent->request),
                     std::make_shared<Watch<State>>(shared_from_this(), sent, of));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::network) return lose(of);
    const std::lock_guard lock(mutex);
    sent->error = error;
    unanswered.erase(sent->number);
    return sent->end(true);
  }
  const std::lock_guard lock(mutex);
  if (sent->generation != of) return;
  sent->call = call;
  sent->is_started = true;
  if (sent->has_come_back) settle(sent);
}

void RecoveringChannel::State::come_back(const std::shared_ptr<Sent>& sent, std::uint64_t of, bool failed) {
  const std::lock_guard lock(mutex);
  if (sent->generation != of) return;
  sent->has_come_back = true;
  sent->failed = failed;
  if (sent->is_started) settle(sent);
}

// An attempt has ended: with the server's answer, or with its connection.
void RecoveringChannel::State::settle(const std::shared_ptr<Sent>& sent) {
  if (sent->failed && sent->call->was_lost() && !failure) {
    lost = std::max(lost, sent->generation);
    changed.notify_all();
    return;
  }
  unanswered.erase(sent->number);
  if (!sent->failed && sent->is_numbered_change()) answered.note(sent->header.sequence);
  sent->end(sent->failed);
}

void RecoveringChannel::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return ending || lost >= generation; });
    if (ending || !reconnect(lock)) return;
    std::vector<std::shared_ptr<Sent>> again;
    for (const auto& [number, sent] : unanswered) again.push_back(sent);
    lock.unlock();
    for (const auto& sent : again) transmit(sent);
    lock.lock();
  }
}

bool RecoveringChannel::State::reconnect(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Channel> before = std::move(channel);
  channel.reset();
  const std::uint64_t of = generation + 1;
  const std::uint64_t upto = answered.prefix();
  lock.unlock();
  before.reset();
  std::shared_ptr<Channel> fresh;
  std::optional<Error> error;
  try {
    fresh = connect(on_lost(of), ending, upto);
  } catch (const Error& why) {
    error = why;
  }
  lock.lock();
  if (error) {
    fail(*error);
    return false;
  }
  channel = std::move(fresh);
  generation = of;
  return true;
}

void RecoveringChannel::State::fail(const Error& error) {
  failure = error;
  for (auto& [number, sent] : std::exchange(unanswered, {})) {
    sent->generation = 0;
    sent->error = separate_copy(error);
    sent->end(true);
  }
}

RecoveringChannel::RecoveringChannel(std::string name, Reconnect connect)
    : RecoveringChannel(
          std::move(name),
          [&connect](std::function<void()> on_lost) {
            const std::atomic<bool> never{false};
            return connect(std::move(on_lost), never, 0);
          },
          connect) {}

RecoveringChannel::RecoveringChannel(std::string name, const First& first, Reconnect connect,
                                     const InFlight::Limits& limits, std::uint64_t answered)
    : name_(std::move(name)), in_flight_(name_, limits), state_(std::make_shared<State>()) {
  state_->connect = std::move(connect);
  state_->answered = PushHistory::restore(answered, {});
  state_->generation = 1;
  state_->channel = first(state_->on_lost(1));
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

RecoveringChannel::~RecoveringChannel() {
  std::shared_ptr<Channel> last;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
  const std::lock_guard lock(state_->mutex);
  std::swap(last, state_->channel);
  // What it holds on to may end a thread, and must not do so on that thread,
  // with the last call that is under way.
  state_->connect = nullptr;
  if (!state_->failure) state_->fail(Error(ErrorKind::network, name_ + ": this client is gone"));
}

std::unique_ptr<Call> RecoveringChannel::start(const wire::Header& header, Message request,
                                               std::shared_ptr<Endings> endings) {
  auto sent = std::make_shared<Sent>();
  sent->header = header;
  sent->request = std::make_shared<Message>(std::move(request));
  sent->endings = std::move(endings);
  sent->ticket = in_flight_.enter(sent->request->size());
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure) throw separate_copy(*state_->failure);
    sent->number = state_->next++;
    state_->unanswered.emplace(sent->number, sent);
  }
  state_->transmit(sent);
  return std::make_unique<RecoveringCall>(state_, std::move(sent));
}

std::uint64_t RecoveringChannel::connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->generation;
}

MessageSource RecoveringChannel::messages() {
  const std::lock_guard lock(state_->mutex);
  return state_->channel ? state_->channel->messages() : MessageSource();
}

}  // namespace fleetrun::ps
