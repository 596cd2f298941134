// Trainers that die at every place of their script, before a request arrives or between what it did and its
// answer, and are started again from the script's beginning: every example counts once.
#include <array>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "ps/client/channel_client.h"
#include "ps/modes/trainer_mode.h"
#include "ps/server/server.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_link.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::text_of;
using fleetrun::tests::UnreliableCall;
using fleetrun::tests::UnreliableExchange;
using fleetrun::tests::UnreliableLink;

namespace {

constexpr std::uint32_t kTrainers = 2, kThreads = 2, kPasses = 2;
constexpr std::uint64_t kKeys = 12;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// What is counted: shows, which add up whatever the number of pushes in a step.
// Values have the bits of an order of steps. In geo mode there are no shows: the values count.
std::vector<TableConfig> tables(Mode mode) {
  if (mode == Mode::geo)
    return {fleetrun::tests::sparse_table(0, "rows", 2), fleetrun::tests::dense_table(1, "dense", 3)};
  TableConfig rows = fleetrun::tests::sparse_table(0, "rows", 2, UpdateRule::Kind::adagrad);
  rows.accessor.kind = Accessor::Kind::sparse;
  return {rows, fleetrun::tests::dense_table(1, "dense", 3, UpdateRule::Kind::adam)};
}

std::uint64_t batches_of(std::uint32_t trainer, std::uint32_t epoch, std::uint32_t thread) {
  return 2 + (trainer + epoch + thread) % 3;
}

std::array<std::uint64_t, 2> keys_of(std::uint32_t trainer, std::uint32_t epoch, std::uint32_t thread,
                                     std::uint64_t batch) {
  return {(trainer * 5 + epoch * 3 + thread + batch * batch) % kKeys,
          (trainer + batch * 7 + thread * 4) % kKeys};
}

/// When one process of a trainer dies: at its `request`th request to the servers, which has an effect or not.
struct Death {
  std::uint64_t request = kNever;
  bool has_effect = false;
};

/// One process of a trainer, as the servers see it.
struct Life {
  Death death = {};
  std::atomic<std::uint64_t> requests = 0;
  std::vector<std::shared_ptr<UnreliableLink>> links = {};

  bool is_dead() const { return requests >= death.request; }
  void cut() const {
    for (const auto& link : links) link->cut();
  }
};

class DyingChannel : public Channel {
 public:
  DyingChannel(Life& life, Server& server, std::uint32_t rank)
      : life_(life), server_(server), rank_(rank), link_(life.links.at(rank)) {}

