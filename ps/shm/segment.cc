#include "ps/shm/segment.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <span>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/passed_files.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint64_t kMagic = 0x314d48534c46;  // "FLSHM1"
constexpr std::uint64_t kVersion = 2;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::chrono::microseconds kSpin{20};
/// With fewer, the process that is waited for may need the core.
constexpr int kCoresToSpin = 4;

struct Front {
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;
  std::atomic<std::uint64_t> beats = 0;
  ShmRing requests, answers;
};

constexpr std::uint64_t kFront = (sizeof(Front) + 4095) / 4096 * 4096;

std::uint64_t size_with(std::uint64_t bytes) {
  return kFront + 2 * bytes;
}

Error no_segment(const std::string& why) {
  return Error(ErrorKind::data, "the received memory is not a parameter server's shared memory: " + why);
}

void ring_bell(int bell) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell, &one, sizeof one));
}

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool ShmWriter::put(const ShmEntry& entry, std::uint64_t limit, bool quietly) {
  if (written_ - ring_->taken.load(std::memory_order_acquire) >= limit) return false;
  ring_->entries[written_ % kShmEntries] = entry;
  ring_->written.store(++written_);
  // After the store: the reader says that it sleeps, and then looks once more.
  if (!quietly && ring_->asleep.load() != 0 && ring_->asleep.exchange(0) != 0) ring_bell(bell_);
  return true;
}

ShmReader::ShmReader(ShmRing& ring, int bell) : ring_(&ring), bell_(bell) {
  cpu_set_t cores;
  spins_ = ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= kCoresToSpin;
}

bool ShmReader::is_empty() const noexcept {
  return ring_->written.load() == taken_;
}

std::optional<ShmEntry> ShmReader::take() {
  const std::uint64_t written = ring_->written.load(std::memory_order_acquire);
  if (written == taken_) return std::nullopt;
  if (written - taken_ > kShmEntries) throw no_segment("its counts cannot be");
  const ShmEntry entry = ring_->entries[taken_ % kShmEntries];
  ring_->taken.store(++taken_, std::memory_order_release);
  return entry;
}

bool ShmReader::spin() const noexcept {
  if (!spins_) return false;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (!is_empty()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

ShmWoken ShmReader::wait(int socket, int stop, std::chrono::milliseconds max) {
  if (!is_empty() || spin()) return ShmWoken::entry;
  ring_->asleep.store(1);
  ShmWoken by = ShmWoken::end;
  while (is_empty()) {
    pollfd files[] = {{bell_, POLLIN, 0}, {socket, POLLIN | POLLRDHUP, 0}, {stop, POLLIN, 0}};
    const int ready = ::poll(files, 3, static_cast<int>(max.count()));
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0) {
      by = ShmWoken::nothing;
      break;
    }
    if (files[0].revents != 0) {
      std::uint64_t count = 0;
      static_cast<void>(!::read(bell_, &count, sizeof count));
      // Whoever rang has cleared it, and may have done so for an entry that was taken already,
      // or only released.
      ring_->asleep.store(1);
    }
    // What was written before the end still counts.
    if (files[1].revents != 0 || files[2].revents != 0) break;
  }
  ring_->asleep.store(0);
  return is_empty() ? by : ShmWoken::entry;
}

ShmSegment ShmSegment::make(std::uint64_t bytes) {
  const std::string doing = "share memory with a trainer";
  ShmFiles files;
  files.memory.reset(check_errno(::memfd_create("fleetrun parameters", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                                 "memfd_create", doing));
  check_errno(::ftruncate(files.memory.value(), static_cast<off_t>(size_with(bytes))), "ftruncate", doing);
  check_errno(::fcntl(files.memory.value(), F_ADD_SEALS, kSeals), "F_ADD_SEALS", doing);
  files.server_bell.reset(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", doing));
  files.trainer_bell.reset(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", doing));
  ShmSegment out(std::move(files), bytes);
  Front* front = new (out.base_) Front{};
  front->magic = kMagic;
  front->version = kVersion;
  front->bytes = bytes;
  return out;
}

ShmSegment ShmSegment::attach(ShmFiles files) {
  struct stat status {};
  if (::fstat(files.memory.value(), &status) != 0) throw no_segment(std::strerror(errno));
  const int seals = ::fcntl(files.memory.value(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) throw no_segment("its size is not sealed");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kFront) throw no_segment("it is too small");
  ShmSegment out(std::move(files), (size - kFront) / 2);
  const Front& front = *reinterpret_cast<const Front*>(out.base_);
  if (front.magic != kMagic || front.version != kVersion) throw no_segment("its version is another");
  if (front.bytes != out.bytes_ || size != size_with(out.bytes_)) throw no_segment("its sizes disagree");
  return out;
}

ShmSegment::ShmSegment(ShmFiles files, std::uint64_t bytes) : files_(std::move(files)), bytes_(bytes) {
  void* base = ::mmap(nullptr, size_with(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      files_.memory.value(), 0);
  if (base == MAP_FAILED)
    throw Error(ErrorKind::host, std::string("shared memory cannot be mapped: ") + std::strerror(errno));
  base_ = static_cast<std::byte*>(base);
  static_cast<void>(::madvise(base, size_with(bytes), MADV_DONTDUMP));
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : files_(std::move(other.files_)), bytes_(other.bytes_), base_(std::exchange(other.base_, nullptr)) {}

ShmSegment::~ShmSegment() {
  if (base_) ::munmap(base_, size_with(bytes_));
}

ShmRing& ShmSegment::requests() const noexcept {
  return reinterpret_cast<Front*>(base_)->requests;
}

std::atomic<std::uint64_t>& ShmSegment::beats() const noexcept {
  return reinterpret_cast<Front*>(base_)->beats;
}

ShmRing& ShmSegment::answers() const noexcept {
  return reinterpret_cast<Front*>(base_)->answers;
}

std::span<std::byte> ShmSegment::request_bytes() const noexcept {
  return {base_ + kFront, bytes_};
}

std::span<std::byte> ShmSegment::answer_bytes() const noexcept {
  return {base_ + kFront + bytes_, bytes_};
}

std::span<std::byte> ShmSegment::part(std::span<std::byte> half, const ShmEntry& entry) {
  if (entry.offset > half.size() || entry.size > half.size() - entry.offset || entry.offset % 8 != 0)
    throw no_segment("a message lies outside of it");
  return half.subspan(entry.offset, entry.size);
}

void ShmSegment::drop_pages(std::span<std::byte> bytes) noexcept {
  static_cast<void>(::madvise(bytes.data(), bytes.size(), MADV_REMOVE));
}

void send_files(int socket, const ShmFiles& files) {
  const int numbers[] = {files.memory.value(), files.server_bell.value(), files.trainer_bell.value()};
  const auto word = std::as_bytes(std::span(&kMagic, 1));
  check_errno(static_cast<int>(send_with_files(socket, word, numbers)), "sendmsg", "hand shared memory over",
              ErrorKind::network);
}

std::optional<ShmFiles> receive_files(int socket) {
  std::uint64_t word = 0;
  auto [count, files] = receive_with_files(socket, std::as_writable_bytes(std::span(&word, 1)), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (count != sizeof word || word != kMagic || files.size() != 3)
    throw Error(ErrorKind::network, "no shared memory came from the server");
  return ShmFiles{std::move(files[0]), std::move(files[1]), std::move(files[2])};
}

}  // namespace fleetrun::ps
