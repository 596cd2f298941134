#include "collective/store/store_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/text.h"

namespace fleetrun::collective {
namespace {

using Kind = StoreMessage::Kind;

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

/// Takes fields from the beginning of bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  std::string_view take(std::size_t size) {
    if (bytes_.size() < size)
      throw Error(ErrorKind::data, "a message of the job's store ends within a field");
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  template <class Number>
  Number number() {
    Number out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  bool empty() const noexcept { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string encode(const StoreMessage& message) {
  std::string bytes;
  put(bytes, static_cast<std::uint8_t>(message.kind));
  put(bytes, message.id);
  put(bytes, message.number);
  put_text(bytes, message.name);
  put_text(bytes, message.value);
  return bytes;
}

StoreMessage decode_store_message(std::string_view bytes) {
  Fields fields(bytes);
  StoreMessage message;
  const auto kind = fields.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(Kind::announced))
    throw Error(ErrorKind::data, "a message of kind " + std::to_string(kind) + " for the job's store");
  message.kind = static_cast<Kind>(kind);
  message.id = fields.number<std::uint64_t>();
  message.number = fields.number<std::int64_t>();
  message.name = fields.text();
  message.value = fields.text();
  if (!fields.empty()) throw Error(ErrorKind::data, "a message of the job's store has bytes after its end");
  return message;
}

std::string encode_gathered(const std::map<int, std::string>& values) {
  std::string bytes;
  for (const auto& [rank, value] : values) {
    put(bytes, static_cast<std::int32_t>(rank));
    put_text(bytes, value);
  }
  return bytes;
}

std::map<int, std::string> decode_gathered(std::string_view bytes) {
  Fields fields(bytes);
  std::map<int, std::string> values;
  while (!fields.empty()) {
    const auto rank = fields.number<std::int32_t>();
    values[rank] = fields.text();
  }
  return values;
}

std::string rank_names(const std::vector<int>& ranks) {
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return names;
}

void StoreState::answer(Client client, std::uint64_t id, std::string value, std::int64_t number) {
  outputs_.push_back({client, {Kind::answer, id, number, {}, std::move(value)}});
}

void StoreState::refuse(Client client, std::uint64_t id, const Error& error) {
  outputs_.push_back(
      {client, {Kind::refused, id, static_cast<std::int64_t>(error.kind()), error.what(), error.hint()}});
}

void StoreState::greet(Client client, const StoreMessage& message) {
  const auto rank = static_cast<int>(message.number);
  const std::string name = "rank " + std::to_string(rank);
  const auto differs = [&](const std::string& what, const std::string& hint) {
    refuse(client, message.id, Error(ErrorKind::config, what, hint));
  };
  if (message.value != std::to_string(size_))
    return differs(name + " has come to a job of " + printable(message.value) +
                       " ranks, and rank 0 serves one of " + std::to_string(size_),
                   "give all ranks the same number of trainers and the same endpoints");
  if (message.name != attempt_)
    return differs(name + " is of " + printable(message.name) + ", and rank 0 of " + attempt_,
                   "end the remaining processes of the earlier start of the job");
  if (message.number < 0 || message.number >= size_)
    return differs(std::to_string(message.number) + " is not a rank of a job of " + std::to_string(size_),
                   "");
  if (clients_.contains(rank) || gone_.contains(rank))
    return differs(
        name + " is here already",
        "give every process another rank; one that has ended comes back with the next start of the job");
  ranks_[client] = rank;
  clients_[rank] = client;
  answer(client, message.id);
  for (const auto& [other, why] : lost_) outputs_.push_back({client, {Kind::lost, 0, other, {}, why}});
}

void StoreState::set(Client client, const StoreMessage& message) {
  const auto [entry, is_new] = values_.try_emplace(message.name, message.value);
  if (entry->second != message.value)
    return refuse(client, message.id,
                  Error(ErrorKind::config, "the ranks disagree on " + printable(message.name) + ": '" +
                                               printable(entry->second, 200) + "' and '" +
                                               printable(message.value, 200) + "'"));
  answer(client, message.id);
  if (!is_new) return;
  for (const Waiting& waiting : waiting_[message.name]) answer(waiting.client, waiting.id, message.value);
  waiting_.erase(message.name);
}

std::vector<int> StoreState::missing(const std::string& name) const {
  std::vector<int> ranks;
  const auto found = gatherings_.find(name);
  for (int rank = 0; rank < size_; ++rank) {
    const bool has_come = found != gatherings_.end() && found->second.values.contains(rank);
    const bool counts = found == gatherings_.end() || !found->second.of_living || !gone_.contains(rank);
    if (!has_come && counts) ranks.push_back(rank);
  }
  return ranks;
}

/// Of one that is not of the living, a rank that is gone will never come.
void StoreState::complete(const std::string& name) {
  Gathering& gathering = gatherings_.at(name);
  std::vector<int> never;
  const std::vector<int> absent = missing(name);
  for (const int rank : absent)
    if (gone_.contains(rank)) never.push_back(rank);
  if (!absent.empty() && never.empty()) return;
  for (const auto& [rank, asked] : gathering.asking) {
    if (never.empty()) {
      answer(asked.first, asked.second, encode_gathered(gathering.values));
    } else {
      refuse(asked.first, asked.second,
             Error(ErrorKind::network, rank_names(never) + " ended before all ranks had joined",
                   "look at its log"));
    }
  }
  gathering.asking.clear();
}

void StoreState::gather(Client client, int rank, const StoreMessage& message) {
  Gathering& gathering = gatherings_[message.name];
  gathering.of_living = message.number != 0;
  if (!gathering.values.try_emplace(rank, message.value).second)
    return refuse(client, message.id,
                  Error(ErrorKind::config, "rank " + std::to_string(rank) + " comes to " +
                                               printable(message.name) + " for the second time"));
  gathering.asking[rank] = {client, message.id};
  complete(message.name);
}

void StoreState::part(int rank, Kind how, const std::string& why) {
  gone_.insert(rank);
  if (how == Kind::lost) lost_[rank] = why;
  for (const auto& [other, client] : clients_)
    if (other != rank) outputs_.push_back({client, {how, 0, rank, {}, why}});
  for (auto& [name, gathering] : gatherings_) {
    gathering.asking.erase(rank);
    if (gathering.of_living) gathering.values.erase(rank);
    if (!gathering.asking.empty()) complete(name);
  }
}

std::vector<StoreState::Output> StoreState::receive(Client client, const StoreMessage& message) {
  outputs_.clear();
  const auto known = ranks_.find(client);
  if ((message.kind == Kind::hello) == (known != ranks_.end()))
    throw Error(ErrorKind::data, "the job's store was sent a hello at the wrong time");
  const int rank = known == ranks_.end() ? -1 : known->second;
  switch (message.kind) {
    case Kind::hello:
      greet(client, message);
      break;
    case Kind::set:
      set(client, message);
      break;
    case Kind::wait:
      if (const auto found = values_.find(message.name); found != values_.end())
        answer(client, message.id, found->second);
      else
        waiting_[message.name].push_back({client, message.id});
      break;
    case Kind::forget:
      for (auto& [name, waiting] : waiting_)
        std::erase_if(waiting, [&](const Waiting& one) {
          return one.client == client && one.id == static_cast<std::uint64_t>(message.number);
        });
      break;
    case Kind::add:
      answer(client, message.id, {}, sums_[message.name] += message.number);
      break;
    case Kind::gather:
      gather(client, rank, message);
      break;
    case Kind::missing: {
      std::map<int, std::string> names;
      for (const int absent : missing(message.name)) names[absent];
      answer(client, message.id, encode_gathered(names));
      break;
    }
    case Kind::announce:
      for (const auto& [other, to] : clients_)
        if (other != rank) outputs_.push_back({to, {Kind::announced, 0, rank, message.name, message.value}});
      break;
    case Kind::leave:
      answer(client, message.id);
      clients_.erase(rank);
      part(rank, Kind::left, "it has left");
      break;
    default:
      throw Error(ErrorKind::data, "the job's store was sent what only it sends");
  }
  return std::exchange(outputs_, {});
}

std::vector<StoreState::Output> StoreState::end(Client client, const std::string& why) {
  outputs_.clear();
  for (auto& [name, waiting] : waiting_)
    std::erase_if(waiting, [client](const Waiting& one) { return one.client == client; });
  const auto known = ranks_.find(client);
  if (known == ranks_.end()) return {};
  const int rank = known->second;
  ranks_.erase(known);
  if (clients_.erase(rank) > 0) part(rank, Kind::lost, why);
  return std::exchange(outputs_, {});
}

}  // namespace fleetrun::collective
