#include "ps/shm/link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ps/base/wire.h"
#include "ps/client/in_flight.h"
#include "ps/shm/arena.h"
#include "ps/shm/error_text.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

/// Releases wait in this process when the server is so far behind: there is always room for calls.
constexpr std::uint64_t kMaxReleases = kShmEntries / 2;
/// Without a beat in between, the server is gone.
constexpr int kMaxLooks = 3;

}  // namespace

struct ShmLink::State : std::enable_shared_from_this<ShmLink::State> {
  struct Sent {
    Done done;
    Message copy;  // of a request that was not made here
  };

  ShmSegment segment;
  UniqueFd socket, stop;
  std::string server;
  ShmPatience patience;
  std::thread thread;
  std::mutex mutex;  // guards what follows
  std::condition_variable has_room;
  ShmArena arena;
  ShmWriter requests;
  std::deque<ShmEntry> releases;  // that found no room
  std::map<std::uint64_t, Sent> sent;
  std::uint64_t next_call = 1;
  bool gone = false;

  State(ShmSegment taken, UniqueFd connection, std::string name, ShmPatience how_long)
      : segment(std::move(taken)),
        socket(std::move(connection)),
        stop(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "share memory with " + name)),
        server(std::move(name)),
        patience(how_long),
        arena(segment.bytes()),
        requests(segment.requests(), segment.server_bell()) {}

  Error gone_error(const std::string& why) const {
    return Error(ErrorKind::network, server + " is gone: " + why, "its own log says why; restart the job");
  }

  void wait_for_room(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_there);
  Message allocate(std::size_t size);
  void give_back_request(std::byte* bytes);
  void release_answer(std::uint64_t offset);
  void flush_releases();
  void run();
  void take(const ShmEntry& entry);
  void end(const std::string& why);
};

void ShmLink::State::wait_for_room(std::unique_lock<std::mutex>& lock,
                                   const std::function<bool()>& is_there) {
  const auto is_over = [&] { return gone || is_there(); };
  if (patience.room.count() == 0) return has_room.wait(lock, is_over);
  if (has_room.wait_for(lock, patience.room, is_over)) return;
  throw no_room(server, sent.size(), arena.used(), patience.room);
}

Message ShmLink::State::allocate(std::size_t size) {
  std::unique_lock lock(mutex);
  std::optional<std::uint64_t> offset;
  wait_for_room(lock, [&] { return (offset = arena.allocate(size)).has_value(); });
  if (!offset) return Message(size);
  return Message(segment.request_bytes().data() + *offset, size,
                 [state = shared_from_this()](std::byte* bytes) { state->give_back_request(bytes); });
}

void ShmLink::State::give_back_request(std::byte* bytes) {
  const std::lock_guard lock(mutex);
  arena.free(static_cast<std::uint64_t>(bytes - segment.request_bytes().data()));
  // Where the link is gone, the server may still read what it was sent.
  if (!gone && arena.is_empty() && arena.touched() > kKeptPages) {
    ShmSegment::drop_pages(segment.request_bytes().first(arena.touched()).subspan(kKeptPages));
    arena.forget_touched(kKeptPages);
  }
  has_room.notify_all();
}

void ShmLink::State::release_answer(std::uint64_t offset) {
  const std::lock_guard lock(mutex);
  if (gone) return;
  releases.push_back({ShmKind::release, 0, 0, offset, 0});
  flush_releases();
}

// The server need not wake up for them: it takes them before the next call.
void ShmLink::State::flush_releases() {
  while (!releases.empty() && requests.put(releases.front(), kMaxReleases, true)) releases.pop_front();
}

void ShmLink::State::run() {
  std::string why = "it closed the connection";
  try {
    ShmReader answers(segment.answers(), segment.trainer_bell());
    std::uint64_t beats = 0;
    for (int looks = 0; looks < kMaxLooks;) {
      while (const auto entry = answers.take()) take(*entry);
      const ShmWoken by = answers.wait(socket.value(), stop.value(), patience.life / kMaxLooks);
      if (by == ShmWoken::end) return end(why);
      const std::uint64_t before = std::exchange(beats, segment.beats().load());
      looks = by == ShmWoken::entry || beats != before ? 0 : looks + 1;
    }
    why = "no sign of life for " + std::to_string(patience.life.count()) + " ms; its process is stopped";
  } catch (const std::exception& error) {
    why = error.what();
  }
  end(why);
}

void ShmLink::State::take(const ShmEntry& entry) {
  Sent mine;
  {
    const std::lock_guard lock(mutex);
    const auto found = sent.find(entry.call);
    if (found == sent.end()) throw Error(ErrorKind::data, "it sent an answer without a request");
    mine = std::move(found->second);
    sent.erase(found);
    flush_releases();
    has_room.notify_all();
  }
  ShmAnswer answer;
  try {
    Message message;
    if (entry.size != 0) {
      const auto bytes = ShmSegment::part(segment.answer_bytes(), entry);
      message = Message(
          bytes.data(), bytes.size(),
          [state = shared_from_this(), offset = entry.offset](std::byte*) { state->release_answer(offset); });
    }
    if (entry.kind == ShmKind::answer) {
      answer.outcome = std::move(message);
    } else {
      answer.outcome = decode_error(message.bytes());
    }
  } catch (const Error& error) {
    answer = {gone_error(error.what()), true};
  }
  mine.done(std::move(answer));
}

void ShmLink::State::end(const std::string& why) {
  std::map<std::uint64_t, Sent> unanswered;
  {
    const std::lock_guard lock(mutex);
    gone = true;
    unanswered.swap(sent);
    has_room.notify_all();
  }
  for (auto& [call, mine] : unanswered) mine.done({gone_error(why), true});
}

ShmLink::ShmLink(ShmSegment segment, UniqueFd socket, std::string server, ShmPatience patience)
    : state_(std::make_shared<State>(std::move(segment), std::move(socket), std::move(server), patience)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

ShmLink::~ShmLink() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(state_->stop.value(), &one, sizeof one));
  state_->thread.join();
  // The server hears of it now, whoever still reads an answer.
  state_->socket.reset();
}

MessageSource ShmLink::messages() const {
  return [state = state_](std::size_t size) { return state->allocate(size); };
}

void ShmLink::send(std::span<const std::byte> request, Done done) {
  State& state = *state_;
  const auto half = state.segment.request_bytes();
  Message copy;
  const auto begins_here = [&](const std::byte* at) {
    return at >= half.data() && at < half.data() + half.size();
  };
  if (!begins_here(request.data())) {
    copy = state.allocate(request.size());
    std::ranges::copy(request, copy.data());
    request = copy.bytes();
  }
  std::unique_lock lock(state.mutex);
  state.wait_for_room(lock, [&] { return state.sent.size() < kMaxCalls; });
  if (!state.gone) {
    const std::uint64_t call = state.next_call++;
    state.sent.emplace(call, State::Sent{std::move(done), std::move(copy)});
    state.flush_releases();
    const auto offset = static_cast<std::uint64_t>(request.data() - half.data());
    state.requests.put({ShmKind::call, 0, call, offset, request.size()});
    return;
  }
  lock.unlock();
  done({state.gone_error("it closed the connection"), true});
}

}  // namespace fleetrun::ps
