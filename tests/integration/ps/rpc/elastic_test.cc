// Trainers that come, go, and wake up too late, over gRPC on the loopback interface,
// with the worlds that fleetrun tells.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "runtime/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/ps_connect.h"

using fleetrun::Error;
using fleetrun::ErrorKind;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;

namespace {

TableConfig sum_table() {
  TableConfig config;
  config.name = "sum";
  config.kind = TableConfig::Kind::sparse;
  config.width = 1;
  config.rule.kind = UpdateRule::Kind::sum;
  return config;
}

const std::vector<TableConfig> kTables{sum_table()};

struct Job {
  Mode mode;
  std::uint32_t trainers;
  std::vector<std::unique_ptr<RpcServer>> servers;
  std::vector<std::string> endpoints;

  Job(Mode in_mode, std::uint32_t in_trainers) : mode(in_mode), trainers(in_trainers) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      servers.push_back(
          std::make_unique<RpcServer>(ServerOptions{rank, 2, trainers, mode, kTables, 1}, "127.0.0.1:0"));
      endpoints.push_back(servers.back()->endpoint());
    }
  }

  /// "ab": trainer 0 belongs to launcher a, trainer 1 to b; a blank is a free rank.
  void tell(std::uint64_t generation, const std::string& launchers) {
    MembershipUpdate membership_update{generation, true, {}};
    for (std::uint32_t rank = 0; rank < launchers.size(); ++rank)
      if (launchers[rank] != ' ') membership_update.trainers[rank] = launchers.substr(rank, 1);
    for (const auto& server : servers) server->update(membership_update);
  }
  std::unique_ptr<Client> come(std::uint32_t trainer, std::uint64_t generation, const std::string& launcher) {
    return connect_as_told(endpoints, {trainer, trainers, mode, kTables, generation, launcher});
  }
};

// Both servers have some of them.
const std::vector<std::uint64_t> kKeys{1, 2, 3, 4, 5, 6, 7, 8};

void push(Client& client, float amount) {
  const std::vector<float> gradients(kKeys.size(), amount);
  client.push({.thread = 0, .sparse = {{0, kKeys, gradients}}, .dense = {}});
}

std::vector<float> values(Client& client) {
  std::vector<float> rows(kKeys.size());
  client.pull({.sparse = {{0, kKeys, rows}}, .dense = {}});
  return rows;
}

std::vector<float> all(float value) {
  return std::vector<float>(kKeys.size(), value);
}

template <class Work>
auto start(Work work) {
  return std::async(std::launch::async, std::move(work));
}

}  // namespace

TEST_CASE(
    "a trainer that is killed does not end a synchronous job: its step and the barriers go on without it") {
  Job job(Mode::sync, 2);
  job.tell(1, "ab");
  const auto survivor = job.come(0, 1, "a");
  auto victim = job.come(1, 1, "b");
  auto begun = start([&] { survivor->begin_epoch(1); });
  victim->begin_epoch(1);
  begun.get();
  auto step = start([&] { push(*survivor, 2); });
  victim.reset();
  job.tell(2, "a ");
  step.get();
  CHECK(values(*survivor) == all(2));
  push(*survivor, 3);
  survivor->leave_epoch(0);
  survivor->barrier();
  CHECK(values(*survivor) == all(5));
  survivor->goodbye();
  for (const auto& server : job.servers) server->wait();
}

TEST_CASE("a trainer that was asleep while the job went on without it is refused, and told why (F33)") {
  Job job(Mode::async, 2);
  job.tell(1, "ab");
  const auto survivor = job.come(0, 1, "a");
  const auto sleeper = job.come(1, 1, "b");
  push(*sleeper, 1);
  job.tell(3, "a ");
  for (const auto& action : std::vector<std::function<void()>>{
           [&] { push(*sleeper, 10); }, [&] { sleeper->barrier(); }, [&] { sleeper->save("/nowhere"); },
           [&] { sleeper->rows(0); }, [&] { job.come(1, 1, "b"); }}) {
    const Error error = error_of(action);
    CHECK(std::string(error.what()) == "trainer 1 comes with stale epoch 1, the job is at 3");
    CHECK(error.kind() == ErrorKind::config);
  }
  // What the client did not refuse by itself, because its server had ended the connection's attend call.
  // One of them: its refusal ends the hello, whether the other server has heard of it or not.
  CHECK(job.servers[0]->stale_requests() + job.servers[1]->stale_requests() >= 1);
  CHECK(values(*survivor) == all(1));
  survivor->barrier();
  job.tell(4, "ac");
  const auto successor = job.come(1, 4, "c");
  CHECK(successor->is_late());
  CHECK(std::string(error_of([&] { job.come(1, 1, "b"); }).what()) ==
        "trainer 1 comes with stale epoch 1, the job is at 4");
  push(*successor, 4);
  CHECK(values(*survivor) == all(5));
}

TEST_CASE("a trainer that comes late finds the parameters, joins the pass, and is counted at the end") {
  Job job(Mode::sync, 1);
  job.tell(1, "a");
  const auto first = job.come(0, 1, "a");
  CHECK(!first->is_late());
  first->barrier();
  first->begin_epoch(1);
  push(*first, 1);
  // It may be there before the servers have heard of its world.
  const auto second = job.come(1, 2, "b");
  CHECK(second->is_late());
  job.tell(2, "ab");
  CHECK(values(*second) == all(1));
  second->begin_epoch(1);
  auto step = start([&] { push(*first, 2); });
  push(*second, 4);
  step.get();
  CHECK(values(*first) == all(4));  // the average was added
  first->leave_epoch(0);
  push(*second, 1);
  second->leave_epoch(0);
  auto barrier = start([&] { first->barrier(); });
  second->barrier();
  barrier.get();
  std::array<double, 2> mine{1, 0};
  std::array<double, 2> others{0, 1};
  auto sum = start([&] { first->all_reduce_sum(mine); });
  second->all_reduce_sum(others);
  sum.get();
  CHECK(mine == std::array<double, 2>{1, 1});
  first->goodbye();
  second->goodbye();
  for (const auto& server : job.servers) server->wait();
}

TEST_CASE("servers do not end before a trainer has come that the world promises, and end when it will not") {
  Job job(Mode::async, 1);
  job.tell(1, "a");
  const auto first = job.come(0, 1, "a");
  job.tell(2, "ab");
  first->goodbye();
  const auto second = job.come(1, 2, "b");
  push(*second, 1);
  CHECK(values(*second) == all(1));
  job.tell(3, "  ");
  for (const auto& server : job.servers) server->wait();
}

TEST_CASE("a trainer of a later world counts its trainers, and one of the same world has to agree") {
  Job job(Mode::async, 1);
  job.tell(1, "a");
  const Error error = error_of([&] { connect_as_told(job.endpoints, {0, 3, Mode::async, kTables, 1, "a"}); });
  CHECK(std::string(error.what()).find("disagree on the number of trainers") != std::string::npos);
  job.tell(2, "abc");
  const auto late = connect_as_told(job.endpoints, {2, 3, Mode::async, kTables, 2, "c"});
  CHECK(late->is_late());
}
