// Elections at a real etcd.
#include "launcher/etcd/etcd_discovery.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/etcd/state_writer.h"
#include "runtime/base/error.h"
#include "tests/support/elector.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

std::vector<EtcdEntry> entries(const EtcdAddress& address, const std::string& key) {
  return answer_in(ask(address, read_key(key)).body).entries;
}

}  // namespace

TEST_CASE("one of many leads, and the others follow it" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  std::vector<std::unique_ptr<Elector>> electors;
  for (std::uint16_t port = 1; port <= 8; ++port)
    electors.push_back(std::make_unique<Elector>(loop, job_at(etcd.address()), port));
  REQUIRE(run_until(loop, [&] {
    return std::all_of(electors.begin(), electors.end(),
                       [](const auto& elector) { return elector->lines.size() == 2; });
  }));
  std::string leader;
  for (std::size_t i = 0; i < electors.size(); ++i)
    if (electors[i]->last() == "lead -") leader += std::to_string(i + 1);
  REQUIRE(leader.size() == 1);
  for (const auto& elector : electors)
    if (elector->last() != "lead -") CHECK(elector->last() == "follow " + leader);
}

TEST_CASE("a leader is told at each renewal how long nobody else can lead" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector leader(loop, job_at(etcd.address()), 1), other(loop, job_at(etcd.address()), 2);
  Elector* elector = nullptr;
  REQUIRE(run_until(loop, [&] {
    for (Elector* each : {&leader, &other}) elector = each->leads.size() >= 3 ? each : elector;
    return elector != nullptr;
  }));
  CHECK(std::is_sorted(elector->leads.begin(), elector->leads.end()));
  CHECK(elector->leads.back() - elector->leads.front() >= 2 * job_at(etcd.address()).renewal);
  CHECK((elector == &leader ? other : leader).leads.empty());
}

TEST_CASE("one that may not coordinate waits for one that may" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  EtcdDiscoverySettings settings = job_at(etcd.address());
  settings.may_coordinate = false;
  Elector follower(loop, settings, 1);
  CHECK_FALSE(run_until(
      loop, [&] { return follower.lines.size() > 1; }, 300ms));
  Elector leader(loop, job_at(etcd.address()), 2);
  CHECK(run_until(loop, [&] { return follower.last() == "follow 2"; }));
}

TEST_CASE("jobs with other ids do not meet" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector one(loop, job_at(etcd.address()), 1);
  EtcdDiscoverySettings settings = job_at(etcd.address());
  settings.job_id = "job2";
  Elector other(loop, settings, 2);
  CHECK(run_until(loop, [&] { return one.last() == "lead -" && other.last() == "lead -"; }));
}

TEST_CASE("what a leader publishes is found by its successor, whose fence is greater" *
          doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  auto first = std::make_unique<Elector>(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return first->told("lead"); }));
  const std::uint64_t fence = first->fence;
  Elector second(loop, job_at(etcd.address()), 2);
  REQUIRE(run_until(loop, [&] { return second.last() == "follow 1"; }));
  for (const char* state : {"a", "b", "b"}) first->discovery->publish(state);
  REQUIRE(run_until(loop, [&] { return first->lines.size() == 5; }));
  CHECK(first->lines == std::vector<std::string>{"", "lead -", "stored", "stored", "stored"});
  first->discovery->stop(false);  // the launcher ends, the job does not
  REQUIRE(run_until(
      loop, [&] { return second.last() == "lead b"; }, 2500ms));  // well before a lease is over
  CHECK(second.fence > fence);
  // The state was handed over to the second one's lease.
  second.discovery->publish("c");
  CHECK(run_until(loop, [&] { return second.last() == "stored"; }));
  CHECK(entries(etcd.address(), "/fleetrun/job/state").at(0).value == "c");
}

TEST_CASE("a job that is over leaves nothing, and its id is free at once" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector first(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return first.told("lead"); }));
  first.discovery->publish("a");
  REQUIRE(run_until(loop, [&] { return first.last() == "stored"; }));
  ask(etcd.address(), put_key({"/fleetrun/job2/state", "another's", 0}));
  ask(etcd.address(), put_key({"/fleetrun/job/stateful", "another's", 0}));
  first.discovery->stop(true);
  CHECK(entries(etcd.address(), "/fleetrun/job/state").empty());
  CHECK(entries(etcd.address(), "/fleetrun/job/coordinator").empty());
  CHECK(entries(etcd.address(), "/fleetrun/job2/state").size() == 1);
  CHECK(entries(etcd.address(), "/fleetrun/job/stateful").size() == 1);
  Elector again(loop, job_at(etcd.address()), 1);
  CHECK(run_until(
      loop, [&] { return again.last() == "lead -"; }, 2500ms));
}