  std::unique_ptr<Call> start(const wire::Header&, Message request,
                              std::shared_ptr<Endings> endings) override {
    auto exchange = std::make_shared<UnreliableExchange>();
    exchange->endings = std::move(endings);
    {
      const std::lock_guard lock(link_->mutex);
      if (link_->is_cut) throw Error(ErrorKind::network, "this trainer is dead");
      link_->waiting.push_back(exchange);
    }
    ++life_.requests;
    // The others' threads answer what waits for them: a dead process has to be deaf before that.
    if (life_.is_dead()) life_.cut();
    if (!life_.is_dead() || life_.death.has_effect) deliver(std::move(request), exchange);
    return std::make_unique<UnreliableCall>(std::move(exchange));
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  void deliver(Message request, const std::shared_ptr<UnreliableExchange>& exchange) {
    const auto bytes = std::make_shared<Message>(std::move(request));
    Reader reader(bytes->bytes());
    const wire::Header header = wire::read_header(reader);
    server_.handle(header, std::move(reader), [bytes, exchange, link = link_](Outcome outcome) {
      link->answer(exchange, std::move(outcome));
    });
  }

  Life& life_;
  Server& server_;
  std::uint32_t rank_;
  std::shared_ptr<UnreliableLink> link_;
  std::string name_ = "a server";
};

using Servers = std::vector<std::unique_ptr<Server>>;

std::unique_ptr<Client> connect(Life& life, const Servers& servers, const TrainerMode& mode,
                                std::uint32_t trainer, std::uint64_t incarnation) {
  ClientOptions options{trainer, kTrainers, mode.mode, server_tables(mode.mode, mode.tables)};
  options.counts_epochs = true;
  std::vector<std::unique_ptr<Channel>> channels;
  Welcome welcome;
  for (std::uint32_t rank = 0; rank < servers.size(); ++rank) {
    life.links.push_back(std::make_shared<UnreliableLink>());
    life.links.back()->on_lost = [] {};
    const Message hello = make_hello(options, incarnation, rank, static_cast<std::uint32_t>(servers.size()));
    Reader reader(hello.bytes());
    const wire::Header header = wire::read_header(reader);
    const auto answered = std::make_shared<std::promise<Outcome>>();
    servers[rank]->handle(header, std::move(reader),
                          [answered](Outcome outcome) { answered->set_value(std::move(outcome)); });
    const Outcome outcome = answered->get_future().get();
    if (const Error* error = std::get_if<Error>(&outcome)) throw separate_copy(*error);
    welcome.add(rank, wire::read_greeting(Reader(std::get<Message>(outcome).bytes())));
  }
  for (std::uint32_t rank = 0; rank < servers.size(); ++rank)
    channels.push_back(std::make_unique<DyingChannel>(life, *servers[rank], rank));
  return with_mode(make_channel_client(options, incarnation, std::move(channels), welcome), mode);
}

/// In geo mode a trainer that sends all of its changes, not a share: these can be counted.
TrainerMode mode_of(Mode mode, std::uint32_t geo_steps = 1, std::uint32_t merged = 1) {
  return {.mode = mode, .trainers = 1, .tables = tables(mode), .geo_steps = geo_steps, .merged = merged};
}

struct Job {
  std::uint32_t servers = 1;
  std::uint32_t dying = 1;  // the trainer that dies
  std::vector<Death> deaths = {};
  bool skips = true;       // its script asks which batches it need not compute
  bool resumes = false;    // its script leaves out the epochs that one before it had behind it
  std::string keeps = {};  // where servers keep what they have
  TrainerMode mode = mode_of(Mode::sync);
};

/// The gradients of a batch, from the values that it pulls.
struct Batch {
  std::array<std::uint64_t, 2> keys = {};
  std::array<float, 4> rows = {};
  std::array<float, 3> dense = {};

  std::unique_ptr<Pending> push(Client& client, std::uint32_t thread, Mode mode) {
    pull(client);
    return push_pulled(client, thread, mode);
  }
  void pull(Client& client) { client.pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}}); }
  std::unique_ptr<Pending> push_pulled(Client& client, std::uint32_t thread, Mode mode) {
    const bool counts = mode == Mode::geo;
    for (float& value : rows) value = counts ? 1.0f : 0.1f * value + 1.0f;
    for (float& value : dense) value = counts ? 1.0f : 0.3f * value - 1.0f;
    return client.push_async({.thread = thread, .sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
  }
};

// Where threads wait for each other, a push that is left alone is given up by the others' leaving.
void leave_all(Client& client) noexcept {
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    try {
      client.leave_epoch(thread);
    } catch (const Error&) {
    }
  }
}

// Both threads step together, on this thread: the requests come in the same order in every run.
void train_together(Client& client, std::uint32_t trainer, std::uint32_t epoch, bool skips, Mode mode) {
  client.begin_epoch({kThreads, 7 + epoch});
  std::array<std::uint64_t, kThreads> at = {};
  for (std::uint32_t thread = 0; skips && thread < kThreads; ++thread) at[thread] = client.skip_steps(thread);
  std::array<Batch, kThreads> batches;
  for (bool more = true; more;) {
    more = false;
    std::array<std::unique_ptr<Pending>, kThreads> pushes;
    try {
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        if (at[thread] == kNever || at[thread] > batches_of(trainer, epoch, thread)) continue;
        more = true;
        const std::uint64_t batch = at[thread]++;
        if (batch == batches_of(trainer, epoch, thread)) {
          client.leave_epoch(thread);
          continue;
        }
        batches[thread].keys = keys_of(trainer, epoch, thread, batch);
        pushes[thread] = batches[thread].push(client, thread, mode);
      }
      for (const auto& push : pushes) {
        if (push) push->wait();
      }
    } catch (const Error&) {
      leave_all(client);
      throw;
    }
  }
}

