// The client and its watches, with a real etcd.
#include "launcher/etcd/etcd_client.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "launcher/etcd/key_follower.h"
#include "runtime/base/error.h"
#include "tests/support/etcd_server.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;
using Kind = EtcdFailure::Kind;

namespace {

EtcdAnswer read(const EtcdAddress& address, const std::string& key) {
  return answer_in(ask(address, read_key(key)).body);
}

void put(const EtcdAddress& address, const std::string& key, const std::string& value) {
  REQUIRE_FALSE(ask(address, put_key({key, value, 0})).failure.has_value());
}

/// What a follower was told, as text: "v1 v2 -".
struct Told {
  std::string text;
  KeyListener listener() {
    return {.on_value = [this](const auto& entry,
                               auto) { text += (text.empty() ? "" : " ") + (entry ? entry->value : "-"); },
            .on_trouble = {}};
  }
};

void switch_logins_on(const EtcdAddress& address) {
  using nlohmann::json;
  for (const auto& [path, body] : std::vector<std::pair<const char*, json>>{
           {"/v3/auth/user/add", {{"name", "root"}, {"password", "s:ecret"}}},
           {"/v3/auth/user/add", {{"name", "poor"}, {"password", "p"}}},
           {"/v3/auth/role/add", {{"name", "root"}}},
           {"/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}}},
           {"/v3/auth/enable", json::object()}})
    REQUIRE_FALSE(ask(address, {path, body.dump()}).failure.has_value());
}

}  // namespace

TEST_CASE("keys of any bytes are written, read and changed under a condition" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  const std::string key("/f/\0\xff%", 6), value("\n\0\x80", 3);
  put(etcd.address(), key, value);
  const EtcdAnswer answer = read(etcd.address(), key);
  REQUIRE(answer.entries.size() == 1);
  CHECK(answer.entries[0].value == value);
  const std::int64_t modified = answer.entries[0].modified;
  const auto change = [&](std::int64_t condition) {
    return answer_in(
        ask(etcd.address(), run_transaction({.compares = {{EtcdCompare::What::modified, key, condition}},
                                             .puts = {{key, "new", 0}},
                                             .deletes = {},
                                             .read = {key}}))
            .body);
  };
  CHECK_FALSE(change(modified + 1).succeeded);
  const EtcdAnswer changed = change(modified);
  CHECK(changed.succeeded);
  CHECK(changed.entries.at(0).value == "new");
}

TEST_CASE("a lease takes its keys away, and one that is gone cannot be kept" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  CHECK_FALSE(ask(etcd.address(), grant_lease(77, 30s)).failure.has_value());
  CHECK(ask(etcd.address(), grant_lease(77, 30s)).failure->kind == Kind::exists);
  CHECK(time_to_live_in(ask(etcd.address(), keep_lease(77)).body) == 30);
  REQUIRE_FALSE(ask(etcd.address(), put_key({"/f/leased", "x", 77})).failure.has_value());
  CHECK(read(etcd.address(), "/f/leased").entries.at(0).lease == 77);
  CHECK_FALSE(ask(etcd.address(), revoke_lease(77)).failure.has_value());
  CHECK(read(etcd.address(), "/f/leased").entries.empty());
  CHECK(time_to_live_in(ask(etcd.address(), keep_lease(77)).body) == 0);
  CHECK(ask(etcd.address(), put_key({"/f/leased", "x", 77})).failure->kind == Kind::missing);
}

TEST_CASE("nobody at the address is said when the patience is over") {
  PortLeases leases;
  const EtcdAddress nobody{.endpoints = {leases.lease_free("127.0.0.1")}};
  const auto begin = std::chrono::steady_clock::now();
  const EtcdReply reply = ask(nobody, read_key("/f"), 300ms);
  CHECK(std::chrono::steady_clock::now() - begin >= 300ms);
  REQUIRE(reply.failure.has_value());
  CHECK(reply.failure->kind == Kind::unavailable);
  CHECK(reply.failure->text == to_string(nobody.endpoints[0]) + ": Connection refused");
}

TEST_CASE("a name that nobody knows is said" * doctest::skip(!has_etcd())) {
  const EtcdReply reply = ask({.endpoints = {{"no-such-host.invalid", 2379}}}, read_key("/f"), 300ms);
  REQUIRE(reply.failure.has_value());
  CHECK(reply.failure->kind == Kind::unavailable);
  CHECK(reply.failure->text.find("no-such-host.invalid:2379: ") == 0);
}

TEST_CASE("a member that does not answer is left for another one" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  PortLeases leases;
  const Endpoint nobody = leases.lease_free("127.0.0.1"), other = leases.lease_free("127.0.0.1");
  for (int i = 0; i < 8; ++i) {  // whichever the client asks first
    const EtcdReply reply = ask({.endpoints = {nobody, etcd.address().endpoints[0], other}}, read_key("/f"));
    CHECK_FALSE(reply.failure.has_value());
  }
}

TEST_CASE("logins are made, renewed when etcd forgets them, and refused without showing them" *
          doctest::skip(!has_etcd())) {
  EtcdCluster etcd;
  switch_logins_on(etcd.address());
  const auto as = [&](const char* user, const char* password) {
    EtcdAddress address = etcd.address();
    address.user = user;
    address.password = password;
    return address;
  };
  CHECK(ask(etcd.address(), read_key("/f")).failure->kind == Kind::login);
  CHECK(ask(as("poor", "p"), read_key("/f")).failure->kind == Kind::denied);
  const EtcdReply wrong = ask(as("root", "wr0ng"), read_key("/f"));
  REQUIRE(wrong.failure.has_value());
  CHECK(wrong.failure->kind == Kind::refused);
  CHECK(wrong.failure->text.find("authentication failed") != std::string::npos);
  CHECK(wrong.failure->text.find("wr0ng") == std::string::npos);

  boost::asio::io_context loop;
  const auto client = make_etcd_client(loop, as("root", "s:ecret"));
  CHECK(client->shown().find("ecret") == std::string::npos);
  Told told;
  const auto follower = follow_key(loop, *client, "/f/a", told.listener(), {.check = 100ms});
  REQUIRE(run_until(loop, [&] { return told.text == "-"; }));
  etcd.kill(0);  // its tokens are forgotten
  etcd.start(0);
  REQUIRE_FALSE(ask(as("root", "s:ecret"), put_key({"/f/a", "1", 0})).failure.has_value());
  CHECK(run_until(loop, [&] { return told.text == "- 1"; }));
}

TEST_CASE("a login for an etcd without logins is not needed" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  EtcdAddress address = etcd.address();
  address.user = "root";
  address.password = "x";
  CHECK_FALSE(ask(address, read_key("/f")).failure.has_value());
}

TEST_CASE("a follower is told each change of its key and of no other" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  boost::asio::io_context loop;
  const auto client = make_etcd_client(loop, etcd.address());
  Told told;
  const auto follower = follow_key(loop, *client, "/f/a", told.listener());
  REQUIRE(run_until(loop, [&] { return told.text == "-"; }));
  put(etcd.address(), "/f/ab", "x");
  put(etcd.address(), "/f/a", "1");
  put(etcd.address(), "/f/a", "2");
  REQUIRE(run_until(loop, [&] { return told.text == "- 1 2"; }));
  ask(etcd.address(), run_transaction({.compares = {}, .puts = {}, .deletes = {"/f/a"}, .read = {}}));
  CHECK(run_until(loop, [&] { return told.text == "- 1 2 -"; }));
}

TEST_CASE("a watch that is cut goes on where it was, and misses nothing" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  BadNetwork network(etcd.address().endpoints[0], etcd.directory());
  boost::asio::io_context loop;
  const auto client = make_etcd_client(loop, network.address());
  Told told;
  const auto follower = follow_key(loop, *client, "/f/a", told.listener());
  put(etcd.address(), "/f/a", "1");
  REQUIRE(run_until(loop, [&] { return told.text.ends_with("1"); }));
  put(etcd.address(), "/f/a", "2");  // over the watch, which therefore is there
  REQUIRE(run_until(loop, [&] { return told.text.ends_with("1 2"); }));
  for (const char* cut : {"reset", "close"}) {
    REQUIRE(network.obey(cut).starts_with("ok"));
    told.text.clear();
    put(etcd.address(), "/f/a", "3");
    put(etcd.address(), "/f/a", "4");
    CHECK(run_until(loop, [&] { return told.text == "3 4"; }));
  }
}

TEST_CASE("what etcd has forgotten meanwhile is read anew" * doctest::skip(!has_etcd())) {
  const EtcdCluster etcd;
  BadNetwork network(etcd.address().endpoints[0], etcd.directory());
  boost::asio::io_context loop;
  const auto client = make_etcd_client(loop, network.address());
  Told told;
  const auto follower = follow_key(loop, *client, "/f/a", told.listener());
  put(etcd.address(), "/f/a", "1");
  REQUIRE(run_until(loop, [&] { return told.text.ends_with("1"); }));
  put(etcd.address(), "/f/a", "2");
  REQUIRE(run_until(loop, [&] { return told.text.ends_with("1 2"); }));
  REQUIRE(network.obey("reset").starts_with("ok"));
  for (const char* value : {"3", "4", "5"}) put(etcd.address(), "/f/a", value);
  const std::int64_t revision = read(etcd.address(), "/f/a").revision;
  REQUIRE_FALSE(ask(etcd.address(),
                    {"/v3/kv/compaction", nlohmann::json({{"revision", std::to_string(revision)}}).dump()})
                    .failure.has_value());
  CHECK(run_until(loop, [&] { return told.text.ends_with("5"); }));
  CHECK(told.text.find("4") == std::string::npos);
  put(etcd.address(), "/f/a", "6");
  CHECK(run_until(loop, [&] { return told.text.ends_with("5 6"); }));
}
