// How an NCCL communicator is made, how calls are put on its stream, and how it ends. Non-blocking
// (config.blocking = 0): NCCL answers ncclInProgress and is asked, with growing pauses, until it has done
// what it was told; so that no rank hangs in NCCL where another one is missing.
// nccl_watch.cc has the other half of the class.
#include "collective/nccl/nccl_session.h"

#include <algorithm>
#include <cstring>

#include "collective/base/call_thread.h"
#include "runtime/base/content_digest.h"

namespace fleetrun::collective {
namespace {

constexpr std::size_t kSlots = 64;  // calls under way at once
constexpr std::chrono::microseconds kFirstPause{10}, kLongestPause{1000};
constexpr std::chrono::seconds kFinalizeWithin{5};

bool is_between_two(CallKind kind) {
  return kind == CallKind::send || kind == CallKind::receive;
}

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// Asks until NCCL has done what `communicator` was told. `go_on` throws when nobody wants it any more.
template <class GoOn>
void settle_when(const Nccl& nccl, std::mutex& library, ncclComm_t communicator, const GoOn& go_on) {
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    ncclResult_t state = ncclInProgress;
    {
      const std::lock_guard lock(library);
      go_on(std::chrono::microseconds{0});
      nccl.check(nccl.ncclCommGetAsyncError(communicator, &state), "asking NCCL how it goes", communicator);
    }
    if (state == ncclSuccess) return;
    nccl.check(state, "communication between GPUs", communicator);
    go_on(pause);
  }
}

/// Of the collective calls among `calls`; of several it is the first's, with a digest of all.
std::optional<CallTag> tag_of_group(std::span<const Call> calls, std::uint64_t number) {
  std::optional<CallTag> first;
  ContentDigest digest;
  std::size_t collectives = 0;
  for (const Call& call : calls) {
    if (is_between_two(call.kind)) continue;
    const CallTag tag = tag_of(call, number);
    if (!first) first = tag;
    digest.add(std::as_bytes(std::span(&tag, 1)));
    ++collectives;
  }
  if (collectives > 1) first->counts_digest = digest.value() | 1;
  return first;
}

}  // namespace

NcclSession::NcclSession(const GpuLibraries& libraries, Place place, Store& store, std::string prefix,
                         NcclOptions options, std::optional<Parent> parent)
    : libraries_(libraries),
      place_(std::move(place)),
      store_(store),
      prefix_(std::move(prefix)),
      options_(std::move(options)),
      board_(store, prefix_, place_) {
  if (options_.device < 0 || options_.device >= libraries_.cuda.devices()) {
    throw Error(ErrorKind::host,
                "rank " + std::to_string(place_.rank) + " is for device " + std::to_string(options_.device) +
                    ", and there are " + std::to_string(libraries_.cuda.devices()),
                "check --gpus and CUDA_VISIBLE_DEVICES");
  }
  const Clock::time_point deadline = Clock::now() + options_.meet_within;
  const bool shrinks = parent && parent->session.can_be_shrunk(deadline);
  board_.meet("NCCL " + nccl_version_text(libraries_.nccl.version()) +
                  (options_.checks_calls ? ", checking calls" : ", not checking calls") +
                  (shrinks ? ", shrunk" : ""),
              deadline);
  const CurrentDevice device(libraries_.cuda, options_.device);
  stream_ = options_.stream ? options_.stream : std::make_shared<Stream>(libraries_.cuda);
  const std::size_t own = kSlots * sizeof(CallTag), all = own * static_cast<std::size_t>(place_.size);
  tags_out_.emplace(libraries_.cuda, own, GpuMemory::Where::device);
  tags_in_.emplace(libraries_.cuda, all, GpuMemory::Where::device);
  host_tags_out_.emplace(libraries_.cuda, own, GpuMemory::Where::host);
  host_tags_in_.emplace(libraries_.cuda, all, GpuMemory::Where::host);
  word_.emplace(libraries_.cuda, sizeof(std::int32_t), GpuMemory::Where::device);
  try {
    if (shrinks)
      shrink_from(*parent, deadline);
    else
      make_communicator(deadline);
  } catch (...) {
    if (communicator_) libraries_.nccl.ncclCommAbort(communicator_);
    throw;
  }
  watcher_ = std::thread([this] { watch(); });
}

void NcclSession::make_communicator(Clock::time_point deadline) {
  std::string id_bytes;
  if (place_.rank == 0) {
    ncclUniqueId id;
    libraries_.nccl.check(libraries_.nccl.ncclGetUniqueId(&id), "beginning a communicator");
    id_bytes.assign(id.internal, sizeof id.internal);
  }
  id_bytes = board_.share("unique id", id_bytes, deadline);
  ncclUniqueId id;
  if (id_bytes.size() != sizeof id.internal) {
    throw Error(ErrorKind::network, "rank 0's unique id of group " + place_.group + " has " +
                                        std::to_string(id_bytes.size()) + " bytes instead of " +
                                        std::to_string(sizeof id.internal));
  }
  std::memcpy(id.internal, id_bytes.data(), sizeof id.internal);
  ncclConfig_t config = non_blocking();
  const std::string what = "making group " + place_.group + " of " + std::to_string(place_.size) + " GPUs";
  libraries_.nccl.check(
      libraries_.nccl.ncclCommInitRankConfig(&communicator_, place_.size, id, place_.rank, &config), what);
  while_doing(what, [&] { settle(deadline); });
}

