#include "collective/nccl/nccl_communicator.h"

#include <algorithm>

#include "collective/nccl/nccl_session.h"

namespace fleetrun::collective {
namespace {

std::shared_ptr<NcclSession> shrunk(NcclSession& parent, std::vector<int> lost) {
  Place place = parent.place();
  std::sort(lost.begin(), lost.end());
  std::string prefix = parent.prefix() + "/without";
  for (const int rank : lost) {
    if (rank == place.rank || rank < 0 || rank >= parent.place().size) {
      throw Error(ErrorKind::config, "group " + place.group + " without rank " + std::to_string(rank) +
                                         ": this process is rank " + std::to_string(place.rank) + " of " +
                                         std::to_string(parent.place().size));
    }
    prefix += " " + std::to_string(rank);
  }
  place.rank -= static_cast<int>(std::lower_bound(lost.begin(), lost.end(), place.rank) - lost.begin());
  place.size -= static_cast<int>(lost.size());
  return std::make_shared<NcclSession>(parent.libraries(), place, parent.store(), prefix, parent.options(),
                                       NcclSession::Parent{parent, lost});
}

}  // namespace

NcclWork::NcclWork(std::shared_ptr<NcclSession> session, std::shared_ptr<NcclCall> call)
    : session_(std::move(session)), call_(std::move(call)) {}

NcclWork::~NcclWork() {
  try {
    wait();
  } catch (const Error&) {
    // As Work says: whoever wants to know waits.
  }
}

bool NcclWork::has_ended() const noexcept {
  return session_->has_ended(*call_);
}

void NcclWork::wait() {
  session_->wait(*call_);
}

void NcclWork::hold(cudaStream_t stream) const {
  session_->hold(*call_, stream);
}

NcclCommunicator::NcclCommunicator(const GpuLibraries& libraries, Place place, Store& store,
                                   const std::string& prefix, const NcclOptions& options)
    : session_(
          std::make_shared<NcclSession>(libraries, std::move(place), store, prefix, options, std::nullopt)) {}

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclSession> session) : session_(std::move(session)) {}

NcclCommunicator::~NcclCommunicator() = default;

const Place& NcclCommunicator::place() const noexcept {
  return session_->place();
}

void NcclCommunicator::run(const Call& call) {
  start(call)->wait();
}

std::unique_ptr<Work> NcclCommunicator::start(const Call& call) {
  return start_group({&call, 1});
}

std::unique_ptr<NcclWork> NcclCommunicator::start_group(std::span<const Call> calls) {
  const NcclSession::Part part{session_.get(), calls};
  return std::make_unique<NcclWork>(session_, NcclSession::start({&part, 1}).front());
}

void NcclCommunicator::abort(const Error& why) noexcept {
  session_->fail(why);
}

std::unique_ptr<NcclCommunicator> NcclCommunicator::shrink(std::vector<int> lost) {
  return std::unique_ptr<NcclCommunicator>(new NcclCommunicator(shrunk(*session_, std::move(lost))));
}

std::shared_ptr<Stream> NcclCommunicator::stream() const {
  return session_->stream();
}

}  // namespace fleetrun::collective