// Each on its own: in geo mode threads wait for each other where servers have parts of what they repeat.
void train_apart(Client& client, std::uint32_t trainer, std::uint32_t epoch, bool skips) {
  client.begin_epoch({kThreads, 7 + epoch});
  std::array<std::exception_ptr, kThreads> errors;
  const auto work = [&](std::uint32_t thread) {
    try {
      Batch batch;
      for (std::uint64_t at = skips ? client.skip_steps(thread) : 0; at < batches_of(trainer, epoch, thread);
           ++at) {
        batch.keys = keys_of(trainer, epoch, thread, at);
        batch.push(client, thread, Mode::geo)->wait();
      }
    } catch (...) {
      errors[thread] = std::current_exception();
    }
    try {
      client.leave_epoch(thread);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::array<std::jthread, kThreads> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread)
      threads[thread] = std::jthread([&work, thread] { work(thread); });
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// What a trainer's script does. `done`: how many epochs it had behind it, in all lives.
void script(Client& client, std::uint32_t trainer, const Job& job, bool& sums_are_right,
            std::uint32_t& done) {
  const Mode mode = job.mode.mode;
  if (trainer == 0) client.set_dense(1, std::array<float, 3>{0.5f, -0.25f, 2.0f});
  client.barrier();
  const auto sum_up = [&](std::uint32_t epoch) {
    std::array<double, 2> sum{1.0 + trainer, 10.0 * epoch};
    client.all_reduce_sum(sum);
    sums_are_right = sums_are_right && sum == std::array<double, 2>{3.0, 20.0 * epoch};
  };
  for (std::uint32_t epoch = job.resumes ? done : 0; epoch < kPasses; ++epoch) {
    if (!job.resumes) sum_up(epoch);
    if (mode == Mode::geo)
      train_apart(client, trainer, epoch, job.skips);
    else
      train_together(client, trainer, epoch, job.skips, mode);
    // Where a script begins later, the servers know which sum is meant once an epoch has begun.
    if (job.resumes) sum_up(epoch);
    client.barrier();
    done = epoch + 1;
  }
  client.goodbye();
}

struct Outcomes {
  std::vector<float> shows, values, dense;
  bool sums_are_right = true;
  std::uint64_t requests = 0;  // of the last life of the trainer that died
};

ServerOptions server_options(const Job& job, std::uint32_t rank) {
  ServerOptions options{rank, job.servers, kTrainers, job.mode.mode,
                        server_tables(job.mode.mode, job.mode.tables)};
  options.recover_within = std::chrono::hours(1);
  if (!job.keeps.empty()) {
    options.durability.directory = job.keeps;
    options.durability.run = "run";
  }
  return options;
}

Outcomes results_of(const Servers& servers, Mode mode) {
  Outcomes out;
  // Who looks on is one more trainer of a job of its own kind: each server is asked by itself.
  for (std::uint32_t rank = 0; rank < servers.size(); ++rank) {
    const auto ask = [&](std::uint32_t table, std::vector<std::uint64_t> keys, auto read) {
      wire::Draft draft = wire::draft({wire::Method::get, wire::kObserver},
                                      sizeof(wire::Floats) + keys.size() * sizeof(std::uint64_t));
      draft.writer.value(wire::Floats{table, 0, keys.size()});
      draft.writer.array(std::span<const std::uint64_t>(keys));
      Reader reader(draft.message.bytes());
      const wire::Header header = wire::read_header(reader);
      servers[rank]->handle(header, std::move(reader), [&](Outcome outcome) {
        REQUIRE(std::holds_alternative<Message>(outcome));
        Reader answer(std::get<Message>(outcome).bytes());
        read(answer);
      });
    };
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; key < kKeys; ++key) keys.push_back(key);
    ask(0, keys, [&](Reader& answer) {
      static_cast<void>(answer.value<std::uint64_t>());
      for (std::uint64_t key = 0; key < kKeys; ++key) static_cast<void>(answer.value<std::uint32_t>());
      out.shows.resize(kKeys);
      if (mode != Mode::geo) {
        for (float& shows : out.shows) shows += answer.value<StoredStatistics>().show;
      }
      const std::size_t before = out.values.size();
      while (answer.remaining() > 0) out.values.push_back(answer.value<float>());
      for (std::uint64_t key = 0; mode == Mode::geo && key < kKeys; ++key)
        out.shows[key] += out.values.at(before + 2 * key);
    });
    ask(1, {}, [&](Reader& answer) {
      static_cast<void>(answer.value<std::uint64_t>());
      while (answer.remaining() > 0) out.dense.push_back(answer.value<float>());
    });
  }
  return out;
}

Servers start_servers(const Job& job) {
  Servers servers;
  for (std::uint32_t rank = 0; rank < job.servers; ++rank)
    servers.push_back(std::make_unique<Server>(server_options(job, rank)));
  return servers;
}

Outcomes run(const Job& job) {
  const Servers servers = start_servers(job);
  std::array<bool, kTrainers> sums{true, true};
  const std::uint32_t other = 1 - job.dying;
  std::jthread survivor([&] {
    Life life;
    const auto client = connect(life, servers, job.mode, other, 1);
    std::uint32_t done = 0;
    script(*client, other, job, sums[other], done);
  });
  std::uint32_t done = 0;
  std::uint64_t requests = 0;
  for (std::size_t number = 0; number <= job.deaths.size(); ++number) {
    Life life{number < job.deaths.size() ? job.deaths[number] : Death{}};
    const std::uint64_t incarnation = 100 + number;
    try {
      const auto client = connect(life, servers, job.mode, job.dying, incarnation);
      script(*client, job.dying, job, sums[job.dying], done);
    } catch (const Error& error) {
      REQUIRE_MESSAGE(life.is_dead(), error.what());
    }
    requests = life.requests;
    for (const auto& server : servers) server->lost(job.dying, incarnation);
  }
  survivor.join();
  Outcomes out = results_of(servers, job.mode.mode);
  out.sums_are_right = sums[0] && sums[1];
  out.requests = requests;
  return out;
}

/// The servers and the other trainer die with the one whose death is job.deaths[0],
/// and all are started again.
Outcomes run_after_the_end_of_all(const Job& job, bool makes_checkpoint) {
  std::array<bool, kTrainers> sums{true, true};
  {
    const Servers servers = start_servers(job);
    std::array<Life, kTrainers> lives;
    lives[job.dying].death = job.deaths[0];
    std::array<std::unique_ptr<Client>, kTrainers> clients;
    const auto unless_dead = [&](const auto& act) {
      try {
        act();
      } catch (const Error&) {
        CHECK(lives[job.dying].is_dead());
      }
    };
    for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
      unless_dead(
          [&] { clients[trainer] = connect(lives[trainer], servers, job.mode, trainer, 1 + trainer); });
    }
    const auto live = [&](std::uint32_t trainer) {
      std::uint32_t done = 0;
      if (clients[trainer])
        unless_dead([&] { script(*clients[trainer], trainer, job, sums[trainer], done); });
    };
    std::jthread other([&] { live(1 - job.dying); });
    live(job.dying);
    for (const auto& server : servers) {
      if (makes_checkpoint) server->make_checkpoint();
    }
    lives[1 - job.dying].cut();
  }
  const Servers servers = start_servers(job);
  std::array<Life, kTrainers> lives;
  const auto live = [&](std::uint32_t trainer) {
    const auto client = connect(lives[trainer], servers, job.mode, trainer, 11 + trainer);
    std::uint32_t done = 0;
    script(*client, trainer, job, sums[trainer], done);
  };
  {
    std::jthread other([&] { live(1 - job.dying); });
    live(job.dying);
  }
  Outcomes out = results_of(servers, job.mode.mode);
  out.sums_are_right = sums[0] && sums[1];
  return out;
}

