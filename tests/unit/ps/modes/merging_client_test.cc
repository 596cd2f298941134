#include "ps/modes/merging_client.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/counting_client.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using tests::sparse_table;

namespace {

using Keys = std::vector<std::uint64_t>;
using Values = std::vector<float>;

/// Whose pushes stand still until they are let go.
class HeldClient final : public tests::CountingClient {
 public:
  using CountingClient::CountingClient;

  std::unique_ptr<Pending> push_async(const Push& request) override {
    {
      std::unique_lock lock(mutex_);
      ++held_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_open_; });
    }
    return CountingClient::push_async(request);
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int held_ = 0;
  bool is_open_ = false;
};

struct Fixture {
  std::unique_ptr<Client> servers =
      std::move(make_in_process(1, 1, Mode::async, {sparse_table(0, "emb", 1)}).front());
  HeldClient* held = new HeldClient(*servers);
  std::unique_ptr<Client> client;

  explicit Fixture(const MergingOptions& options)
      : client(make_merging_client(std::unique_ptr<Client>(held), options)) {}
  float row(std::uint64_t key) {
    const Keys keys{key};
    Values rows(1);
    servers->pull({.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}});
    return rows[0];
  }
};

}  // namespace

TEST_CASE("pushes that wait are added up, so many at most, while one is being sent") {
  Fixture job({.merged = 3, .waiting = 8});
  const Keys keys{1, 1};
  const Values ones{1, 1};
  const Push push{.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = ones}}, .dense = {}};
  std::vector<std::unique_ptr<Pending>> pending;
  pending.push_back(job.client->push_async(push));
  job.held->wait_for_one();
  for (int i = 0; i < 5; ++i) pending.push_back(job.client->push_async(push));
  job.held->open();
  for (auto& one : pending) one->wait();
  CHECK(job.held->calls.size() == 3);  // 1, 3, 2
  CHECK(job.row(1) == 12.0f);
}

TEST_CASE("a full queue makes threads wait for room, and what is queued at the end is sent") {
  Fixture job({.merged = 2, .waiting = 1});
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&job, thread] {
        const Keys keys{7};
        const Values one{1};
        const Push push{
            .thread = thread, .sparse = {{.table = 0, .keys = keys, .gradients = one}}, .dense = {}};
        for (int i = 0; i < 25; ++i) job.client->push(push);
      });
    }
    job.held->open();
  }
  CHECK(job.row(7) == 100.0f);
}

TEST_CASE("an error comes to those whose pushes were in the message") {
  Fixture job({.merged = 4, .waiting = 4});
  job.held->open();
  const Keys keys{1};
  const Values wrong{1, 2};
  CHECK(tests::text_of([&] {
          job.client->push(
              {.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = wrong}}, .dense = {}});
        }) == "table 'emb': 1 keys of width 1 need 1 floats, there are 2");
  CHECK(tests::text_of([&] { make_merging_client(nullptr, {.merged = 0, .waiting = 1}); }) ==
        "pushes merged: 0, waiting: 1");
}
