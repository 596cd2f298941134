// The thread that watches over a communicator's calls, and what it does when one of them cannot end. NCCL
// tells of errors only when it is asked, so that calls under way are looked at every NcclOptions::look_every;
// with none under way it sleeps.
#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/base/call_thread.h"
#include "collective/nccl/nccl_session.h"
#include "runtime/base/error_copy.h"
#include "runtime/log/log.h"

namespace fleetrun::collective {
namespace {

std::string seconds_text(std::chrono::milliseconds time) {
  const long long whole = time.count() / 1000, rest = time.count() % 1000;
  return rest == 0 ? std::to_string(whole) + " s" : std::to_string(time.count()) + " ms";
}

}  // namespace

void NcclSession::throw_failure(const Lock&) const {
  if (failure_) throw separate_copy(*failure_);
}

void NcclSession::fail(const Error& why, const Lock&) noexcept {
  if (!failure_) {
    // What has ended by now has ended well.
    for (const auto& call : under_way_) {
      if (call->state == NcclCall::State::running && call->is_launched &&
          (!call->slot || call->is_compared) && call->done.has_surely_passed())
        call->state = NcclCall::State::ended;
    }
    failure_ = why;
  }
  changed_.notify_all();
}

void NcclSession::fail(const Error& why) noexcept {
  const Lock lock(mutex_);
  fail(why, lock);
}

void NcclSession::hold(const NcclCall& call, cudaStream_t stream) const {
  call.done.hold(stream);
}

bool NcclSession::has_ended(NcclCall& call) noexcept {
  const Lock lock(mutex_);
  if (call.state != NcclCall::State::running || failure_) return true;
  try {
    return call.done.has_passed();
  } catch (const Error& error) {
    fail(error, lock);
    return true;
  }
}

void NcclSession::wait(NcclCall& call) {
  {
    const Lock lock(mutex_);
    if (call.state == NcclCall::State::ended) return;
  }
  // When the communicator fails, what runs is stopped, and the event passes.
  call.done.wait();
  const Lock lock(mutex_);
  conclude(call, lock);
  if (call.state == NcclCall::State::failed) throw_failure(lock);
}

void NcclSession::conclude(NcclCall& call, const Lock& lock) {
  if (call.state != NcclCall::State::running) return;
  if (!failure_ && call.slot && !call.is_compared) compare_tags(call, lock);
  call.state = failure_ ? NcclCall::State::failed : NcclCall::State::ended;
  changed_.notify_all();
}

void NcclSession::compare_tags(NcclCall& call, const Lock& lock) {
  call.is_compared = true;
  const std::size_t size = sizeof(CallTag);
  const std::byte* const tags =
      host_tags_in_->data() + *call.slot * size * static_cast<std::size_t>(place_.size);
  for (int rank = 0; rank < place_.size; ++rank) {
    CallTag other;
    std::memcpy(&other, tags + static_cast<std::size_t>(rank) * size, size);
    if (other == call.tag) continue;
    return fail(
        Error(ErrorKind::config,
              "group " + place_.group + ": rank " + std::to_string(place_.rank) + " calls " +
                  to_string(call.tag) + "; rank " + std::to_string(rank) + " calls " + to_string(other),
              "all ranks of a group make the same calls in the same order"),
        lock);
  }
}

void NcclSession::sweep(const Lock& lock) {
  for (const auto& call : under_way_) {
    if (failure_) break;
    if (call->state != NcclCall::State::running) continue;
    if (call->slot && !call->is_compared && call->has_sent_tags && call->tags_are_here.has_passed())
      compare_tags(*call, lock);
    if (call->is_launched && call->done.has_passed()) conclude(*call, lock);
  }
  while (!under_way_.empty() && under_way_.front()->state != NcclCall::State::running) {
    under_way_.pop_front();
    first_since_ = Clock::now();
    changed_.notify_all();
  }
}

void NcclSession::watch() noexcept {
  Lock lock(mutex_);
  while (!is_closing_) {
    try {
      const bool is_quiet = under_way_.empty() || failure_;
      if (failure_ && !is_stopped_) {
        stop(lock);
      } else if (is_quiet && (failure_ || published_ == collectives_)) {
        changed_.wait(lock, [&] { return is_closing_ || (failure_ ? !is_stopped_ : !under_way_.empty()); });
      } else {
        look(lock);
        if (failure_) continue;
        changed_.wait_for(lock, is_quiet ? options_.publish_every : options_.look_every,
                          [&] { return is_closing_ || failure_ || (is_quiet && !under_way_.empty()); });
      }
    } catch (const Error& error) {
      if (!lock.owns_lock()) lock.lock();
      fail(error, lock);
    }
  }
}

void NcclSession::look(Lock& lock) {
  sweep(lock);
  if (failure_) return;
  const auto now = Clock::now();
  if (now - looked_at_board_ >= options_.publish_every) {
    looked_at_board_ = now;
    look_at_board(lock);
  }
  if (under_way_.empty() || failure_) return;
  look_at_nccl(lock);
  if (under_way_.empty() || failure_) return;
  if (Clock::now() - std::max(first_since_, under_way_.front()->began) > options_.call_within.time())
    give_up_on_first(lock);
}

void NcclSession::look_at_board(Lock& lock) {
  const std::uint64_t begun = collectives_;
  const bool is_slow =
      !under_way_.empty() && Clock::now() - under_way_.front()->began >= options_.publish_every;
  lock.unlock();
  std::optional<Error> aborted;
  try {
    board_.publish(begun);
    if (is_slow) aborted = board_.aborted();
  } catch (const Error& error) {
    // The job's store is gone, and the job with it; the calls' own ends and deadlines still hold.
    if (!std::exchange(is_store_lost_, true))
      log::warning(std::string("the job's store no longer answers: ") + error.what());
  }
  lock.lock();
  published_ = begun;
  if (!aborted || failure_) return;
  is_from_board_ = true;
  fail(*aborted, lock);
}

void NcclSession::look_at_nccl(Lock& lock) {
  lock.unlock();
  ncclResult_t state = ncclSuccess;
  std::optional<Error> error;
  {
    const std::lock_guard library(library_);
    const ncclResult_t result = libraries_.nccl.ncclCommGetAsyncError(communicator_, &state);
    if (result != ncclSuccess) state = result;
    if (state != ncclSuccess && state != ncclInProgress)
      error = libraries_.nccl.error(state, "group " + place_.group, communicator_);
  }
  lock.lock();
  if (error) fail(*error, lock);
}

void NcclSession::give_up_on_first(Lock& lock) {
  const std::shared_ptr<NcclCall> late = under_way_.front();
  const std::string what = "group " + place_.group + ": " + late->what + ", has not ended within " +
                           seconds_text(options_.call_within.time()) + ": ";
  if (late->peer) {
    return fail(Error(ErrorKind::timeout, what + "rank " + std::to_string(*late->peer) + " did not come"),
                lock);
  }
  // Whoever has come to this call says so within `publish_every`.
  looked_at_board_ = Clock::now();
  look_at_board(lock);
  changed_.wait_for(lock, options_.publish_every + options_.publish_every / 2,
                    [&] { return is_closing_ || failure_ || late->state != NcclCall::State::running; });
  sweep(lock);
  if (is_closing_ || failure_ || late->state != NcclCall::State::running) return;
  lock.unlock();
  std::vector<CallBoard::Behind> behind;
  try {
    behind = board_.behind(late->number + 1);
  } catch (const Error&) {
    // Without the store nobody is named.
  }
  lock.lock();
  fail(behind.empty() ? Error(ErrorKind::timeout,
                              what + "all ranks have come, so that one has died in it or cannot be reached",
                              "look into the trainers' logs, and at NCCL's with NCCL_DEBUG=INFO")
                      : Error(ErrorKind::timeout, what + to_string(behind) + " did not come",
                              "look into the log of the first of them"),
       lock);
}

void NcclSession::stop(Lock& lock) {
  const Error why = *failure_;
  const bool others_know = is_from_board_;
  lock.unlock();
  {
    const std::lock_guard library(library_);
    const Nccl& nccl = libraries_.nccl;
    const bool is_revoked = nccl.ncclCommRevoke && nccl.ncclCommShrink && [&] {
      const ncclResult_t result = nccl.ncclCommRevoke(communicator_, 0);
      return result == ncclSuccess || result == ncclInProgress;
    }();
    if (!is_revoked) {
      nccl.ncclCommAbort(communicator_);
      communicator_ = nullptr;
    }
  }
  try {
    if (!others_know) board_.abort(why);
  } catch (const Error& error) {
    log::warning(std::string("the other ranks cannot be notified of a failure: ") + error.what());
  }
  lock.lock();
  is_stopped_ = true;
  changed_.notify_all();
}

}  // namespace fleetrun::collective
