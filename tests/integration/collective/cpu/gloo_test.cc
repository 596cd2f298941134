// Communicators between hosts and in two levels, where something goes wrong: calls that differ, ranks that do
// not come or die within a call, strangers, bytes that change on the way. Ranks are threads that say they are
// on different hosts, and processes.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "collective/cpu/gloo_communicator.h"
#include "collective/cpu/half.h"
#include "collective/cpu/rank_links.h"
#include "collective/cpu/rank_mesh.h"
#include "collective/groups/world.h"
#include "collective/store/memory_store.h"
#include "runtime/base/error.h"
#include "tests/support/child_process.h"
#include "tests/support/errors.h"
#include "tests/support/meddler.h"
#include "tests/support/port_lease.h"
#include "tests/support/rank_threads.h"
#include "tests/support/sealed_ends.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace std::chrono_literals;
using tests::contains;
using tests::error_of;
using tests::run_ranks;

namespace {

using Clock = Store::Clock;

struct Job {
  tests::PortLease port;
  Access access{Secret::random(), "/job/secret"};

  /// `ranks_of_host` consecutive ones on each.
  std::unique_ptr<World> join(int rank, int size, int ranks_of_host = 1) const {
    WorldOptions options;
    options.rank = rank;
    options.size = size;
    options.store = port.endpoint();
    options.access = access;
    options.host_key = "host " + std::to_string(rank / ranks_of_host);
    options.meet_within = 20s;
    options.call_within = 20s;
    return World::join(options);
  }
};

void sum(Communicator& communicator, std::vector<float>& values) {
  all_reduce(communicator, Buffer{values.data(), values.size(), DataType::float32}, Operation::sum);
}

/// Two ends of one link, which may be sealed.
struct Link {
  std::array<UniqueFd, 2> ends = tests::socket_pair();
  tests::RecordEnds records = tests::established_ends();

  /// The link of rank `rank`, over `socket`.
  std::vector<SealedSocket> mesh_of(std::size_t rank, UniqueFd socket, bool is_sealed = true) {
    std::vector<SealedSocket> mesh(2);
    RecordLayer& own = rank == 0 ? records.client : records.server;
    mesh[1 - rank] =
        SealedSocket(std::move(socket), is_sealed ? std::optional(std::move(own)) : std::nullopt);
    return mesh;
  }
};

/// A rank of two that sends the other one a message and hears one, over a mesh.
class RankOfTwo {
 public:
  RankOfTwo(int rank, const Access& access, std::chrono::milliseconds patience)
      : rank_(rank), access_(access), patience_(patience) {}

  /// `elsewhere`: where the other one seems to be. False: the other one gave up.
  bool talk(const std::string& elsewhere = {}) {
    store_.elsewhere = elsewhere;
    RankLinks links({"links", rank_, 2},
                    connect_mesh({"links", rank_, 2}, store_, {"links", "127.0.0.1", access_, patience_}));
    const std::string own = text(rank_);
    std::string into(own.size(), ' ');
    Completions done;
    links.send(1 - rank_, 10, own.data(), own.size(), done);
    links.receive(1 - rank_, 10, into.data(), into.size(), done);
    const auto end = Clock::now() + patience_;
    while (done.sends == 0 || done.receives == 0) {
      if (store_.is_over || Clock::now() > end) return false;
      links.progress(Clock::now() + 20ms);
    }
    CHECK(into == text(1 - rank_));
    return true;
  }
  std::string endpoint() { return store_.wait("links/endpoint/0", Clock::now() + 20s); }
  void end() { store_.is_over = true; }

 private:
  static std::string text(int rank) { return "a message of rank " + std::to_string(rank); }

  struct OwnStore final : MemoryStore {
    std::string wait(const std::string& name, Clock::time_point deadline) override {
      return elsewhere.empty() ? MemoryStore::wait(name, deadline) : elsewhere;
    }
    bool check() override {
      if (is_over) throw Error(ErrorKind::network, "the other rank is gone", "");
      return false;
    }
    std::string elsewhere;
    std::atomic<bool> is_over = false;
  };

