// An etcd that dies, and networks that treat it badly.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "launcher/etcd/state_writer.h"
#include "tests/support/elector.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

/// A leader and a follower over `address`, and two published states.
void meet_and_publish(const EtcdAddress& address) {
  boost::asio::io_context loop;
  Elector leader(loop, job_at(address), 1);
  REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
  Elector follower(loop, job_at(address), 2);
  REQUIRE(run_until(loop, [&] { return follower.last() == "follow 1"; }));
  for (const char* state : {"a", "b"}) leader.discovery->publish(state);
  REQUIRE(
      run_until(loop, [&] { return std::count(leader.lines.begin(), leader.lines.end(), "stored") == 2; }));
  CHECK_FALSE(leader.told("lost"));
  CHECK_FALSE(leader.told("not stored"));
  leader.discovery->stop(true);
  CHECK(run_until(loop, [&] { return follower.told("lead"); }));
}

}  // namespace

TEST_CASE("answers byte by byte, or late, are waited for" * doctest::skip(!has_etcd())) {
  for (const char* treatment : {"both slice 1", "both delay 60 40"}) {
    CAPTURE(treatment);
    const EtcdCluster etcd;
    BadNetwork network(etcd.address().endpoints[0], etcd.directory());
    REQUIRE(network.obey(treatment).starts_with("ok"));
    meet_and_publish(network.address());
  }
}

TEST_CASE("answers that are cut off are asked for again" * doctest::skip(!has_etcd())) {
  for (const char* treatment :
       {"down limit 0", "down limit 100 rst", "down limit 450 rst", "down limit 450"}) {
    CAPTURE(treatment);
    const EtcdCluster etcd;
    BadNetwork network(etcd.address().endpoints[0], etcd.directory());
    boost::asio::io_context loop;
    Elector leader(loop, job_at(network.address()), 1);
    REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
    REQUIRE(network.obey(treatment).starts_with("ok"));
    leader.discovery->publish("a");
    const std::string before = network.obey("count");
    REQUIRE(run_until(loop, [&] { return network.obey("count") != before; }));  // a question was cut off
    CHECK_FALSE(run_until(
        loop, [&] { return leader.told("stored"); }, 300ms));
    REQUIRE(network.obey("clear").starts_with("ok"));
    CHECK(run_until(loop, [&] { return leader.told("stored"); }));
    CHECK_FALSE(leader.told("lost"));
  }
}

TEST_CASE("a member that swallows everything is left for another one" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  BadNetwork network(etcd.address().endpoints[0], etcd.directory());
  REQUIRE(network.obey("down hole").starts_with("ok"));
  meet_and_publish({.endpoints = {network.address().endpoints[0], etcd.address().endpoints[0]}});
}

TEST_CASE("a leader goes on while etcd is away, and with it when it is back" * doctest::skip(!has_etcd())) {
  EtcdCluster etcd;
  boost::asio::io_context loop;
  Elector leader(loop, job_at(etcd.address()), 1);
  REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
  leader.discovery->publish("a");
  REQUIRE(run_until(loop, [&] { return leader.last() == "stored"; }));
  etcd.kill(0);
  leader.discovery->publish("b");
  REQUIRE(run_until(loop, [&] { return leader.told("doubt"); }));
  CHECK(leader.last().find("has not answered for 2 s: running processes continue") != std::string::npos);
  // Long enough for its lease to be over.
  CHECK_FALSE(run_until(
      loop, [&] { return leader.lines.size() > 4; }, 2s));
  etcd.start(0);
  REQUIRE(run_until(loop, [&] { return leader.last() == "stored"; }));
  CHECK_FALSE(leader.told("lost"));
  CHECK(answer_in(ask(etcd.address(), read_key("/fleetrun/job/state")).body).entries.at(0).value == "b");
}

