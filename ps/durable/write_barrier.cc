#include "ps/durable/write_barrier.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fleetrun::ps {

WriteBarrier::Sequences WriteBarrier::freeze() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !frozen_; });
  frozen_ = true;
  changed_.wait(lock, [this] { return inside_ == 0; });
  Sequences out;
  for (const auto& [id, client] : clients_) out[id] = client.history.highest();
  return out;
}

bool WriteBarrier::try_freeze() {
  std::unique_lock lock(mutex_);
  if (frozen_) return false;
  frozen_ = true;
  changed_.wait(lock, [this] { return inside_ == 0; });
  return true;
}

void WriteBarrier::settle(const Sequences& upto, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!frozen_) throw Error(ErrorKind::config, "this server is not about to save");
  allowed_ = upto;
  Again again;
  take_kept(again);
  changed_.notify_all();
  lock.unlock();
  run(again);
  lock.lock();
  ChangeId missing;
  const auto is_settled = [&] { return inside_ == 0 && find_missing(upto, missing) == nullptr; };
  if (changed_.wait_for(lock, patience, is_settled)) return;
  throw Error(ErrorKind::timeout, "change " + std::to_string(missing.number) + " of trainer " +
                                      std::to_string(missing.client.trainer) +
                                      " is on another server, and did not come here within " +
                                      std::to_string(patience.count()) + " ms");
}

void WriteBarrier::open() {
  Again again;
  {
    const std::lock_guard lock(mutex_);
    frozen_ = false;
    allowed_.clear();
    take_kept(again);
    changed_.notify_all();
  }
  run(again);
}

bool WriteBarrier::is_frozen() const {
  const std::lock_guard lock(mutex_);
  return frozen_;
}

// The first change up to `upto` that has not been applied, of a client that is here.
const ChangeId* WriteBarrier::find_missing(const Sequences& upto, ChangeId& missing) const {
  for (const auto& [id, number] : upto) {
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.gone) continue;
    const PushHistory& history = found->second.history;
    std::uint64_t next = history.prefix() + 1;
    while (next <= number && history.is_done(next)) ++next;
    if (next > number) continue;
    missing = {id, next};
    return &missing;
  }
  return nullptr;
}

bool WriteBarrier::is_open_to(const ChangeId& id) const {
  if (!frozen_) return true;
  const auto found = allowed_.find(id.client);
  return id.number != 0 && found != allowed_.end() && id.number <= found->second;
}

void WriteBarrier::check_not_closed() const {
  if (closed_) throw Error(ErrorKind::network, "the server is stopping");
}

void WriteBarrier::close() {
  std::vector<Kept> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    all = std::exchange(kept_, {});
    changed_.notify_all();
  }
  for (const Kept& kept : all) kept.again();
}

WriteBarrier::Answer WriteBarrier::claim(const ChangeId& id, bool enters, std::function<void()> again) {
  const std::lock_guard lock(mutex_);
  check_not_closed();
  if (id.number != 0) {
    Client& client = clients_[id.client];
    if (auto error = client.history.refusal(id.number)) throw Error(std::move(*error));
    if (client.history.is_done(id.number)) return Answer::applied;
    if (client.claimed.contains(id.number)) {
      twins_.emplace(id, Kept{id, std::move(again)});
      return Answer::later;
    }
  }
  if (!is_open_to(id)) {
    kept_.push_back({id, std::move(again)});
    return Answer::later;
  }
  if (id.number != 0) clients_[id.client].claimed.insert(id.number);
  if (enters) ++inside_;
  return Answer::go_on;
}

void WriteBarrier::enter(const std::vector<ChangeId>& ids) {
  std::unique_lock lock(mutex_);
  const auto is_open = [&] {
    return std::ranges::all_of(ids, [this](const ChangeId& id) { return is_open_to(id); });
  };
  changed_.wait(lock, [&] { return closed_ || is_open(); });
  check_not_closed();
  inside_ += ids.size();
}

void WriteBarrier::applied(const std::vector<ChangeId>& ids) {
  Again again;
  {
    const std::lock_guard lock(mutex_);
    for (const ChangeId& id : ids) {
      if (id.number != 0) clients_[id.client].history.note(id.number);
      release(id, again);
    }
    inside_ -= ids.size();
    changed_.notify_all();
  }
  run(again);
}

void WriteBarrier::refused(const std::vector<ChangeId>& ids, const Error& error) {
  Again again;
  {
    const std::lock_guard lock(mutex_);
    for (const ChangeId& id : ids) {
      if (id.number != 0) clients_[id.client].history.refuse(id.number, error);
      release(id, again);
    }
    inside_ -= ids.size();
    changed_.notify_all();
  }
  run(again);
}

void WriteBarrier::left(const std::vector<ChangeId>& ids) {
  Again again;
  {
    const std::lock_guard lock(mutex_);
    for (const ChangeId& id : ids) release(id, again);
    inside_ -= ids.size();
    changed_.notify_all();
  }
  run(again);
}

void WriteBarrier::dropped(const ChangeId& id) {
  Again again;
  {
    const std::lock_guard lock(mutex_);
    release(id, again);
  }
  run(again);
}

void WriteBarrier::release(const ChangeId& id, Again& again) {
  if (id.number == 0) return;
  if (const auto found = clients_.find(id.client); found != clients_.end())
    found->second.claimed.erase(id.number);
  const auto [first, last] = twins_.equal_range(id);
  for (auto twin = first; twin != last; ++twin) again.push_back(std::move(twin->second.again));
  twins_.erase(first, last);
}

void WriteBarrier::take_kept(Again& again) {
  std::vector<Kept> still;
  for (Kept& kept : kept_) {
    if (is_open_to(kept.id))
      again.push_back(std::move(kept.again));
    else
      still.push_back(std::move(kept));
  }
  kept_ = std::move(still);
}

void WriteBarrier::run(const Again& again) {
  for (const auto& call : again) call();
}

std::uint64_t WriteBarrier::begin(const ClientId& client) {
  const std::lock_guard lock(mutex_);
  std::erase_if(clients_, [&](const auto& entry) {
    return entry.first.trainer == client.trainer && entry.first.incarnation != client.incarnation;
  });
  Client& here = clients_[client];
  here.gone = false;
  changed_.notify_all();
  return here.history.prefix() + 1;
}

bool WriteBarrier::has_changes(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(clients_, [trainer](const auto& client) {
    return client.first.trainer == trainer && client.second.history.highest() > 0;
  });
}

void WriteBarrier::end(const ClientId& client) {
  const std::lock_guard lock(mutex_);
  if (const auto found = clients_.find(client); found != clients_.end()) found->second.gone = true;
  changed_.notify_all();
}

std::map<ClientId, PushHistory> WriteBarrier::histories() const {
  const std::lock_guard lock(mutex_);
  std::map<ClientId, PushHistory> out;
  for (const auto& [id, client] : clients_) out.emplace(id, client.history);
  return out;
}

void WriteBarrier::restore(std::map<ClientId, PushHistory> histories) {
  const std::lock_guard lock(mutex_);
  clients_.clear();
  for (auto& [id, history] : histories) clients_[id].history = std::move(history);
}

void WriteBarrier::note(const ChangeId& id) {
  const std::lock_guard lock(mutex_);
  if (id.number != 0) clients_[id.client].history.note(id.number);
}

void WriteBarrier::note_refusal(const ChangeId& id, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (id.number != 0) clients_[id.client].history.refuse(id.number, error);
}

}  // namespace fleetrun::ps