  int rank_;
  Access access_;
  std::chrono::milliseconds patience_;
  OwnStore store_;
};

/// Rank 0, in a thread of its own.
class RankZero {
 public:
  RankZero(const Access& access, std::chrono::milliseconds patience)
      : rank_(0, access, patience), thread_([this] { talk(); }) {}
  ~RankZero() {
    rank_.end();
    thread_.join();
  }
  RankZero(const RankZero&) = delete;
  RankZero& operator=(const RankZero&) = delete;
  std::string endpoint() { return rank_.endpoint(); }

 private:
  void talk() {
    try {
      rank_.talk();
    } catch (const Error&) {
      // The other one is gone.
    }
  }

  RankOfTwo rank_;
  std::thread thread_;
};

/// What this process has mapped for data, whether it was touched or not.
std::uint64_t heap_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7)) << 10;
  FAIL("no VmData");
  return 0;
}

}  // namespace

TEST_CASE("calls that differ are an error that says who calls what, on all ranks") {
  for (const int ranks_of_host : {1, 2}) {
    const Job job;
    run_ranks(4, [&](int rank) {
      const auto world = job.join(rank, 4, ranks_of_host);
      const auto all = world->make_communicator("all");
      std::vector<float> values(1000, 1);
      const Error error = error_of([&] {
        sum(*all, values);
        values.resize(rank == 2 ? 999 : 1000);
        sum(*all, values);
      });
      CHECK(error.kind() == ErrorKind::config);
      INFO(render(error, "rank"));
      CHECK(contains(error.what(), "reduce of 999 float32 (sum)"));
      CHECK(contains(error.what(), ranks_of_host == 1 ? "group all: rank " : "group all/ranks 2,3: rank "));
      CHECK(contains(error.what(), "reduce of 1000 float32 (sum)"));
      CHECK(error.hint() == "all ranks of a group make the same calls in the same order");
      CHECK(error_of([&] { barrier(*all); }).kind() == ErrorKind::config);
    });
  }
}

TEST_CASE("a mean of float16 near the largest does not overflow, by TCP and in two levels") {
  for (const int ranks_of_host : {1, 2}) {
    const Job job;
    run_ranks(5, [&](int rank) {
      const auto world = job.join(rank, 5, ranks_of_host);
      const auto all = world->make_communicator("all");
      const std::vector<std::uint16_t> given(503, to_float16(rank == 4 ? 65504.0f : 60000.0f));
      const std::uint16_t mean = to_float16(61100.8f);
      const ConstBuffer input{given.data(), given.size(), DataType::float16};
      const auto check_mean = [&](const std::vector<std::uint16_t>& values) {
        CHECK(std::count(values.begin(), values.end(), mean) == static_cast<std::ptrdiff_t>(values.size()));
      };
      std::vector<std::uint16_t> values(given.size());
      const Buffer output{values.data(), values.size(), DataType::float16};
      all_reduce(*all, input, output, Operation::avg);
      check_mean(values);
      std::vector<std::uint16_t> in_place = given;
      all_reduce(*all, Buffer{in_place.data(), in_place.size(), DataType::float16}, Operation::avg);
      check_mean(in_place);
      values.assign(given.size(), 0);
      reduce(*all, input, output, Operation::avg, 3);
      if (rank == 3) check_mean(values);
      std::vector<std::uint16_t> share(rank == 0 ? 103 : 100);
      const std::vector<std::size_t> counts{103, 100, 100, 100, 100};
      reduce_scatter(*all, input, Buffer{share.data(), share.size(), DataType::float16}, Operation::avg,
                     counts);
      check_mean(share);
    });
  }
}

