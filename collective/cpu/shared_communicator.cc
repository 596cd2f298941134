#include "collective/cpu/shared_communicator.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "collective/base/call_thread.h"
#include "collective/cpu/shared_calls.h"
#include "collective/cpu/shared_group.h"
#include "collective/cpu/shared_messages.h"
#include "collective/cpu/shared_rendezvous.h"
#include "collective/cpu/shared_rounds.h"
#include "collective/cpu/shared_watch.h"

namespace fleetrun::collective {
namespace {

/// Tells a process that was forked from the one that made this.
class ForkMark {
 public:
  ForkMark() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    mark_ = static_cast<volatile int*>(page);
    *mark_ = 1;
    static_cast<void>(::madvise(page, 4096, MADV_WIPEONFORK));  // a child reads 0
  }
  ~ForkMark() { ::munmap(const_cast<int*>(mark_), 4096); }
  ForkMark(const ForkMark&) = delete;

  bool is_forked() const noexcept { return *mark_ == 0; }

 private:
  volatile int* mark_;
};

std::size_t whole_pages(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096;
}

SharedShape shape_of(int ranks, const SharedOptions& options) {
  // all_to_all and reduce_scatter divide a slot between the ranks.
  const std::size_t min = static_cast<std::size_t>(ranks) * 256;
  return {ranks, whole_pages(std::max(options.slot_bytes, min)), whole_pages(options.message_bytes)};
}

/// Beyond, every rank reading everything costs more than waiting twice. Two ranks read and write the same
/// bytes of each other's memory either way; all at once is 12 % faster as long as input and output stay in
/// the second cache (2 MiB where it was measured), and slower after that.
std::size_t whole_bytes(int ranks, const SharedOptions& options) {
  if (options.whole_bytes != 0) return options.whole_bytes;
  return ranks <= 2 ? 1024 * 1024 : 32 * 1024;
}

/// A call that start() has made.
class DoneWork final : public Work {
 public:
  bool has_ended() const noexcept override { return true; }
  void wait() override {}
};

class SharedCommunicator final : public Communicator {
 public:
  SharedCommunicator(Place place, std::shared_ptr<SharedSegment> segment, std::vector<SharedPeer> peers,
                     const SharedOptions& options)
      : segment_(std::move(segment)),
        group_(*segment_, std::move(place), options.call_within),
        rounds_(group_),
        calls_(rounds_, whole_bytes(group_.size(), options)),
        messages_(group_) {
    if (!peers.empty()) watch_ = std::make_unique<SharedWatch>(group_, std::move(peers));
    beside_ = std::make_unique<CallThread>([this](const Call& call) { make(call); });
  }

  ~SharedCommunicator() override {
    if (mark_.is_forked()) {
      // The threads and the goodbye are the parent's, and the memory is not mapped here.
      static_cast<void>(beside_.release());
      static_cast<void>(watch_.release());
      static_cast<void>(new std::shared_ptr<SharedSegment>(std::move(segment_)));
      return;
    }
    beside_.reset();
    group_.leave();
    watch_.reset();
  }

  const Place& place() const noexcept override { return group_.place(); }

  void run(const Call& call) override {
    admit(call);
    beside_->finish();
    make(call);
  }

  std::unique_ptr<Work> start(const Call& call) override {
    admit(call);
    if (call.kind == CallKind::send && beside_->is_idle() && messages_.has_room(call)) {
      messages_.send(call);
      return std::make_unique<DoneWork>();
    }
    return beside_->start(call);
  }

  void abort(const Error& why) noexcept override {
    if (!mark_.is_forked()) group_.fail(why);
  }

 private:
  void admit(const Call& call) const {
    if (mark_.is_forked()) {
      throw Error(ErrorKind::config, group_.prefix() + "a communicator cannot be used in a forked process",
                  "make communicators after forking");
    }
    check(call, group_.rank(), group_.size());
  }

  void make(const Call& call) {
    if (call.kind == CallKind::send) return messages_.send(call);
    if (call.kind == CallKind::receive) return messages_.receive(call);
    calls_.run(call);
  }

  ForkMark mark_;
  std::shared_ptr<SharedSegment> segment_;  // of one communicator, or of those of threads
  SharedGroup group_;
  SharedRounds rounds_;
  SharedCalls calls_;
  SharedMessages messages_;
  std::unique_ptr<SharedWatch> watch_;
  std::unique_ptr<CallThread> beside_;
};

}  // namespace

std::unique_ptr<Communicator> make_shared_communicator(Place place, Store& store,
                                                       const SharedOptions& options) {
  SharedRendezvous rendezvous = meet_in_memory(place, store, options.name, shape_of(place.size, options),
                                               options.spins, Store::Clock::now() + options.meet_within);
  return std::make_unique<SharedCommunicator>(std::move(place),
                                              std::make_shared<SharedSegment>(std::move(rendezvous.segment)),
                                              std::move(rendezvous.peers), options);
}

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(const std::string& group, int size,
                                                                     const SharedOptions& options) {
  const auto segment = std::make_shared<SharedSegment>(SharedSegment::make(shape_of(size, options)));
  segment->close_file();
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  segment->head().spins = options.spins && CPU_COUNT(&cores) >= size ? 1 : 0;
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<SharedCommunicator>(Place{group, rank, size}, segment,
                                                         std::vector<SharedPeer>{}, options));
  }
  return ranks;
}

}  // namespace fleetrun::collective
