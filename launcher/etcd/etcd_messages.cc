#include "launcher/etcd/etcd_messages.h"

#include <array>
#include <nlohmann/json.hpp>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestReason = 300;

// Codes of gRPC that the gateway passes on.
enum Code {
  deadline_exceeded = 4,
  not_found = 5,
  denied = 7,
  precondition = 9,
  unavailable = 14,
  login = 16
};

EtcdRequest request(const char* path, const json& body) {
  return {path, json_text(body)};
}

json number(std::int64_t value) {
  return std::to_string(value);
}

json put_json(const EtcdPut& put) {
  json body = {{"key", base64(put.key)}, {"value", base64(put.value)}};
  if (put.lease != 0) body["lease"] = number(put.lease);
  return body;
}

json compare_json(const EtcdCompare& compare) {
  const bool created = compare.what == EtcdCompare::What::created;
  json body = {{"key", base64(compare.key)}, {"result", "EQUAL"}, {"target", created ? "CREATE" : "MOD"}};
  body[created ? "create_revision" : "mod_revision"] = number(compare.revision);
  return body;
}

json parsed(std::string_view text) {
  json value = read_json<json>(text);
  if (!value.is_object()) throw Error(ErrorKind::data, "etcd's answer is not a JSON object");
  return value;
}

/// A 64-bit number, which is a string; 0 where it is left out.
std::int64_t integer_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  const auto value = found->is_string() ? parse_integer(found->get_ref<const std::string&>()) : std::nullopt;
  if (!value)
    throw Error(ErrorKind::data, std::string("etcd's answer has a '") + name + "' that is not a number");
  return *value;
}

std::string bytes_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  const auto value = found->is_string() ? from_base64(found->get_ref<const std::string&>()) : std::nullopt;
  if (!value)
    throw Error(ErrorKind::data, std::string("etcd's answer has a '") + name + "' that is not base64");
  return *value;
}

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A member that is an object; an empty one where it is left out.
const json& object_in(const json& object, const char* name) {
  static const json kNone = json::object();
  const auto found = object.find(name);
  if (found == object.end()) return kNone;
  if (!found->is_object())
    throw Error(ErrorKind::data, std::string("etcd's answer has a '") + name + "' that is not an object");
  return *found;
}

const json& list_in(const json& object, const char* name) {
  static const json kNone = json::array();
  const auto found = object.find(name);
  if (found == object.end()) return kNone;
  if (!found->is_array())
    throw Error(ErrorKind::data, std::string("etcd's answer has a '") + name + "' that is not a list");
  return *found;
}

EtcdEntry entry_in(const json& object) {
  if (!object.is_object()) throw Error(ErrorKind::data, "etcd's answer has an entry that is not an object");
  return {.key = bytes_in(object, "key"),
          .value = bytes_in(object, "value"),
          .created = integer_in(object, "create_revision"),
          .modified = integer_in(object, "mod_revision"),
          .lease = integer_in(object, "lease")};
}

void add_entries(const json& range, std::vector<EtcdEntry>& entries) {
  for (const json& entry : list_in(range, "kvs")) entries.push_back(entry_in(entry));
}

EtcdFailure failure_of(std::int64_t code, const std::string& text) {
  using Kind = EtcdFailure::Kind;
  const bool stale_login = text.find("invalid auth token") != text.npos ||
                           text.find("revision of auth store is old") != text.npos ||
                           text.find("user name is empty") != text.npos;
  if (code == login || stale_login) return {Kind::login, text};
  switch (code) {
    case deadline_exceeded:
    case unavailable:
      return {Kind::unavailable, text};
    case not_found:
      return {Kind::missing, text};
    case denied:
      return {Kind::denied, text};
    case precondition:
      return {text.find("lease already exists") != text.npos ? Kind::exists : Kind::refused, text};
    default:
      return {Kind::refused, text};
  }
}

}  // namespace

EtcdRequest grant_lease(std::int64_t id, std::chrono::seconds time_to_live) {
  return request("/v3/lease/grant", {{"ID", number(id)}, {"TTL", number(time_to_live.count())}});
}

EtcdRequest keep_lease(std::int64_t id) {
  return request("/v3/lease/keepalive", {{"ID", number(id)}});
}

EtcdRequest revoke_lease(std::int64_t id) {
  return request("/v3/lease/revoke", {{"ID", number(id)}});
}

