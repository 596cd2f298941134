// Shared memory between a trainer's end and a server's, over a pair of sockets in one process.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "ps/base/wire.h"
#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "ps/shm/host.h"
#include "ps/shm/link.h"
#include "runtime/base/error.h"
#include "tests/support/errors.h"

using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::UniqueFd;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;

namespace {

constexpr std::uint64_t kIncarnation = 77;
constexpr std::uint32_t kWidth = 4;

TableConfig sum_table() {
  TableConfig config;
  config.id = 0;
  config.name = "sum";
  config.kind = TableConfig::Kind::sparse;
  config.width = kWidth;
  config.rule.kind = UpdateRule::Kind::sum;
  return config;
}

struct Refused {
  std::mutex mutex;
  std::vector<std::string> reasons;
  void note(const std::string& why) {
    const std::lock_guard lock(mutex);
    reasons.push_back(why);
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return reasons.size();
  }
};

struct Job {
  Refused refused;
  Server server;
  BackgroundQueue slow;
  ShmHost host;

  explicit Job(std::uint64_t bytes = 1 << 20, std::uint32_t trainers = 1, std::size_t max = 16)
      : server({0, 1, trainers, Mode::async, {sum_table()}}),
        host(server, slow, {bytes, max, [this](auto&, auto& why) { refused.note(why); }}) {}
  ~Job() {
    server.close();
    slow.finish();
    host.stop();
  }

  UniqueFd connect() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    host.admit(UniqueFd(ends[0]));
    return UniqueFd(ends[1]);
  }
};

ShmFiles files_from(const UniqueFd& socket) {
  pollfd ready{socket.value(), POLLIN, 0};
  REQUIRE(::poll(&ready, 1, 5000) == 1);
  auto files = receive_files(socket.value());
  REQUIRE(files);
  return std::move(*files);
}

struct Trainer {
  std::unique_ptr<ShmLink> link;

  explicit Trainer(Job& job, bool says_hello = true, std::uint32_t rank = 0, std::uint32_t trainers = 1) {
    UniqueFd socket = job.connect();
    ShmSegment segment = ShmSegment::attach(files_from(socket));
    link = std::make_unique<ShmLink>(std::move(segment), std::move(socket), "server 0");
    if (!says_hello) return;
    ClientOptions options;
    options.trainer = rank;
    options.trainers = trainers;
    options.tables = {sum_table()};
    const Message hello = make_hello(options, kIncarnation, 0, 1);
    REQUIRE(std::holds_alternative<Message>(ask(hello.bytes()).outcome));
  }

  std::future<ShmAnswer> begin(std::span<const std::byte> request) const {
    auto promise = std::make_shared<std::promise<ShmAnswer>>();
    auto future = promise->get_future();
    link->send(request, [promise](ShmAnswer answer) { promise->set_value(std::move(answer)); });
    return future;
  }
  ShmAnswer ask(std::span<const std::byte> request) const { return begin(request).get(); }

  Message pull_request(const std::vector<std::uint64_t>& keys) const {
    wire::PullDraft draft = wire::draft_pull({wire::Method::pull, 0, 0, kIncarnation},
                                             {{{0, kWidth, keys.size()}}, {}}, link->messages());
    std::ranges::copy(keys, draft.keys[0].begin());
    return std::move(draft.message);
  }
  Message push_request(const std::vector<std::uint64_t>& keys, float value) const {
    wire::PushDraft draft = wire::draft_push({wire::Method::push, 0, 0, kIncarnation},
                                             {{{0, kWidth, keys.size()}}, {}}, {}, link->messages());
    std::ranges::copy(keys, draft.keys[0].begin());
    std::ranges::fill(draft.gradients[0], value);
    return std::move(draft.message);
  }
};

std::vector<float> floats_of(const ShmAnswer& answer) {
  const auto& message = std::get<Message>(answer.outcome);
  std::vector<float> out(message.size() / sizeof(float));
  Reader(message.bytes()).read(out.data(), message.size());
  return out;
}

Message attend_request() {
  return wire::draft({wire::Method::attend, 0, 0, kIncarnation}, 0).message;
}

}  // namespace