std::vector<float> shows_of_all_examples() {
  std::vector<float> shows(kKeys);
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
    for (std::uint32_t epoch = 0; epoch < kPasses; ++epoch) {
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        for (std::uint64_t batch = 0; batch < batches_of(trainer, epoch, thread); ++batch) {
          for (const std::uint64_t key : keys_of(trainer, epoch, thread, batch)) shows[key] += 1.0f;
        }
      }
    }
  }
  return shows;
}

}  // namespace

TEST_CASE("a trainer may die at every request, and every example counts once") {
  for (const std::uint32_t servers : {1u, 2u}) {
    for (const std::uint32_t dying : {0u, 1u}) {
      Job job{.servers = servers, .dying = dying};
      const Outcomes calm = run(job);
      REQUIRE(calm.shows == shows_of_all_examples());
      REQUIRE(calm.sums_are_right);
      for (std::uint64_t at = 1; at <= calm.requests; ++at) {
        for (const bool has_effect : {false, true}) {
          job.skips = (at + (has_effect ? 1 : 0)) % 3 != 0;
          // Twice: its second life ends anywhere in what the first had done, or after it.
          job.deaths = {{at, has_effect}, {1 + at * 7 % calm.requests, at % 2 == 0}};
          CAPTURE(servers);
          CAPTURE(dying);
          CAPTURE(at);
          CAPTURE(has_effect);
          const Outcomes killed = run(job);
          CHECK(killed.sums_are_right);
          CHECK(killed.shows == calm.shows);
          // With several servers a step that was cut in two is computed again,
          // with what one of them has of it.
          if (servers == 1) CHECK(killed.values == calm.values);
          if (servers == 1) CHECK(killed.dense == calm.dense);
        }
      }
    }
  }
}

