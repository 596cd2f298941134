// The job's store over loopback: ranks as threads and as processes, strangers, wrong secrets, and deaths.
#include "collective/store/tcp_store.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>

#include "collective/store/store_server.h"
#include "runtime/base/error.h"
#include "tests/support/child_process.h"
#include "tests/support/errors.h"
#include "tests/support/meddler.h"
#include "tests/support/port_lease.h"
#include "tests/support/rank_threads.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace std::chrono_literals;
using tests::contains;
using tests::error_of;
using tests::run_ranks;

namespace {

using Clock = Store::Clock;

/// What a rank has heard, to be waited for.
class Heard {
 public:
  void note(const StoreNews& news) {
    const std::lock_guard lock(mutex_);
    news_.push_back(news);
    changed_.notify_all();
  }
  /// The first of this kind.
  StoreNews await(StoreNews::Kind kind) {
    std::unique_lock lock(mutex_);
    const StoreNews* found = nullptr;
    changed_.wait_for(lock, 20s, [&] {
      for (const StoreNews& news : news_)
        if (news.kind == kind) found = &news;
      return found != nullptr;
    });
    REQUIRE(found);
    return *found;
  }
  bool has(StoreNews::Kind kind) {
    const std::lock_guard lock(mutex_);
    for (const StoreNews& news : news_)
      if (news.kind == kind) return true;
    return false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StoreNews> news_;
};

struct Job {
  tests::PortLease port;
  Access access{Secret::random(), "/job/secret"};

