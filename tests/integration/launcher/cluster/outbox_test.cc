#include "launcher/cluster/outbox.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <sys/socket.h>

#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

struct Pair {
  UniqueFd here, there;
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
  /// What has come.
  std::string read() const {
    std::string all;
    char piece[4096];
    for (ssize_t count = 0; (count = ::recv(there.value(), piece, sizeof piece, 0)) > 0;)
      all.append(piece, static_cast<std::size_t>(count));
    return all;
  }
};

}  // namespace

TEST_CASE("small and long, own and shared bytes leave in the order in which they came") {
  Pair pair;
  Outbox outbox;
  std::string expected, got;
  const auto list = std::make_shared<const std::string>(std::string(300'000, 'l'));
  for (int i = 0; i < 40; ++i) {
    const std::string small = "small " + std::to_string(i) + ";";
    outbox.add(small);
    outbox.add(list);
    outbox.add(std::make_shared<const std::string>("short and shared;"));
    outbox.add(std::string_view());
    expected += small + *list + "short and shared;";
  }
  CHECK(outbox.size() == expected.size());
  while (!outbox.empty()) {
    const bool wrote = outbox.write_some(pair.here.value());
    CHECK((wrote || errno == EAGAIN));
    got += pair.read();
  }
  CHECK(got == expected);
  CHECK(list.use_count() == 1);  // it keeps none of it
}

TEST_CASE("a socket whose other end is gone takes nothing") {
  Pair pair;
  Outbox outbox;
  outbox.add("bytes");
  pair.there.reset();
  CHECK_FALSE(outbox.write_some(pair.here.value()));
  CHECK(errno == EPIPE);
  outbox.clear();
  CHECK(outbox.empty());
}