TEST_CASE("shm: requests and answers stay where they were made") {
  Job job;
  const Trainer trainer(job);
  const Message push = trainer.push_request({5, 6}, 2.0f);
  CHECK_FALSE(push.is_from_heap());
  CHECK(std::holds_alternative<Message>(trainer.ask(push.bytes()).outcome));
  const Message pull = trainer.pull_request({6, 7});
  const ShmAnswer answer = trainer.ask(pull.bytes());
  CHECK_FALSE(std::get<Message>(answer.outcome).is_from_heap());
  CHECK(floats_of(answer) == std::vector<float>{2, 2, 2, 2, 0, 0, 0, 0});
}

TEST_CASE("shm: a request from the heap is copied in") {
  Job job;
  const Trainer trainer(job);
  wire::PullDraft draft = wire::draft_pull({wire::Method::pull, 0, 0, kIncarnation}, {{{0, kWidth, 1}}, {}});
  draft.keys[0][0] = 9;
  CHECK(draft.message.is_from_heap());
  CHECK(floats_of(trainer.ask(draft.message.bytes())) == std::vector<float>(kWidth));
}

TEST_CASE("shm: an error comes with its kind, hint and context") {
  Job job;
  const Trainer trainer(job);
  const Message wrong =
      wire::draft({wire::Method::pull, 0, 0, kIncarnation + 1}, 8, trainer.link->messages()).message;
  const ShmAnswer answer = trainer.ask(wrong.bytes());
  CHECK_FALSE(answer.is_gone);
  const Error& error = std::get<Error>(answer.outcome);
  CHECK(error.context() == std::vector<std::string>{"pull on server 0"});
}

TEST_CASE("shm: bytes that are no request change nothing and are answered") {
  Job job;
  const Trainer trainer(job);
  Message garbage = trainer.link->messages()(100);
  std::fill_n(garbage.data(), garbage.size(), std::byte{0x5a});
  CHECK(std::get<Error>(trainer.ask(garbage.bytes()).outcome).kind() == ErrorKind::data);
  const Message pull = trainer.pull_request({1});
  CHECK(floats_of(trainer.ask(pull.bytes())).size() == kWidth);
}

TEST_CASE("shm: many threads, more messages than the segment holds at once") {
  Job job(256 << 10);
  const Trainer trainer(job);
  constexpr int kThreads = 4, kPushes = 200;
  std::vector<std::uint64_t> keys(1500);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPushes; ++i) {
        const Message push = trainer.push_request(keys, 1.0f);
        const auto done = trainer.begin(push.bytes());
        const Message pull = trainer.pull_request(keys);
        CHECK(std::holds_alternative<Message>(trainer.ask(pull.bytes()).outcome));
        done.wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Message pull = trainer.pull_request(keys);
  CHECK(floats_of(trainer.ask(pull.bytes())) == std::vector<float>(keys.size() * kWidth, kThreads * kPushes));
}

TEST_CASE("shm: who wants more than the segment holds waits for an answer") {
  Job job(8192);
  const Trainer trainer(job);
  std::optional<Message> large = trainer.link->messages()(8000);
  std::promise<void> got;
  std::thread second([&] {
    const Message other = trainer.link->messages()(8000);
    got.set_value();
  });
  auto future = got.get_future();
  CHECK(future.wait_for(std::chrono::milliseconds(0)) == std::future_status::timeout);
  large.reset();
  future.wait();
  second.join();
}

TEST_CASE("shm: an answer that does not fit beside those that are unread is refused with the reason") {
  Job job(64 << 10);
  const Trainer trainer(job);
  const std::vector<std::uint64_t> keys(3000, 1);
  std::vector<std::uint64_t> distinct(3000);
  for (std::size_t i = 0; i < distinct.size(); ++i) distinct[i] = i;
  const Message pull = trainer.pull_request(distinct);
  std::optional<ShmAnswer> first = trainer.ask(pull.bytes());
  CHECK(floats_of(*first).size() == distinct.size() * kWidth);
  const ShmAnswer second = trainer.ask(pull.bytes());
  CHECK_FALSE(second.is_gone);
  CHECK(std::get<Error>(second.outcome).kind() == ErrorKind::host);
  first.reset();
  CHECK(floats_of(trainer.ask(pull.bytes())).size() == distinct.size() * kWidth);
}

