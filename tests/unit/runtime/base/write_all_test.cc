#include "runtime/base/write_all.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/base/unique_fd.h"

using namespace fleetrun;

TEST_CASE("more than a pipe holds is written as its reader takes it") {
  int ends[2] = {};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd in(ends[0]), out(ends[1]);
  const std::string sent(300'000, 'x');
  std::string got;
  std::thread reader([&] {
    char block[1'000];
    for (ssize_t count = 0; (count = ::read(in.value(), block, sizeof block)) > 0;)
      got.append(block, static_cast<std::size_t>(count));
  });
  CHECK(write_all(out.value(), sent));
  out.reset();
  reader.join();
  CHECK(got == sent);
}

TEST_CASE("what cannot be written is told, with the reason") {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK_FALSE(write_all(full.value(), "x"));
  CHECK(errno == ENOSPC);
  CHECK(write_all(full.value(), ""));
}