TEST_CASE("so may one whose script leaves out the epochs that it has behind it") {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    for (const std::uint32_t servers : {1u, 2u}) {
      Job job{.servers = servers, .resumes = true, .mode = mode_of(mode)};
      const Outcomes calm = run(job);
      REQUIRE(calm.shows == shows_of_all_examples());
      for (std::uint64_t at = 1; at <= calm.requests; ++at) {
        job.deaths = {{at, at % 2 == 0}, {1 + at * 7 % calm.requests, at % 3 == 0}};
        CAPTURE(to_string(mode));
        CAPTURE(servers);
        CAPTURE(at);
        const Outcomes killed = run(job);
        CHECK(killed.sums_are_right);
        CHECK(killed.shows == calm.shows);
        if (mode == Mode::sync && servers == 1) CHECK(killed.values == calm.values);
      }
    }
  }
}

TEST_CASE("in sync mode a script that goes on with other data is refused") {
  const Job job;
  const Servers servers = start_servers(job);
  for (const std::uint64_t data : {7u, 8u}) {
    Life life;
    const auto client = connect(life, servers, job.mode, 0, data);
    if (data == 7) {
      std::jthread other([&] {
        Life others;
        connect(others, servers, job.mode, 1, 1)->begin_epoch({kThreads, 7});
      });
      client->begin_epoch({kThreads, data});
    } else {
      CHECK(text_of([&] {
              client->begin_epoch({kThreads, data});
            })
                .starts_with("trainer 0 cannot go on alone: it was started again in the middle of a pass, "
                             "and begins one over other data"));
    }
    servers[0]->lost(0, data);
  }
}

TEST_CASE("in sync mode a script that leaves out one of two equal passes is refused") {
  const Job job;
  const Servers servers = start_servers(job);
  Life others, lives[2];
  const auto other = connect(others, servers, job.mode, 1, 1);
  auto client = connect(lives[0], servers, job.mode, 0, 7);
  for (int pass = 1; pass <= 2; ++pass) {
    std::jthread also([&] { other->begin_epoch({kThreads, 7}); });
    client->begin_epoch({kThreads, 7});
    also.join();
    for (std::uint32_t t = 0; t < kThreads; ++t) other->leave_epoch(t);
    for (std::uint32_t t = 0; pass == 1 && t < kThreads; ++t) client->leave_epoch(t);
  }
  servers[0]->lost(0, 7);
  client = connect(lives[1], servers, job.mode, 0, 8);
  client->begin_epoch({kThreads, 7});  // to the script the second, and taken for the first
  client->goodbye();
  const std::string said = text_of([&] { other->begin_epoch({kThreads, 7}); });
  CHECK(said.starts_with("trainer 0 cannot go on alone: it was started again, and has ended before"));
}

