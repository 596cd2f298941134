#include "collective/cpu/shared_segment.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "runtime/base/error.h"

namespace fleetrun::collective {
namespace {

std::string refusal(UniqueFd file) {
  try {
    SharedSegment::attach(std::move(file));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "";
}

UniqueFd new_file(off_t bytes) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(file.value(), bytes) == 0);
  return file;
}

void seal(const UniqueFd& file) {
  REQUIRE(::fcntl(file.value(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
}

TEST_CASE("what is written into a segment is there where it is attached; slots and messages lie apart") {
  SharedSegment made = SharedSegment::make({3, 8192, 4096});
  SharedSegment attached = SharedSegment::attach(UniqueFd(::dup(made.file())));
  CHECK(attached.ranks() == 3);
  CHECK(attached.slot_bytes() == 8192);
  CHECK(attached.message_bytes() == 4096);
  int written = 0;
  for (int rank = 0; rank < 3; ++rank) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      made.slot(rank, i)[0] = made.slot(rank, i)[8191] = static_cast<std::byte>(++written);
      made.message(rank, i)[0] = made.message(rank, i)[4095] = static_cast<std::byte>(++written);
    }
    made.rank(rank).lines[1].stamp = static_cast<std::uint32_t>(100 + rank);
  }
  int read = 0;
  for (int rank = 0; rank < 3; ++rank) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      ++read;
      CHECK(attached.slot(rank, i)[0] == static_cast<std::byte>(read));
      CHECK(attached.slot(rank, i)[8191] == static_cast<std::byte>(read));
      ++read;
      CHECK(attached.message(rank, i)[0] == static_cast<std::byte>(read));
      CHECK(attached.message(rank, i)[4095] == static_cast<std::byte>(read));
    }
    CHECK(attached.rank(rank).lines[1].stamp == static_cast<std::uint32_t>(100 + rank));
  }
}

TEST_CASE("its size cannot be changed any more, by anybody") {
  const SharedSegment made = SharedSegment::make({1, 4096, 4096});
  CHECK(::ftruncate(made.file(), 0) != 0);
  CHECK(::ftruncate(made.file(), 1 << 20) != 0);
}

TEST_CASE("what is no segment is refused") {
  const std::string begin = "the received memory is not shared memory of a group of ranks: ";
  CHECK(refusal(new_file(1 << 20)) == begin + "its size is not sealed");
  UniqueFd small = new_file(100);
  seal(small);
  CHECK(refusal(std::move(small)) == begin + "it is too small");
  UniqueFd empty = new_file(1 << 20);
  seal(empty);
  CHECK(refusal(std::move(empty)) == begin + "its version is another");
  const SharedSegment made = SharedSegment::make({2, 4096, 4096});
  made.head().ranks = 3;
  CHECK(refusal(UniqueFd(::dup(made.file()))) == begin + "its sizes disagree");
}

}  // namespace
}  // namespace fleetrun::collective