EtcdRequest read_key(std::string_view key) {
  return request("/v3/kv/range", {{"key", base64(key)}});
}

EtcdRequest put_key(const EtcdPut& put) {
  return request("/v3/kv/put", put_json(put));
}

EtcdRequest run_transaction(const EtcdTransaction& transaction) {
  json compares = json::array(), success = json::array(), failure = json::array();
  for (const EtcdCompare& compare : transaction.compares) compares.push_back(compare_json(compare));
  for (const EtcdPut& put : transaction.puts) success.push_back({{"request_put", put_json(put)}});
  for (const std::string& key : transaction.deletes)
    success.push_back({{"request_delete_range", {{"key", base64(key)}}}});
  for (const std::string& key : transaction.read) {
    const json read = {{"request_range", {{"key", base64(key)}}}};
    success.push_back(read);
    failure.push_back(read);
  }
  return request("/v3/kv/txn", {{"compare", compares}, {"success", success}, {"failure", failure}});
}

EtcdRequest watch_key(std::string_view key, std::int64_t revision) {
  return request("/v3/watch",
                 {{"create_request", {{"key", base64(key)}, {"start_revision", number(revision)}}}});
}

EtcdRequest log_in(std::string_view user, std::string_view password) {
  // Bytes that are not UTF-8 cannot be said in JSON: etcd gets them replaced, and refuses the login.
  const json body = {{"name", user}, {"password", password}};
  return {"/v3/auth/authenticate", json_text(body)};
}

std::optional<EtcdFailure> failure_in(int http_status, std::string_view body) {
  if (http_status == 200) return std::nullopt;
  const json value = read_json<json>(body);
  if (!value.is_object() || !value.contains("code")) {
    const std::string text = "HTTP status " + std::to_string(http_status);
    if (http_status >= 500 || http_status == 429) return EtcdFailure{EtcdFailure::Kind::unavailable, text};
    return EtcdFailure{EtcdFailure::Kind::refused, text + "; is it an etcd of version 3.4 or later?"};
  }
  std::string text = text_in(value, "message");
  if (text.empty()) text = text_in(value, "error");
  const json& code = value["code"];
  return failure_of(code.is_number_integer() ? code.get<std::int64_t>() : 0, printable(text, kLongestReason));
}

EtcdAnswer answer_in(std::string_view body) {
  const json value = parsed(body);
  EtcdAnswer answer;
  answer.revision = integer_in(object_in(value, "header"), "revision");
  const auto succeeded = value.find("succeeded");
  answer.succeeded = succeeded != value.end() && succeeded->is_boolean() && succeeded->get<bool>();
  add_entries(value, answer.entries);
  for (const json& response : list_in(value, "responses"))
    if (response.is_object()) add_entries(object_in(response, "response_range"), answer.entries);
  return answer;
}

std::int64_t time_to_live_in(std::string_view body) {
  // A stream with one line.
  const json value = parsed(body.substr(0, body.find('\n')));
  return integer_in(object_in(value, "result"), "TTL");
}

std::string token_in(std::string_view body) {
  std::string token = text_in(parsed(body), "token");
  if (token.empty()) throw Error(ErrorKind::data, "etcd's answer to a login has no token");
  if (token.find_first_of("\r\n") != token.npos)
    throw Error(ErrorKind::data, "etcd's token has a line break");
  return token;
}

EtcdWatchNews watch_news_in(std::string_view line) {
  const json value = parsed(line);
  EtcdWatchNews news;
  if (const json& error = object_in(value, "error"); !error.empty()) {
    news.ended = true;
    news.failure =
        failure_of(integer_in(error, "grpc_code"), printable(text_in(error, "message"), kLongestReason));
    return news;
  }
  const json& result = object_in(value, "result");
  news.revision = integer_in(object_in(result, "header"), "revision");
  const auto canceled = result.find("canceled");
  news.ended = canceled != result.end() && canceled->is_boolean() && canceled->get<bool>();
  news.reason = printable(text_in(result, "cancel_reason"), kLongestReason);
  for (const json& event : list_in(result, "events")) {
    if (!event.is_object()) throw Error(ErrorKind::data, "etcd's answer has an event that is not an object");
    news.changes.push_back({text_in(event, "type") == "DELETE", entry_in(object_in(event, "kv"))});
  }
  return news;
}

}  // namespace fleetrun::launcher