  TcpStoreOptions options(int rank, int size, Heard* heard = nullptr) const {
    TcpStoreOptions options;
    options.endpoint = port.endpoint();
    options.rank = rank;
    options.size = size;
    options.attempt = "run 1";
    options.access = access;
    options.meet_within = 20s;
    if (heard) options.on_news = [heard](const StoreNews& news) { heard->note(news); };
    return options;
  }
};

}  // namespace

TEST_CASE("ranks meet whoever comes first, and read what others set") {
  const Job job;
  run_ranks(5, [&](int rank) {
    TcpStore store(job.options(rank, 5));
    store.set("address/" + std::to_string(rank), "at " + std::to_string(rank));
    for (int other = 0; other < 5; ++other)
      CHECK(store.wait("address/" + std::to_string(other), Clock::now() + 20s) ==
            "at " + std::to_string(other));
    store.add("sum", rank);
    const auto all = store.gather("done", std::to_string(rank * rank), false, Clock::now() + 20s);
    REQUIRE(all.size() == 5);
    for (const auto& [other, value] : all) CHECK(value == std::to_string(other * other));
    CHECK(store.add("sum", 0) == 10);
    CHECK(store.address() == "127.0.0.1");
    store.gather("leave", "", false, Clock::now() + 20s);
  });
}

TEST_CASE("values of any bytes and of a megabyte come over whole") {
  const Job job;
  std::string value(std::size_t{1} << 20, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 31);
  run_ranks(2, [&](int rank) {
    TcpStore store(job.options(rank, 2));
    if (rank == 1) store.set("large", value);
    CHECK(store.wait("large", Clock::now() + 20s) == value);
    store.gather("leave", "", false, Clock::now() + 20s);
  });
}

TEST_CASE("what nobody sets is a timeout that names it; what two ranks set differently is an error") {
  const Job job;
  TcpStore store(job.options(0, 1));
  const Error late = error_of([&] { store.wait("world/a", Clock::now() + 50ms); });
  CHECK(late.kind() == ErrorKind::timeout);
  CHECK(contains(late.what(), "nobody has set world/a within 50 ms"));
  store.set("a", "1");
  const Error differs = error_of([&] { store.set("a", "2"); });
  CHECK(differs.kind() == ErrorKind::config);
  CHECK(contains(differs.what(), "the ranks disagree on a: '1' and '2'"));
}

TEST_CASE("ranks that never come are named at the deadline") {
  const Job job;
  run_ranks(2, [&](int rank) {
    TcpStore store(job.options(rank, 4));
    const Error error = error_of([&] { store.gather("meet", "", false, Clock::now() + 300ms); });
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(contains(error.what(), "rank 2, rank 3 have not come within 300 ms"));
    CHECK(contains(error.hint(), "look at their logs"));
    store.set(std::to_string(rank), "");
    store.wait(std::to_string(1 - rank),
               Clock::now() + 20s);  // so that nobody leaves before the other has asked
  });
}

TEST_CASE("another secret, another size and another start of the job are refused on both sides by name") {
  const Job job;
  TcpStore store(job.options(0, 2));
  TcpStoreOptions other = job.options(1, 2);
  other.access = {Secret::random(), "/other/secret"};
  const Error secret = error_of([&] { TcpStore wrong(other); });
  CHECK(secret.kind() == ErrorKind::config);
  CHECK(contains(secret.what(), "/other/secret"));
  CHECK(contains(secret.hint(), "let one fleetrun start all trainers"));

  const Error size = error_of([&] { TcpStore wrong(job.options(1, 3)); });
  CHECK(size.kind() == ErrorKind::config);
  CHECK(contains(size.what(), "rank 1 has come to a job of 3 ranks, and rank 0 serves one of 2"));

  TcpStoreOptions old = job.options(1, 2);
  old.attempt = "run 0";
  CHECK(contains(error_of([&] { TcpStore wrong(old); }).what(), "rank 1 is of run 0, and rank 0 of run 1"));
  CHECK(contains(error_of([&] { TcpStore wrong(job.options(0, 2)); }).what(), "cannot serve at"));

  TcpStore right(job.options(1, 2));
  CHECK(contains(error_of([&] { TcpStore twice(job.options(1, 2)); }).what(), "rank 1 is here already"));
}

TEST_CASE("a rank that finds something else than the store, or nobody, says so at its deadline") {
  const Job job;
  TcpStoreOptions options = job.options(1, 2);
  options.meet_within = 300ms;
  const Error nobody = error_of([&] { TcpStore store(options); });
  CHECK(nobody.kind() == ErrorKind::network);
  CHECK(contains(nobody.what(),
                 "rank 0 at " + job.port.endpoint() + ", which has the job's store, cannot be reached"));
  CHECK(contains(nobody.what(), "refused"));
}

TEST_CASE("strangers that are silent, or speak another language, keep nobody from meeting") {
  const Job job;
  TcpStore zero(job.options(0, 2));
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(
        std::stoul(job.port.endpoint().substr(job.port.endpoint().rfind(':') + 1))));
    REQUIRE(::connect(stranger.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    if (i % 2 == 0) REQUIRE(::send(stranger.value(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
    strangers.push_back(std::move(stranger));
  }
  TcpStore one(job.options(1, 2));
  one.set("a", "b");
  CHECK(zero.wait("a", Clock::now() + 20s) == "b");
}

TEST_CASE("the end of a process is known to all others at once, and ends what waits for it") {
  const Job job;
  tests::ChildProcess child([&](int) {
    TcpStore store(job.options(2, 3));
    store.set("here", "");
    store.wait("never", Clock::now() + 60s);
  });
  run_ranks(2, [&](int rank) {
    Heard heard;
    TcpStore store(job.options(rank, 3, &heard));
    store.wait("here", Clock::now() + 20s);
    const auto concern = [&] {
      if (heard.has(StoreNews::Kind::lost)) throw Error(ErrorKind::network, "it is lost");
    };
    if (rank == 0) child.signal(SIGKILL);
    CHECK(
        contains(error_of([&] { store.wait("nothing", Clock::now() + 20s, concern); }).what(), "it is lost"));
    const StoreNews news = heard.await(StoreNews::Kind::lost);
    CHECK(news.rank == 2);
    CHECK(news.text == "its process has ended");
    CHECK(contains(error_of([&] { store.gather("all", "", false, Clock::now() + 20s); }).what(),
                   "rank 2 ended before all ranks had joined"));
    CHECK(store.gather("left", "", true, Clock::now() + 20s).size() == 2);
  });
}

TEST_CASE("the death of rank 0 is known to all, and ends what they wait for") {
  const Job job;
  tests::ChildProcess child([&](int) {
    TcpStore store(job.options(0, 3));
    store.wait("never", Clock::now() + 60s);
  });
  std::latch met(2);
  run_ranks(2, [&](int index) {
    Heard heard;
    TcpStore store(job.options(index + 1, 3, &heard));
    store.set(std::to_string(index), "");
    store.wait(std::to_string(1 - index), Clock::now() + 20s);
    met.arrive_and_wait();
    if (index == 0) child.signal(SIGKILL);
    const Error error = error_of([&] { store.wait("nothing", Clock::now() + 20s); });
    CHECK(error.kind() == ErrorKind::network);
    CHECK(contains(error.what(),
                   "rank 0 at " + job.port.endpoint() + ", which has the job's store, has ended"));
    CHECK(heard.await(StoreNews::Kind::lost).rank == 0);
    CHECK(error_of([&] { store.set("a", "b"); }).kind() == ErrorKind::network);
  });
}

TEST_CASE("who leaves is not lost, not even rank 0") {
  const Job job;
  Heard heard;
  auto zero = std::make_unique<TcpStore>(job.options(0, 3));
  TcpStore one(job.options(1, 3, &heard));
  auto two = std::make_unique<TcpStore>(job.options(2, 3));
  two.reset();
  CHECK(heard.await(StoreNews::Kind::left).rank == 2);
  zero.reset();  // waits a second for the other
  const Error error = error_of([&] { one.wait("nothing", Clock::now() + 20s); });
  CHECK(contains(error.what(), "has left"));
  CHECK(contains(error.hint(), "let rank 0 leave last"));
  CHECK(!heard.has(StoreNews::Kind::lost));
}

TEST_CASE("an announcement reaches all others") {
  const Job job;
  Heard heard;
  TcpStore zero(job.options(0, 2, &heard));
  TcpStore one(job.options(1, 2));
  one.announce("group", "why");
  const StoreNews news = heard.await(StoreNews::Kind::announced);
  CHECK(news.rank == 1);
  CHECK(news.subject == "group");
  CHECK(news.text == "why");
}

TEST_CASE("tampering at any byte of a session gives an error or the right values") {
  const Access access{Secret::random(), "/job/secret"};
  const auto make_server = [&] {
    return std::make_unique<StoreServer>(
        StoreServerOptions{.endpoint = "127.0.0.1:0", .access = access, .size = 2, .attempt = "run 1"});
  };
  tests::tamper_everywhere(make_server, [&](const StoreServer&, const std::string& endpoint) {
    TcpStoreOptions options;
    options.endpoint = endpoint;
    options.rank = 1;
    options.size = 2;
    options.attempt = "run 1";
    options.access = access;
    options.meet_within = 2s;
    TcpStore store(std::move(options));
    store.set("a name", "a value");
    const std::string value = store.wait("a name", Clock::now() + 2s);
    CHECK(value == "a value");
    const std::int64_t number = store.add("a number", 7);
    CHECK(number == 7);
  });
}