bool NcclSession::can_be_shrunk(Clock::time_point deadline) {
  Lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return !failure_ || is_stopped_; });
  return communicator_ && libraries_.nccl.ncclCommShrink && libraries_.nccl.ncclCommRevoke;
}

void NcclSession::shrink_from(const Parent& parent, Clock::time_point deadline) {
  const Nccl& nccl = libraries_.nccl;
  NcclSession& old = parent.session;
  const auto until_deadline = [&](std::chrono::microseconds pause) {
    if (Clock::now() > deadline)
      throw Error(ErrorKind::timeout, "shrinking group " + place_.group + " did not end in time");
    if (pause.count() == 0) return;
    std::unique_lock lock(old.mutex_);
    old.changed_.wait_for(lock, pause);
  };
  settle_when(nccl, old.library_, old.communicator_, until_deadline);
  std::vector<int> lost = parent.lost;
  ncclConfig_t config = non_blocking();
  {
    const std::lock_guard lock(old.library_);
    nccl.check(nccl.ncclCommShrink(old.communicator_, lost.data(), static_cast<int>(lost.size()),
                                   &communicator_, &config, 0),
               "shrinking group " + place_.group, old.communicator_);
  }
  settle_when(nccl, old.library_, old.communicator_, until_deadline);  // until then there is no new one
  settle(deadline);
}

NcclSession::~NcclSession() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  close();
}

void NcclSession::close() noexcept {
  if (!communicator_) return;
  const Nccl& nccl = libraries_.nccl;
  try {
    const CurrentDevice device(libraries_.cuda, options_.device);
    if (!failure_) {
      nccl.check(nccl.ncclCommFinalize(communicator_), "ending a communicator", communicator_);
      settle(Clock::now() + kFinalizeWithin);
      nccl.ncclCommDestroy(communicator_);
      return;
    }
  } catch (const Error&) {
    // The others are gone; what is left of it here is aborted.
  }
  nccl.ncclCommAbort(communicator_);
}

NcclTarget NcclSession::target() const {
  return {libraries_.nccl, communicator_, stream_->value(), place_};
}

void NcclSession::settle(std::optional<Clock::time_point> deadline) {
  settle_when(libraries_.nccl, library_, communicator_, [&](std::chrono::microseconds pause) {
    Lock lock(mutex_);
    throw_failure(lock);
    if (pause.count() == 0) return;
    if (deadline && Clock::now() > *deadline) {
      throw Error(ErrorKind::timeout, "group " + place_.group + ": NCCL did not answer in time",
                  "NCCL_DEBUG=INFO in the trainers' environment shows what it waits for");
    }
    changed_.wait_for(lock, pause);
  });
}

std::vector<std::shared_ptr<NcclCall>> NcclSession::start(std::span<const Part> parts) {
  std::vector<std::shared_ptr<NcclCall>> started;
  for (const Part& part : parts) {
    for (const Call& call : part.calls) {
      check(call, part.session->place_.rank, part.session->place_.size);
      check_for_nccl(call);
    }
  }
  if (parts.empty()) return started;
  const GpuLibraries& libraries = parts.front().session->libraries_;
  const CurrentDevice device(libraries.cuda, parts.front().session->options_.device);
  /// One group over all parts, for which `each` adds what it has.
  const auto in_group = [&](const auto& each) {
    std::vector<Lock> locks;
    for (const Part& part : parts) {
      const bool is_locked =
          std::any_of(parts.data(), &part, [&](const Part& other) { return other.session == part.session; });
      if (!is_locked) locks.emplace_back(part.session->library_);
      const Lock lock(part.session->mutex_);
      part.session->throw_failure(lock);
    }
    libraries.nccl.check(libraries.nccl.ncclGroupStart(), "starting a group of calls");
    std::optional<Error> wrong;
    try {
      for (std::size_t i = 0; i < parts.size(); ++i) each(*parts[i].session, parts[i].calls, *started[i]);
    } catch (const Error& error) {
      wrong = error;
    }
    const ncclResult_t result = libraries.nccl.ncclGroupEnd();
    if (wrong) throw *wrong;
    libraries.nccl.check(result, started.front()->what);
  };
  const auto settle_all = [&] {
    for (const Part& part : parts) part.session->settle({});
  };
  try {
    for (const Part& part : parts) started.push_back(part.session->begin(part.calls));
    if (std::any_of(started.begin(), started.end(),
                    [](const auto& call) { return call->slot.has_value(); })) {
      in_group([](NcclSession& session, auto, NcclCall& call) { session.send_tags(call); });
      settle_all();
      for (std::size_t i = 0; i < parts.size(); ++i) parts[i].session->receive_tags(*started[i]);
    }
    in_group([](NcclSession& session, std::span<const Call> calls, NcclCall&) {
      for (const Call& call : calls) session.add(call);
    });
    settle_all();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      started[i]->done.record(parts[i].session->stream_->value());
      started[i]->is_launched = true;
    }
  } catch (const Error& error) {
    for (const Part& part : parts) part.session->fail(error);
    throw;
  }
  return started;
}