TEST_CASE("a rank that does not come to a call is named at the deadline, on all ranks") {
  const Job job;
  run_ranks(4, [&](int rank) {
    const auto world = job.join(rank, 4);
    const TimeLimit limit = 10min;
    const auto all = world->make_communicator("all", {}, {.call_within = limit});
    limit.set(rank == 2 ? 20s : 500ms);
    std::vector<float> values(100'000, 1);
    sum(*all, values);
    if (rank == 2) {
      world->store().wait("late", Clock::now() + 20s);
      CHECK(error_of([&] { sum(*all, values); }).kind() == ErrorKind::timeout);
      return;
    }
    const Error error = error_of([&] { sum(*all, values); });
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(contains(
        error.what(),
        "group all: rank 2 did not come to all_reduce of 100000 float32 (sum), its call 1, within 500 ms"));
    if (rank == 3) world->store().set("late", "");
  });
}

TEST_CASE("a process that is killed within a call is named by all others, which go on without it") {
  for (const int ranks_of_host : {1, 2}) {
    const Job job;
    const tests::ChildProcess child([&](int) {
      const auto world = job.join(2, 4, ranks_of_host);
      const auto all = world->make_communicator("all");
      std::vector<float> values(1'000'000, 1);
      for (;;) sum(*all, values);
    });
    run_ranks(4, [&](int rank) {
      if (rank == 2) return;
      const auto world = job.join(rank, 4, ranks_of_host);
      const auto all = world->make_communicator("all");
      std::vector<float> values(1'000'000, 1);
      const Error error = error_of([&] {
        for (int calls = 0;; ++calls) {
          sum(*all, values);
          if (rank == 0 && calls == 5) child.signal(SIGKILL);
        }
      });
      INFO(render(error, "rank"));
      CHECK(error.kind() == ErrorKind::network);
      CHECK(contains(error.what(), "group all: rank 2"));
      const auto rest = world->survivors("rest");
      values.assign(10, 1);
      sum(*rest, values);
      CHECK(values == std::vector<float>(10, 3));
      barrier(*rest);
    });
  }
}

TEST_CASE("an abort ends a call that waits") {
  MemoryStore store;
  run_ranks(2, [&](int rank) {
    GlooOptions options;
    options.access = {Secret::from_bytes("0123456789abcdefghijklmnopqrstuv"), "the test"};
    const auto both = make_gloo_communicator({"both", rank, 2}, store, options);
    barrier(*both);
    if (rank == 1) {
      const auto work = both->start({.kind = CallKind::barrier});
      both->abort(Error(ErrorKind::usage, "enough"));
      CHECK(contains(error_of([&] { work->wait(); }).what(), "enough"));
    } else {
      const Error error = error_of([&] {
        for (;;) barrier(*both);
      });
      CHECK(contains(error.what(), "group both: rank 1 has ended its connection"));
    }
  });
}

TEST_CASE("a rank of another secret does not become a rank") {
  MemoryStore store;
  run_ranks(2, [&](int rank) {
    GlooOptions options;
    options.access = {Secret::random(), rank == 0 ? "/job/secret" : "/other/secret"};
    options.meet_within = 1s;
    const Error error = error_of([&] { make_gloo_communicator({"both", rank, 2}, store, options); });
    if (rank == 0) {
      CHECK(error.kind() == ErrorKind::timeout);
      CHECK(contains(error.what(), "group both: rank 1 did not connect to rank 0 within 1000 ms"));
    } else {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(contains(error.what(), "/other/secret"));
    }
  });
}

TEST_CASE("messages of several slots find their buffers, also those that come before they are asked for") {
  Link link;
  RankLinks zero({"links", 0, 2}, link.mesh_of(0, std::move(link.ends[0])));
  RankLinks one({"links", 1, 2}, link.mesh_of(1, std::move(link.ends[1])));
  Completions sent, received;
  const std::string a = "first", b = "the second";
  zero.send(1, 10, a.data(), a.size(), sent);
  zero.send(1, 20, b.data(), b.size(), sent);
  zero.send(1, 30, nullptr, 0, sent);
  CHECK(sent.sends == 3);
  std::string into_b(b.size(), ' '), into_a(a.size(), ' ');
  one.receive(0, 20, into_b.data(), into_b.size(), received);
  while (received.receives < 1) one.progress(Clock::now() + 20s);
  CHECK(into_b == b);
  one.receive(0, 30, nullptr, 0, received);
  one.receive(0, 10, into_a.data(), into_a.size(), received);
  while (received.receives < 3) one.progress(Clock::now() + 20s);
  CHECK(into_a == a);
}

TEST_CASE("what is larger than all buffers arrives, both ways at once") {
  constexpr std::size_t kBytes = std::size_t{9} << 20;
  for (const bool is_sealed : {true, false}) {
    Link link;
    RankLinks zero({"links", 0, 2}, link.mesh_of(0, std::move(link.ends[0]), is_sealed));
    RankLinks one({"links", 1, 2}, link.mesh_of(1, std::move(link.ends[1]), is_sealed));
    std::array<std::string, 2> from{std::string(kBytes, 'a'), std::string(kBytes, 'b')}, into = from;
    for (std::size_t i = 0; i < kBytes; i += 4099) from[0][i] = from[1][i] = static_cast<char>(i / 4099);
    std::array<Completions, 2> done;
    zero.send(1, 10, from[0].data(), kBytes, done[0]);
    one.send(0, 10, from[1].data(), kBytes, done[1]);
    zero.receive(1, 10, into[0].data(), kBytes, done[0]);
    one.receive(0, 10, into[1].data(), kBytes, done[1]);
    const auto is_done = [](const Completions& of) { return of.sends == 1 && of.receives == 1; };
    while (!is_done(done[0]) || !is_done(done[1])) {
      if (!is_done(done[0])) zero.progress(Clock::now());
      if (!is_done(done[1])) one.progress(Clock::now());
    }
    CHECK(into[0] == from[1]);
    CHECK(into[1] == from[0]);
  }
}

TEST_CASE("a bit that changes on the way is found, wherever in a message it is") {
  constexpr std::size_t kMessage = 22 + 16 + 22 + 8;  // two records
  for (std::size_t changed = 0; changed < kMessage; ++changed) {
    Link out, in;  // the test carries bytes from one to the other
    RankLinks zero({"links", 0, 2}, out.mesh_of(0, std::move(out.ends[0])));
    RankLinks one({"links", 1, 2}, out.mesh_of(1, std::move(in.ends[1])));
    Completions sent, received;
    std::array<char, 8> value{"1234567"}, got{};
    zero.send(1, 10, value.data(), value.size(), sent);
    std::array<char, kMessage> bytes{};
    REQUIRE(::recv(out.ends[1].value(), bytes.data(), bytes.size(), MSG_WAITALL) ==
            static_cast<ssize_t>(bytes.size()));
    bytes[changed] = static_cast<char>(bytes[changed] ^ 1);
    REQUIRE(::send(in.ends[0].value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    in.ends[0].reset();
    one.receive(0, 10, got.data(), got.size(), received);
    const Error error = error_of([&] {
      while (received.receives == 0) one.progress(Clock::now() + 20s);
    });
    CHECK(contains(error.what(), "group links: rank 0"));  // a length that has grown waits for more
    CHECK(std::string_view(got.data(), 7).find("1234567") == std::string_view::npos);
  }
}

TEST_CASE("tampering at any byte of what two ranks say gives an error or the right message") {
  const Access access{Secret::random(), "/job/secret"};
  std::chrono::milliseconds patience = 20s;  // with the first, on whom nobody tampers
  bool was_heard = false;
  tests::tamper_everywhere([&] { return std::make_unique<RankZero>(access, patience); },
                           [&](RankZero&, const std::string& endpoint) {
                             was_heard |= RankOfTwo(1, access, patience).talk(endpoint);
                             patience = 500ms;
                           });
  CHECK(was_heard);
}

TEST_CASE("a length that somebody made up takes no memory, sealed or not") {
  constexpr std::uint64_t kAnnounced = std::uint64_t{3} << 30, kTooMuch = std::uint64_t{1} << 42;
  for (const bool is_sealed : {true, false}) {
    for (const std::uint64_t announced : {kAnnounced, kTooMuch}) {
      Link in;
      RankLinks one({"links", 1, 2}, in.mesh_of(1, std::move(in.ends[1]), is_sealed));
      const std::array<std::uint64_t, 6> bytes{99, announced, 1, 2, 3, 4};  // of a slot that nobody awaits
      REQUIRE(::send(in.ends[0].value(), bytes.data(), sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
      Completions received;
      std::array<char, 8> got{};
      one.receive(0, 10, got.data(), got.size(), received);
      const std::uint64_t before = heap_bytes();
      std::string said;
      try {
        one.progress(Clock::now() + 20s);
      } catch (const Error& error) {
        said = error.what();
      }
      CHECK(heap_bytes() - before < (8u << 20));
      CHECK(said == (is_sealed
                         ? "group links: rank 0: the bytes were changed on the way, or are from somebody else"
                     : announced == kTooMuch ? "group links: rank 0 sent what no rank sends"
                                             : ""));
    }
  }
}
