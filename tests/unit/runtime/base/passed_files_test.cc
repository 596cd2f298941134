#include "runtime/base/passed_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

using namespace fleetrun;

namespace {

struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
  UniqueFd here, there;
};

constexpr std::array kBytes = {std::byte{1}, std::byte{2}, std::byte{3}};

ino_t inode_of(int file) {
  struct stat found = {};
  REQUIRE(::fstat(file, &found) == 0);
  return found.st_ino;
}

}  // namespace

TEST_CASE("files arrive in their order, beside the bytes, and are closed on exec") {
  const Pair pair;
  const UniqueFd null(::open("/dev/null", O_RDONLY)), zero(::open("/dev/zero", O_RDONLY));
  const int files[] = {null.value(), zero.value(), null.value()};
  CHECK(send_with_files(pair.here.value(), kBytes, files) == 3);
  std::array<std::byte, 8> bytes;
  const WithFiles got = receive_with_files(pair.there.value(), bytes, 0);
  CHECK(got.count == 3);
  CHECK(bytes[2] == std::byte{3});
  REQUIRE(got.files.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(inode_of(got.files[i].value()) == inode_of(files[i]));
    CHECK((::fcntl(got.files[i].value(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("bytes without files, nothing yet, and the end") {
  Pair pair;
  std::array<std::byte, 8> bytes;
  CHECK(receive_with_files(pair.there.value(), bytes, MSG_DONTWAIT).count == -1);
  CHECK(errno == EAGAIN);
  CHECK(send_with_files(pair.here.value(), kBytes, {}) == 3);
  const WithFiles got = receive_with_files(pair.there.value(), bytes, 0);
  CHECK(got.count == 3);
  CHECK(got.files.empty());
  pair.here.reset();
  CHECK(receive_with_files(pair.there.value(), bytes, 0).count == 0);
}

TEST_CASE("as many files as a message may have, and one more") {
  const Pair pair;
  std::vector<int> files(kMaxPassedFiles + 1, pair.here.value());
  CHECK(send_with_files(pair.here.value(), kBytes, files) == -1);
  CHECK(errno == EINVAL);
  files.pop_back();
  CHECK(send_with_files(pair.here.value(), kBytes, files) == 3);
  std::array<std::byte, 8> bytes;
  CHECK(receive_with_files(pair.there.value(), bytes, 0).files.size() == kMaxPassedFiles);
}