TEST_CASE("so may one that waits for nobody") {
  for (const TrainerMode& mode : {mode_of(Mode::async), mode_of(Mode::async, 1, 3), mode_of(Mode::half_async),
                                  mode_of(Mode::geo, 1), mode_of(Mode::geo, 2), mode_of(Mode::geo, 100)}) {
    for (const std::uint32_t servers : {1u, 2u}) {
      Job job{.servers = servers, .mode = mode};
      const Outcomes calm = run(job);
      REQUIRE(calm.shows == shows_of_all_examples());
      for (std::uint64_t at = 1; at <= calm.requests; ++at) {
        for (const bool has_effect : {false, true}) {
          job.skips = (at + (has_effect ? 1 : 0)) % 3 != 0;
          job.deaths = {{at, has_effect}, {1 + at * 7 % calm.requests, at % 2 == 0}};
          CAPTURE(to_string(mode.mode));
          CAPTURE(mode.merged);
          CAPTURE(mode.geo_steps);
          CAPTURE(servers);
          CAPTURE(at);
          CAPTURE(has_effect);
          const Outcomes killed = run(job);
          CHECK(killed.sums_are_right);
          CHECK(killed.shows == calm.shows);
        }
      }
    }
  }
}

TEST_CASE("so may the whole job, where servers keep what they have") {
  for (const Mode mode : {Mode::sync, Mode::async, Mode::geo}) {
    const Outcomes calm = run({.servers = 1, .mode = mode_of(mode, 2)});
    for (std::uint64_t at = 1; at < calm.requests; ++at) {
      for (const bool has_effect : {false, true}) {
        const fleetrun::tests::TempDir directory;
        CAPTURE(to_string(mode));
        CAPTURE(at);
        CAPTURE(has_effect);
        const Job job{.servers = 1,
                      .deaths = {{at, has_effect}},
                      .skips = at % 3 != 0,
                      .keeps = directory.path(),
                      .mode = mode_of(mode, 2)};
        const Outcomes killed = run_after_the_end_of_all(job, at % 2 == 0);
        CHECK(killed.sums_are_right);
        CHECK(killed.shows == calm.shows);
        if (mode == Mode::sync) CHECK(killed.values == calm.values);
        if (mode == Mode::sync) CHECK(killed.dense == calm.dense);
      }
    }
  }
}

TEST_CASE("a step that was pulled before all have caught up, and is pushed after that, counts") {
  const Job job{.servers = 2, .mode = mode_of(Mode::geo)};
  const Servers servers = start_servers(job);
  const auto begin = [](Client& client) {
    client.set_dense(1, std::array<float, 3>{});
    client.begin_epoch({kThreads, 7});
  };
  Batch repeated{.keys = {1, 2}}, late{.keys = {3, 4}};
  {
    Life life;
    const auto client = connect(life, servers, job.mode, 0, 1);
    begin(*client);
    repeated.pull(*client);
    // Its difference comes to the first server only.
    life.death.request = life.requests + 2;
    repeated.push_pulled(*client, 0, Mode::geo)->wait();
    CHECK_THROWS_AS(client->goodbye(), Error);
  }
  for (const auto& server : servers) server->lost(0, 1);
  Life life;
  const auto client = connect(life, servers, job.mode, 0, 2);
  begin(*client);
  late.pull(*client);
  repeated.push(*client, 0, Mode::geo)->wait();
  late.push_pulled(*client, 1, Mode::geo)->wait();
  client->goodbye();
  const Outcomes out = results_of(servers, Mode::geo);
  CHECK(out.shows == std::vector<float>{0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(out.dense == std::vector<float>(3, 2.0f));
}
