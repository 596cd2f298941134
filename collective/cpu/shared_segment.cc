#include "collective/cpu/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::collective {
namespace {

constexpr std::uint64_t kSegmentMagic = 0x314c4f4353464c46;  // "FLFSCOL1"
constexpr std::uint64_t kVersion = 1;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kPage = 4096;

Error no_segment(const std::string& why) {
  return Error(ErrorKind::data, "the received memory is not shared memory of a group of ranks: " + why);
}

/// Its pages are there afterwards: a write to them cannot fail for want of memory.
void reserve(int file, std::size_t bytes) {
  int failure = 0;
  do {
    failure = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (failure == EINTR);
  if (failure == 0) return;
  throw Error(ErrorKind::host,
              std::to_string(bytes) + " bytes of shared memory cannot be had: " + std::strerror(failure),
              "free memory, or make the group's slots smaller");
}

}  // namespace

std::size_t SharedSegment::front_bytes(int ranks) {
  return (kHeadBytes + static_cast<std::size_t>(ranks) * sizeof(SharedRank) + kPage - 1) / kPage * kPage;
}

std::size_t SharedSegment::bytes_of(const SharedShape& shape) {
  return front_bytes(shape.ranks) + static_cast<std::size_t>(shape.ranks) *
                                        (kSlots * shape.slot_bytes + kMessageBuffers * shape.message_bytes);
}

SharedSegment SharedSegment::make(const SharedShape& shape) {
  const std::string doing = "share memory between ranks";
  UniqueFd file(
      check_errno(::memfd_create("fleetrun ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create", doing));
  const std::size_t bytes = bytes_of(shape);
  reserve(file.value(), bytes);
  check_errno(::fcntl(file.value(), F_ADD_SEALS, kSeals), "F_ADD_SEALS", doing);
  SharedSegment out(std::move(file), bytes);
  SharedHead& head = out.head();
  head.magic = kSegmentMagic;
  head.version = kVersion;
  head.bytes = bytes;
  head.slot_bytes = shape.slot_bytes;
  head.message_bytes = shape.message_bytes;
  head.ranks = shape.ranks;
  out.place(shape);
  return out;
}

SharedSegment SharedSegment::attach(UniqueFd file) {
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) throw no_segment(std::strerror(errno));
  const int seals = ::fcntl(file.value(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) throw no_segment("its size is not sealed");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < front_bytes(1)) throw no_segment("it is too small");
  SharedSegment out(std::move(file), bytes);
  const SharedHead& head = out.head();
  if (head.magic != kSegmentMagic || head.version != kVersion) throw no_segment("its version is another");
  const SharedShape shape{head.ranks, head.slot_bytes, head.message_bytes};
  if (head.bytes != bytes || head.ranks < 1 || bytes_of(shape) != bytes)
    throw no_segment("its sizes disagree");
  out.place(shape);
  return out;
}

SharedSegment::SharedSegment(UniqueFd file, std::size_t bytes) : file_(std::move(file)), bytes_(bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.value(), 0);
  if (base == MAP_FAILED)
    throw Error(ErrorKind::host, std::string("shared memory cannot be mapped: ") + std::strerror(errno));
  base_ = static_cast<std::byte*>(base);
  // Neither core dumps nor the children that data loaders fork keep it.
  static_cast<void>(::madvise(base, bytes, MADV_DONTDUMP));
  static_cast<void>(::madvise(base, bytes, MADV_DONTFORK));
}

void SharedSegment::place(const SharedShape& shape) noexcept {
  slots_ = base_ + front_bytes(shape.ranks);
  slot_bytes_ = shape.slot_bytes;
  message_bytes_ = shape.message_bytes;
  rank_bytes_ = kSlots * slot_bytes_ + kMessageBuffers * message_bytes_;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(other.bytes_),
      base_(std::exchange(other.base_, nullptr)),
      slots_(other.slots_),
      slot_bytes_(other.slot_bytes_),
      message_bytes_(other.message_bytes_),
      rank_bytes_(other.rank_bytes_) {}

SharedSegment::~SharedSegment() {
  if (base_) ::munmap(base_, bytes_);
}

}  // namespace fleetrun::collective
