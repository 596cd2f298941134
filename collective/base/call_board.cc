#include "collective/base/call_board.h"

#include <algorithm>
#include <array>

namespace fleetrun::collective {
namespace {

constexpr std::size_t kNamed = 8;  // ranks in a message
constexpr std::array kKinds = {ErrorKind::usage,   ErrorKind::config,  ErrorKind::host, ErrorKind::spawn,
                               ErrorKind::network, ErrorKind::timeout, ErrorKind::data};

std::string packed(const Error& error) {
  return std::string(to_string(error.kind())) + "\n" + error.what() + "\n" + error.hint();
}

Error unpacked(const std::string& text) {
  const std::size_t kind_end = text.find('\n'), hint = text.rfind('\n');
  ErrorKind kind = ErrorKind::network;
  for (const ErrorKind candidate : kKinds)
    if (text.substr(0, kind_end) == to_string(candidate)) kind = candidate;
  if (kind_end == std::string::npos || hint <= kind_end) return Error(kind, text);
  return Error(kind, text.substr(kind_end + 1, hint - kind_end - 1), text.substr(hint + 1));
}

/// "a", "a and b", "a, b and 3 more"
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  const std::size_t shown = std::min(names.size(), kNamed);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == shown && names.size() == shown;
    text += (i == 0 ? "" : is_last ? " and " : ", ") + names[i];
  }
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace

std::string to_string(const std::vector<CallBoard::Behind>& behind) {
  std::vector<std::string> names;
  for (const auto& [rank, calls] : behind)
    names.push_back("rank " + std::to_string(rank) + " (it has made " + std::to_string(calls) +
                    (calls == 1 ? " call)" : " calls)"));
  return list_of(names);
}

CallBoard::CallBoard(Store& store, std::string prefix, Place place)
    : store_(store), prefix_(std::move(prefix)), place_(std::move(place)) {}

void CallBoard::meet(const std::string& agreement, Clock::time_point deadline) {
  store_.set(name("here/" + std::to_string(place_.rank)), agreement);
  if (store_.add(name("here"), 1) == place_.size) store_.set(name("all here"), "yes");
  std::optional<Error> late;
  try {
    store_.wait(name("all here"), deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    late = error;
  }
  std::vector<std::string> absent;
  // Rank 0 asks all of them, and the others rank 0 alone, unless somebody is missing.
  const int asked = late || place_.rank == 0 ? place_.size : 1;
  for (int rank = 0; rank < asked; ++rank) {
    std::string said;
    try {
      said = store_.wait(name("here/" + std::to_string(rank)), late ? Clock::now() : deadline);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::timeout) throw;
      absent.push_back("rank " + std::to_string(rank));
      continue;
    }
    if (said == agreement) continue;
    throw Error(ErrorKind::config,
                "group " + place_.group + ": rank " + std::to_string(rank) + " has " + said + ", rank " +
                    std::to_string(place_.rank) + " has " + agreement,
                "start all ranks with the same versions and settings");
  }
  if (!late) return;
  throw Error(ErrorKind::timeout,
              "group " + place_.group + " of " + std::to_string(place_.size) + ": " + list_of(absent) +
                  " did not come",
              "look into the log of the first of them");
}

std::string CallBoard::share(const std::string& what, const std::string& value, Clock::time_point deadline) {
  if (place_.rank == 0) store_.set(name(what), value);
  return place_.rank == 0 ? value : store_.wait(name(what), deadline);
}

void CallBoard::publish(std::uint64_t calls) {
  const std::lock_guard lock(mutex_);
  if (calls <= published_) return;
  store_.add(name("calls/" + std::to_string(place_.rank)), static_cast<std::int64_t>(calls - published_));
  published_ = calls;
}

std::vector<CallBoard::Behind> CallBoard::behind(std::uint64_t calls) {
  std::vector<Behind> found;
  for (int rank = 0; rank < place_.size; ++rank) {
    const auto made = static_cast<std::uint64_t>(store_.add(name("calls/" + std::to_string(rank)), 0));
    if (made < calls) found.push_back({rank, made});
  }
  return found;
}

void CallBoard::abort(const Error& why) {
  if (store_.add(name("aborts"), 1) == 1) store_.set(name("abort"), packed(why));
}

std::optional<Error> CallBoard::aborted() {
  if (store_.add(name("aborts"), 0) == 0) return {};
  // Set right after the first has counted itself; where that rank died in between, nobody knows its reason.
  try {
    return unpacked(store_.wait(name("abort"), Clock::now() + std::chrono::seconds(1)));
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace fleetrun::collective