TEST_CASE("shm: a server that goes ends every call") {
  auto job = std::make_unique<Job>(1 << 20, 2);
  const Trainer trainer(*job, true, 0, 2);
  const Message attend = attend_request();
  auto attending = trainer.begin(attend.bytes());
  const Message barrier = wire::draft({wire::Method::barrier, 0, 0, kIncarnation}, 0).message;
  auto waiting = trainer.begin(barrier.bytes());
  job.reset();
  CHECK(std::holds_alternative<Error>(attending.get().outcome));
  CHECK(std::holds_alternative<Error>(waiting.get().outcome));
  // The end of the connection comes behind the last answers.
  for (;;) {
    const ShmAnswer late = trainer.ask(barrier.bytes());
    CHECK(std::holds_alternative<Error>(late.outcome));
    if (late.is_gone) break;
  }
  CHECK(trainer.link->messages()(10).is_from_heap());
}

TEST_CASE("shm: a trainer that goes is lost, and its memory is given back") {
  Job job(1 << 20, 2);
  Trainer gone(job, true, 0, 2);
  const Trainer stays(job, false);
  ClientOptions options;
  options.trainer = 1;
  options.trainers = 2;
  options.tables = {sum_table()};
  const Message hello = make_hello(options, kIncarnation, 0, 1);
  REQUIRE(std::holds_alternative<Message>(stays.ask(hello.bytes()).outcome));
  const Message attend = attend_request();
  auto attending = gone.begin(attend.bytes());
  // Answered once the server has taken what came before it.
  const Message pull = gone.pull_request({1});
  CHECK_FALSE(gone.ask(pull.bytes()).is_gone);
  const Message barrier = wire::draft({wire::Method::barrier, 1, 0, kIncarnation}, 0).message;
  auto waiting = stays.begin(barrier.bytes());
  gone.link.reset();
  CHECK(attending.get().is_gone);
  const ShmAnswer answer = waiting.get();
  CHECK(std::string(std::get<Error>(answer.outcome).what()).find("trainer 0") != std::string::npos);
}

TEST_CASE("shm: entries that cannot be end the connection, not the server") {
  Job job;
  const Trainer good(job);
  const auto bad = [&](const ShmEntry& entry) {
    const std::size_t before = job.refused.count();
    const UniqueFd socket = job.connect();
    ShmSegment segment = ShmSegment::attach(files_from(socket));
    ShmWriter writer(segment.requests(), segment.server_bell());
    writer.put(entry);
    char byte;
    CHECK(::recv(socket.value(), &byte, 1, 0) == 0);
    CHECK(job.refused.count() == before + 1);
  };
  bad({static_cast<ShmKind>(9), 0, 0, 0, 0});
  bad({ShmKind::release, 0, 0, 64, 0});
  const Message pull = good.pull_request({1});
  CHECK_FALSE(good.ask(pull.bytes()).is_gone);

  // A message outside of the segment is answered with an error.
  const UniqueFd socket = job.connect();
  ShmSegment segment = ShmSegment::attach(files_from(socket));
  ShmWriter writer(segment.requests(), segment.server_bell());
  ShmReader answers(segment.answers(), segment.trainer_bell());
  for (const auto& [offset, size] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {~std::uint64_t{0}, 8}, {0, ~std::uint64_t{0}}, {1 << 20, 1}, {4, 64}, {0, 0}}) {
    writer.put({ShmKind::call, 0, 1, offset, size});
    while (answers.wait(socket.value(), -1) != ShmWoken::entry) {
    }
    const auto answer = answers.take();
    REQUIRE(answer);
    CHECK(answer->kind == ShmKind::error);
  }
  segment.requests().written.store(1 << 20);
  writer.put({ShmKind::call, 0, 1, 0, 0});
}

TEST_CASE("shm: who asks and never reads the answers is hung up on") {
  Job job;
  const Trainer good(job);
  const UniqueFd socket = job.connect();
  ShmSegment segment = ShmSegment::attach(files_from(socket));
  ShmWriter writer(segment.requests(), segment.server_bell());
  char byte;
  do {
    static_cast<void>(writer.put({ShmKind::call, 0, 1, 0, 0}));
  } while (::recv(socket.value(), &byte, 1, MSG_DONTWAIT) != 0);
  CHECK(job.refused.count() > 0);
  const Message pull = good.pull_request({1});
  CHECK_FALSE(good.ask(pull.bytes()).is_gone);
}

TEST_CASE("shm: more trainers than a server takes are turned away") {
  Job job(1 << 20, 1, 1);
  const Trainer first(job);
  const UniqueFd second = job.connect();
  char byte;
  CHECK(::recv(second.value(), &byte, 1, 0) == 0);
  CHECK(job.refused.count() == 1);
}

