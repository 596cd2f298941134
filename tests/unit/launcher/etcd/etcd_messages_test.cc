// The answers are those of an etcd 3.4.23.
#include "launcher/etcd/etcd_messages.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using Kind = EtcdFailure::Kind;
using nlohmann::json;

namespace {

std::string data_error(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.hint().empty());
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("requests are what the gateway understands") {
  CHECK(grant_lease(4711, std::chrono::seconds(3)).path == "/v3/lease/grant");
  CHECK(json::parse(grant_lease(4711, std::chrono::seconds(3)).body) == json({{"ID", "4711"}, {"TTL", "3"}}));
  CHECK(json::parse(keep_lease(7).body) == json({{"ID", "7"}}));
  CHECK(json::parse(revoke_lease(7).body) == json({{"ID", "7"}}));
  CHECK(json::parse(read_key("/f/a").body) == json({{"key", "L2YvYQ=="}}));
  CHECK(json::parse(put_key({"/f/a", "hello", 0}).body) ==
        json({{"key", "L2YvYQ=="}, {"value", "aGVsbG8="}}));
  CHECK(json::parse(watch_key("/f/a", 9).body) ==
        json::parse(R"({"create_request":{"key":"L2YvYQ==","start_revision":"9"}})"));
  CHECK(json::parse(log_in("root", "a\"b").body) == json({{"name", "root"}, {"password", "a\"b"}}));
}

TEST_CASE("a transaction reads the same keys whether it succeeds or not") {
  const EtcdRequest request = run_transaction(
      {.compares = {{EtcdCompare::What::created, "/f/a", 0}, {EtcdCompare::What::modified, "/f/b", 5}},
       .puts = {{"/f/a", "hello", 4711}},
       .deletes = {"/f/c"},
       .read = {"/f/a"}});
  CHECK(request.path == "/v3/kv/txn");
  CHECK(json::parse(request.body) == json::parse(R"({
    "compare": [{"key":"L2YvYQ==","target":"CREATE","result":"EQUAL","create_revision":"0"},
                {"key":"L2YvYg==","target":"MOD","result":"EQUAL","mod_revision":"5"}],
    "success": [{"request_put":{"key":"L2YvYQ==","value":"aGVsbG8=","lease":"4711"}},
                {"request_delete_range":{"key":"L2YvYw=="}},
                {"request_range":{"key":"L2YvYQ=="}}],
    "failure": [{"request_range":{"key":"L2YvYQ=="}}]})"));
}

TEST_CASE("answers to reads and transactions are understood") {
  const EtcdEntry entry{.key = "/f/a", .value = "hello", .created = 2, .modified = 3, .lease = 4711};
  CHECK(answer_in(
            R"({"header":{"cluster_id":"15875391935852295136","revision":"2","raft_term":"2"},"kvs":[{"key":
    "L2YvYQ==","create_revision":"2","mod_revision":"3","version":"1","value":"aGVsbG8=","lease":"4711"}],"count":"1"})") ==
        EtcdAnswer{2, false, {entry}});
  CHECK(answer_in(R"({"header":{"revision":"2"}})") == EtcdAnswer{2, false, {}});
  CHECK(
      answer_in(
          R"({"header":{"revision":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}]})") ==
      EtcdAnswer{2, true, {}});
  CHECK(
      answer_in(
          R"({"header":{"revision":"2"},"responses":[{"response_range":{"header":{"revision":"2"},"kvs":[{"key":
    "L2YvYQ==","create_revision":"2","mod_revision":"3","version":"1","value":"aGVsbG8=","lease":"4711"}],"count":"1"}}]})") ==
      EtcdAnswer{2, false, {entry}});
}

TEST_CASE("a lease that is gone has no time to live") {
  CHECK(time_to_live_in("{\"result\":{\"header\":{\"revision\":\"1\"},\"ID\":\"4711\",\"TTL\":\"3\"}}\n") ==
        3);
  CHECK(time_to_live_in("{\"result\":{\"header\":{\"revision\":\"1\"},\"ID\":\"99\"}}\n") == 0);
}

