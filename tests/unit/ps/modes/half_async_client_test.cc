#include "ps/modes/half_async_client.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/counting_client.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using tests::dense_table;
using tests::sparse_table;

namespace {

using Keys = std::vector<std::uint64_t>;
using Values = std::vector<float>;

/// Hands on to a client that somebody else owns.
class Borrowed final : public tests::CountingClient {
 public:
  using CountingClient::CountingClient;
};

struct Fixture {
  std::unique_ptr<Client> servers = std::move(
      make_in_process(2, 1, Mode::half_async, {sparse_table(0, "emb", 1), dense_table(1, "fc", 2)}).front());
  Borrowed* counting = new Borrowed(*servers);
  std::unique_ptr<Client> client = make_half_async_client(std::unique_ptr<Client>(counting));

  Fixture() { servers->set_dense(1, Values{0, 0}); }
  Values rows(const Keys& keys) {
    Values rows(keys.size());
    servers->pull({.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}});
    return rows;
  }
  Values dense() {
    Values values(2);
    servers->pull({.sparse = {}, .dense = {{1, values}}});
    return values;
  }
};

Push step(std::uint32_t thread, const Keys& keys, const Values& gradients, const Values& slope) {
  return {.thread = thread,
          .sparse = {{.table = 0, .keys = keys, .gradients = gradients}},
          .dense = {{.table = 1, .gradients = slope}}};
}

}  // namespace

TEST_CASE("a step goes when its last thread pushes, as one push of the mean") {
  Fixture job;
  const Keys first_keys{1, 2}, second_keys{2, 3, 3};
  const Values first{4, 4}, second{8, 2, 2}, slope{2, 6};
  job.client->begin_epoch(2);
  auto early = job.client->push_async(step(1, second_keys, second, slope));
  CHECK(job.counting->calls.empty());
  auto late = job.client->push_async(step(0, first_keys, first, slope));
  CHECK(job.counting->calls == std::vector<std::string>{"push rows dense"});
  early->wait();
  late->wait();
  CHECK(job.rows({1, 2, 3}) == Values{2, 6, 2});
  CHECK(job.dense() == Values{2, 6});
}

TEST_CASE("a thread that has left is not waited for, and its leaving completes a step") {
  Fixture job;
  const Keys keys{1};
  const Values one{1}, slope{0, 0};
  job.client->begin_epoch(3);
  auto zero = job.client->push_async(step(0, keys, one, slope));
  job.client->leave_epoch(2);
  CHECK(job.counting->calls.empty());
  job.client->leave_epoch(1);
  zero->wait();
  CHECK(job.rows({1}) == Values{1});
  job.client->push(step(0, keys, one, slope));
  CHECK(job.rows({1}) == Values{2});
  job.client->leave_epoch(0);
  // Outside a pass a push goes alone.
  job.client->push(step(7, keys, one, slope));
  CHECK(job.rows({1}) == Values{3});
}

TEST_CASE("threads with uneven work all end, and nothing is lost") {
  Fixture job;
  constexpr std::uint32_t kThreads = 4;
  job.client->begin_epoch(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const Keys keys{thread};
        const Values one{1}, slope{0, 0};
        for (std::uint32_t i = 0; i < 20 * (thread + 1); ++i)
          job.client->push(step(thread, keys, one, slope));
        job.client->leave_epoch(thread);
      });
    }
  }
  // Steps of 4, 3, 2 and 1 threads, 20 of each.
  CHECK(job.rows({0, 1, 2, 3})[0] == doctest::Approx(20 / 4.0));
  CHECK(job.rows({0, 1, 2, 3})[3] == doctest::Approx(20 / 4.0 + 20 / 3.0 + 20 / 2.0 + 20));
  CHECK(job.counting->calls.size() == 80);
}

TEST_CASE("every thread of a step hears why it failed, and pushing twice is refused") {
  Fixture job;
  const Keys keys{1};
  const Values one{1}, slope{0, 0}, wrong{0, 0, 0};
  job.client->begin_epoch(2);
  auto first = job.client->push_async(step(0, keys, one, slope));
  CHECK(tests::text_of([&] { job.client->push(step(0, keys, one, slope)); }) ==
        "thread 0 pushes twice in one step");
  CHECK(tests::text_of([&] { job.client->push(step(1, keys, one, wrong)); }) ==
        "table 1: one thread pushes 2 gradients, another one 3");
  CHECK(tests::text_of([&] { first->wait(); }) == "table 1: one thread pushes 2 gradients, another one 3");
  CHECK(job.rows({1}) == Values{0});
}