TEST_CASE("shm: memory whose size could change is refused") {
  ShmSegment good = ShmSegment::make(4096);
  ShmFiles files;
  files.memory.reset(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(files.memory.value(), 1 << 20) == 0);
  CHECK_THROWS_AS(ShmSegment::attach(std::move(files)), Error);
  ShmFiles sealed;
  sealed.memory.reset(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(sealed.memory.value(), 1 << 20) == 0);
  REQUIRE(::fcntl(sealed.memory.value(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK_THROWS_AS(ShmSegment::attach(std::move(sealed)), Error);
  ShmFiles tiny;
  tiny.memory.reset(::memfd_create("tiny", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::fcntl(tiny.memory.value(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK_THROWS_AS(ShmSegment::attach(std::move(tiny)), Error);
}

TEST_CASE("shm: files that are no segment's") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd one(ends[0]);
  UniqueFd two(ends[1]);
  CHECK_FALSE(receive_files(one.value()));
  REQUIRE(::send(two.value(), "12345678", 8, 0) == 8);
  CHECK_THROWS_AS(receive_files(one.value()), Error);
  two.reset();
  CHECK_THROWS_AS(receive_files(one.value()), Error);
}

namespace {

// A segment whose server does nothing.
struct Asleep {
  ShmSegment segment;
  UniqueFd socket;

  explicit Asleep(std::uint64_t bytes = 1 << 20) : segment(ShmSegment::make(bytes)) {}

  std::unique_ptr<ShmLink> link(const ShmPatience& patience) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket.reset(ends[0]);
    const auto copy = [](int file) { return UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0)); };
    ShmSegment same = ShmSegment::attach(
        {copy(segment.files().memory.value()), copy(segment.server_bell()), copy(segment.trainer_bell())});
    return std::make_unique<ShmLink>(std::move(same), UniqueFd(ends[1]), "server 4 at h:1", patience);
  }
};

}  // namespace

TEST_CASE("shm: who waits for room gives up in time, naming the server; what was sent lies there untouched") {
  Asleep server;
  const auto link = server.link({std::chrono::milliseconds(20), std::chrono::hours(1)});
  const MessageSource source = link->messages();
  const auto held = std::make_shared<Message>(source(900 << 10));
  std::ranges::fill(std::span(held->data(), held->size()), std::byte{7});
  std::atomic<int> ended = 0;
  link->send(held->bytes(), [&, held](ShmAnswer) { ++ended; });
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { source(200 << 10); },
           [&] { link->send(std::vector<std::byte>(200 << 10), [&](ShmAnswer) { ++ended; }); }}) {
    const Error error = error_of(call);
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(
        std::string(error.what()).starts_with("server 4 at h:1 has not answered 1 requests of 921600 bytes"));
  }
  const std::vector<std::byte> little(64);
  const Error many = error_of([&] {
    for (;;) link->send(little, [&](ShmAnswer) { ++ended; });
  });
  CHECK(std::string(many.what()).starts_with("server 4 at h:1 has not answered 1024 requests"));
  CHECK(ended == 0);
  CHECK(server.segment.request_bytes()[1000] == std::byte{7});
}

TEST_CASE("shm: a server that shows no sign of life is gone, one that beats is not") {
  Asleep server;
  const auto link = server.link({std::chrono::milliseconds(0), std::chrono::milliseconds(2100)});
  std::promise<ShmAnswer> end;
  link->send(std::vector<std::byte>(64), [&](ShmAnswer answer) { end.set_value(std::move(answer)); });
  std::future<ShmAnswer> ended = end.get_future();
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(3000)) {
    ++server.segment.beats();
    REQUIRE(ended.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout);
  }
  const ShmAnswer answer = ended.get();
  CHECK(answer.is_gone);
  CHECK(std::string(std::get<Error>(answer.outcome).what())
            .starts_with("server 4 at h:1 is gone: no sign of life for 2100 ms"));
}

TEST_CASE("shm: what a link that is gone leaves behind is not taken from under the server") {
  Asleep server(256 << 20);
  constexpr std::size_t kLarge = 100 << 20;
  auto link = server.link({});
  Message large = link->messages()(kLarge);
  std::ranges::fill(std::span(large.data(), kLarge), std::byte{7});
  link.reset();
  large = {};
  CHECK(server.segment.request_bytes()[kLarge - 1] == std::byte{7});
}