TEST_CASE("a leader that alone is cut off from etcd gives up when it is back" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  BadNetwork network(etcd.address().endpoints[0], etcd.directory());
  boost::asio::io_context loop;
  Elector leader(loop, job_at(network.address()), 1);
  REQUIRE(run_until(loop, [&] { return leader.told("lead"); }));
  leader.discovery->publish("a");
  REQUIRE(run_until(loop, [&] { return leader.last() == "stored"; }));
  Elector second(loop, job_at(etcd.address()), 2);
  REQUIRE(run_until(loop, [&] { return second.last() == "follow 1"; }));
  REQUIRE(network.obey("both hole").starts_with("ok"));
  leader.discovery->publish("b");
  REQUIRE(run_until(loop, [&] { return second.last() == "lead a"; }));
  CHECK(leader.told("doubt"));  // before another one could be elected
  CHECK_FALSE(leader.told("lost"));
  second.discovery->publish("c");
  REQUIRE(run_until(loop, [&] { return second.last() == "stored"; }));
  REQUIRE(network.obey("clear").starts_with("ok"));
  REQUIRE(network.obey("reset").starts_with("ok"));
  REQUIRE(run_until(loop, [&] { return leader.last() == "follow 2"; }));
  CHECK(leader.told("not stored"));
  CHECK(leader.told("lost: another launcher leads now, at 127.0.0.1:2"));
  CHECK(answer_in(ask(etcd.address(), read_key("/fleetrun/job/state")).body).entries.at(0).value == "c");
}

TEST_CASE("a cluster of three that loses one, whichever it is, goes on" * doctest::skip(!has_etcd())) {
  EtcdCluster etcd(3);
  boost::asio::io_context loop;
  Elector leader(loop, job_at(etcd.address()), 1), follower(loop, job_at(etcd.address()), 2);
  REQUIRE(run_until(loop, [&] { return leader.lines.size() == 2 && follower.lines.size() == 2; }));
  Elector& first = leader.told("lead") ? leader : follower;
  Elector& second = leader.told("lead") ? follower : leader;
  for (std::size_t member = 0; member < 3; ++member) {
    CAPTURE(member);
    etcd.kill(member);
    const std::size_t said = first.lines.size();
    first.discovery->publish("without " + std::to_string(member));
    CHECK(run_until(loop, [&] { return first.last() == "stored" && first.lines.size() > said; }));
    etcd.start(member);
    ask(etcd.address(member), read_key("/ready"));
  }
  CHECK_FALSE(first.told("lost"));
  CHECK(second.lines.size() == 2);
  first.discovery->stop(true);
  CHECK(run_until(loop, [&] { return second.last() == "lead -"; }));
}

TEST_CASE("a login that etcd does not accept, or that may do too little, is said" *
          doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  using nlohmann::json;
  for (const auto& [path, body] : std::vector<std::pair<const char*, json>>{
           {"/v3/auth/user/add", {{"name", "root"}, {"password", "good"}}},
           {"/v3/auth/user/add", {{"name", "poor"}, {"password", "p"}}},
           {"/v3/auth/role/add", {{"name", "root"}}},
           {"/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}}},
           {"/v3/auth/enable", json::object()}})
    REQUIRE_FALSE(ask(etcd.address(), {path, body.dump()}).failure.has_value());
  const auto said = [&](const char* user, const char* password) {
    boost::asio::io_context loop;
    EtcdAddress address = etcd.address();
    address.user = user;
    address.password = password;
    Elector elector(loop, job_at(address), 1);
    REQUIRE(run_until(loop, [&] { return elector.lines.size() > 1; }));
    return elector.last();
  };
  const std::string shown = to_string(etcd.address());
  CHECK(said("", "") == "failed: " + shown +
                            " wants a login: etcdserver: user name is empty | write it as --master "
                            "etcd://USER:PASSWORD@HOST:2379");
  CHECK(said("root", "bad") == "failed: " + shown +
                                   " refused: etcdserver: authentication failed, invalid user ID or "
                                   "password | check the user and the password in --master");
  CHECK(said("poor", "p") == "failed: " + shown +
                                 " does not let user 'poor' use /fleetrun/job/: etcdserver: permission "
                                 "denied | grant it: etcdctl role grant-permission ROLE readwrite "
                                 "--prefix=true /fleetrun/");
  CHECK(said("root", "good") == "lead -");
}