std::shared_ptr<NcclCall> NcclSession::begin(std::span<const Call> calls) {
  const auto call = std::make_shared<NcclCall>(libraries_.cuda);
  Lock lock(mutex_);
  throw_failure(lock);
  sweep(lock);
  changed_.wait(lock, [&] { return failure_ || under_way_.size() < kSlots; });
  throw_failure(lock);
  call->began = Clock::now();
  call->number = collectives_;
  if (const auto tag = tag_of_group(calls, collectives_)) {
    call->tag = *tag;
    call->what = to_string(tag_of(calls.front(), collectives_));
    ++collectives_;
    if (options_.checks_calls && place_.size > 1) call->slot = begun_ % kSlots;
  } else if (!calls.empty()) {
    call->what = to_string(calls.front()) +
                 (calls.front().kind == CallKind::send ? " to rank " : " from rank ") +
                 std::to_string(calls.front().root);
    call->peer = calls.front().root;
  }
  if (calls.size() > 1) call->what += " and " + std::to_string(calls.size() - 1) + " more";
  ++begun_;
  if (under_way_.empty()) first_since_ = call->began;
  under_way_.push_back(call);
  changed_.notify_all();
  lock.unlock();

  Event inputs_are_there(libraries_.cuda);
  void* const caller = calls.empty() ? nullptr : calls.front().stream;
  inputs_are_there.record(caller ? static_cast<cudaStream_t>(caller) : options_.caller_stream);
  inputs_are_there.hold(stream_->value());
  return call;
}

void NcclSession::send_tags(NcclCall& call) {
  if (!call.slot) return;
  const std::size_t own = *call.slot * sizeof(CallTag), all = own * static_cast<std::size_t>(place_.size);
  std::memcpy(host_tags_out_->data() + own, &call.tag, sizeof(CallTag));
  libraries_.cuda.check(
      libraries_.cuda.cudaMemcpyAsync(tags_out_->data() + own, host_tags_out_->data() + own, sizeof(CallTag),
                                      cudaMemcpyHostToDevice, stream_->value()),
      "sending what is called");
  libraries_.nccl.check(
      libraries_.nccl.ncclAllGather(tags_out_->data() + own, tags_in_->data() + all, sizeof(CallTag),
                                    ncclUint8, communicator_, stream_->value()),
      "comparing calls", communicator_);
}

void NcclSession::receive_tags(NcclCall& call) {
  if (!call.slot) return;
  const std::size_t bytes = sizeof(CallTag) * static_cast<std::size_t>(place_.size), at = *call.slot * bytes;
  libraries_.cuda.check(libraries_.cuda.cudaMemcpyAsync(host_tags_in_->data() + at, tags_in_->data() + at,
                                                        bytes, cudaMemcpyDeviceToHost, stream_->value()),
                        "receiving what is called");
  call.tags_are_here.record(stream_->value());
  call.has_sent_tags = true;
}

void NcclSession::add(const Call& call) {
  Call changed = call;
  changed.input = input_apart(call);
  add_to_group(target(), changed, word_->data());
}

/// The call's input; a copy of it where NCCL needs it to be apart from the output.
const void* NcclSession::input_apart(const Call& call) {
  if (call.kind != CallKind::all_to_all || call.input != call.output || !call.input) return call.input;
  std::size_t elements = call.count * static_cast<std::size_t>(place_.size);
  if (!call.send_counts.empty()) {
    elements = 0;
    for (const std::size_t count : call.send_counts) elements += count;
  }
  const std::size_t bytes = elements * size_of(call.type);
  if (bytes > scratch_bytes_) {
    // Giving back device memory waits for the calls that use it.
    scratch_.reset();
    scratch_bytes_ = 0;
    scratch_.emplace(libraries_.cuda, bytes, GpuMemory::Where::device);
    scratch_bytes_ = bytes;
  }
  libraries_.cuda.check(libraries_.cuda.cudaMemcpyAsync(scratch_->data(), call.input, bytes,
                                                        cudaMemcpyDeviceToDevice, stream_->value()),
                        "copying an input");
  return scratch_->data();
}

}  // namespace fleetrun::collective