TEST_CASE("a leader that is killed is replaced when its lease is over" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  const auto leader = elector_process(etcd.address(), 1);
  REQUIRE(leader->line(kLong) == "lead -");
  REQUIRE(leader->line(kLong) == "stored");
  boost::asio::io_context loop;
  Elector second(loop, job_at(etcd.address()), 2);
  REQUIRE(run_until(loop, [&] { return second.last() == "follow 1"; }));
  leader->end(SIGKILL);
  CHECK(run_until(loop, [&] { return second.last() == "lead state 1"; }));
}

TEST_CASE("a leader that was stopped learns that it leads no more, and follows" *
          doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  const auto leader = elector_process(etcd.address(), 1);
  REQUIRE(leader->line(kLong) == "lead -");
  REQUIRE(leader->line(kLong) == "stored");
  boost::asio::io_context loop;
  Elector second(loop, job_at(etcd.address()), 2);
  REQUIRE(run_until(loop, [&] { return second.last() == "follow 1"; }));
  leader->signal(SIGSTOP);
  REQUIRE(run_until(loop, [&] { return second.last() == "lead state 1"; }));
  second.discovery->publish("newer");
  REQUIRE(run_until(loop, [&] { return second.last() == "stored"; }));
  leader->signal(SIGCONT);
  std::vector<std::string> said;
  while (said.empty() || !said.back().starts_with("follow")) {
    const auto line = leader->line(kLong);
    REQUIRE(line.has_value());
    if (!line->starts_with("doubt")) said.push_back(*line);
  }
  CHECK(said == std::vector<std::string>{"lost: another launcher leads now, at 127.0.0.1:2", "follow 2"});
  CHECK(entries(etcd.address(), "/fleetrun/job/state").at(0).value == "newer");
}

TEST_CASE("a write under an older fence changes nothing" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector leader(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
  leader.discovery->publish("good");
  REQUIRE(run_until(loop, [&] { return leader.last() == "stored"; }));
  const auto client = make_etcd_client(loop, etcd.address());
  const auto stale = make_state_writer(loop, *client, job_keys("job"),
                                       static_cast<std::int64_t>(leader.fence) - 1, std::nullopt, 30s);
  std::optional<StateOutcome::Kind> outcome;
  stale->write("stale", [&](const StateOutcome& got) { outcome = got.kind; });
  REQUIRE(run_until(loop, [&] { return outcome.has_value(); }));
  CHECK(*outcome == StateOutcome::Kind::deposed);
  CHECK(entries(etcd.address(), "/fleetrun/job/state").at(0).value == "good");
}

TEST_CASE("a leader whose key was removed stands again, and goes on without a word" *
          doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector leader(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
  const std::int64_t lease = entries(etcd.address(), "/fleetrun/job/coordinator").at(0).lease;
  ask(etcd.address(), revoke_lease(lease));
  leader.discovery->publish("a");
  CHECK(run_until(loop, [&] { return leader.last() == "stored"; }));
  CHECK_FALSE(leader.told("lost"));
  const EtcdEntry key = entries(etcd.address(), "/fleetrun/job/coordinator").at(0);
  CHECK(key.lease != lease);
  CHECK(key.created > static_cast<std::int64_t>(leader.fence));
}

TEST_CASE("an etcd that is not there is named when the time to join is over") {
  PortLeases leases;
  const Endpoint nobody = leases.lease_free("127.0.0.1");
  boost::asio::io_context loop;
  EtcdDiscoverySettings settings = job_at({.endpoints = {nobody}, .user = "root", .password = "hidden"});
  settings.join_timeout = 1s;
  Elector elector(loop, settings, 1);
  REQUIRE(run_until(loop, [&] { return elector.told("failed"); }));
  const std::string shown = to_string(nobody);
  CHECK(elector.last().starts_with("failed: etcd://" + shown + " could not be reached for "));
  CHECK(elector.last().ends_with(" s: " + shown +
                                 ": Connection refused | check that etcd runs there, and that its " +
                                 "client port is open to this host"));
  CHECK(elector.lines.size() == 2);
}

TEST_CASE("a key that no fleetrun has written is refused" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  ask(etcd.address(), put_key({"/fleetrun/job/coordinator", "rm -rf /", 0}));
  boost::asio::io_context loop;
  Elector elector(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return elector.told("failed"); }));
  CHECK(elector.last() ==
        "failed: 'rm -rf /' was not written by fleetrun | remove the key, or choose another "
        "job id with --job_id");
}