TEST_CASE("failures are told apart by what can be done about them") {
  const auto kind = [](int status, const char* body) { return failure_in(status, body).value().kind; };
  CHECK(failure_in(200, "{}") == std::nullopt);
  CHECK(
      kind(
          412,
          R"({"error":"etcdserver: lease already exists","message":"etcdserver: lease already exists","code":9})") ==
      Kind::exists);
  CHECK(kind(404, R"({"message":"etcdserver: requested lease not found","code":5})") == Kind::missing);
  CHECK(kind(412, R"({"message":"etcdserver: authentication is not enabled","code":9})") == Kind::refused);
  CHECK(kind(401, R"({"message":"etcdserver: invalid auth token","code":16})") == Kind::login);
  CHECK(kind(400, R"({"message":"etcdserver: revision of auth store is old","code":3})") == Kind::login);
  CHECK(kind(400, R"({"message":"etcdserver: user name is empty","code":3})") == Kind::login);
  CHECK(
      kind(400, R"({"message":"etcdserver: authentication failed, invalid user ID or password","code":3})") ==
      Kind::refused);
  CHECK(kind(403, R"({"message":"etcdserver: permission denied","code":7})") == Kind::denied);
  CHECK(kind(503, R"({"message":"etcdserver: request timed out","code":14})") == Kind::unavailable);
  CHECK(kind(503, "<html>") == Kind::unavailable);
  CHECK(failure_in(404, "Not Found\n") ==
        EtcdFailure{Kind::refused, "HTTP status 404; is it an etcd of version 3.4 or later?"});
  CHECK(failure_in(403, R"({"message":"etcdserver: permission denied","code":7})")->text ==
        "etcdserver: permission denied");
}

TEST_CASE("lines of a watch are understood") {
  CHECK(watch_news_in(R"({"result":{"header":{"revision":"3"},"created":true}})") ==
        EtcdWatchNews{.revision = 3});
  const EtcdWatchNews put = watch_news_in(
      R"({"result":{"header":{"revision":"5"},"events":[{"kv":{"key":"L2YvYQ==","create_revision":"5",
          "mod_revision":"5","version":"1","value":"aGVsbG8=","lease":"7"}}]}})");
  CHECK(put.changes ==
        std::vector<EtcdChange>{
            {false, {.key = "/f/a", .value = "hello", .created = 5, .modified = 5, .lease = 7}}});
  const EtcdWatchNews removed = watch_news_in(
      R"({"result":{"header":{"revision":"6"},"events":[{"type":"DELETE","kv":{"key":"L2YvYQ==","mod_revision":"6"}}]}})");
  CHECK(removed.changes == std::vector<EtcdChange>{{true, {.key = "/f/a", .modified = 6}}});
  const EtcdWatchNews compacted =
      watch_news_in(R"({"result":{"header":{"raft_term":"2"},"canceled":true,"compact_revision":"3"}})");
  CHECK(compacted.ended);
  const EtcdWatchNews failed = watch_news_in(
      R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader","http_status":"Service Unavailable"}})");
  CHECK(failed.ended);
  CHECK(failed.failure == EtcdFailure{Kind::unavailable, "etcdserver: no leader"});
}

TEST_CASE("what is no answer of etcd is refused") {
  CHECK(data_error([] { answer_in("<html>"); }) == "etcd's answer is not a JSON object");
  CHECK(data_error([] { answer_in("[]"); }) == "etcd's answer is not a JSON object");
  CHECK(data_error([] { answer_in(R"({"header":7})"); }) ==
        "etcd's answer has a 'header' that is not an object");
  CHECK(data_error([] { answer_in(R"({"header":{"revision":"x"}})"); }) ==
        "etcd's answer has a 'revision' that is not a number");
  CHECK(data_error([] { answer_in(R"({"kvs":{}})"); }) == "etcd's answer has a 'kvs' that is not a list");
  CHECK(data_error([] { answer_in(R"({"kvs":[1]})"); }) ==
        "etcd's answer has an entry that is not an object");
  CHECK(data_error([] { answer_in(R"({"kvs":[{"key":"%"}]})"); }) ==
        "etcd's answer has a 'key' that is not base64");
  CHECK(data_error([] { watch_news_in(R"({"result":{"events":[1]}})"); }) ==
        "etcd's answer has an event that is not an object");
  CHECK(data_error([] { token_in("{}"); }) == "etcd's answer to a login has no token");
  CHECK(data_error([] { token_in(R"({"token":"a\nb"})"); }) == "etcd's token has a line break");
  CHECK(token_in(R"({"header":{},"token":"tNqgWb.9"})") == "tNqgWb.9");
}
