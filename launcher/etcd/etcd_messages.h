// What is said to etcd's JSON gateway (v3, of etcd 3.4 and later) and what it answers. Pure.
//
// Keys and values are bytes here and base64 there; 64-bit numbers are strings there, and left out where they
// are 0. Revisions count the changes of the whole store. Ids of leases are drawn by the client, so that a
// request whose answer was lost can be sent again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct EtcdRequest {
  std::string path, body;  // "/v3/kv/range", JSON
};

/// Why etcd did not do what it was asked.
struct EtcdFailure {
  enum class Kind {
    unavailable,  // nothing came, or no member can answer now: may be tried again
    login,        // it wants a login, or has forgotten this one
    denied,       // the login may not do this
    exists,       // a lease with this id
    missing,      // no such lease
    refused,      // anything else: asking again would not help
  } kind = Kind::unavailable;
  std::string text;  // for people

  bool operator==(const EtcdFailure&) const = default;
};

struct EtcdEntry {
  std::string key{}, value{};
  std::int64_t created = 0, modified = 0;  // revisions
  std::int64_t lease = 0;                  // 0: none

  bool operator==(const EtcdEntry&) const = default;
};

/// The answer to range, and to a transaction: did it succeed, and, where it reads, what is there.
struct EtcdAnswer {
  std::int64_t revision = 0;  // of the store
  bool succeeded = false;
  std::vector<EtcdEntry> entries;

  bool operator==(const EtcdAnswer&) const = default;
};

struct EtcdCompare {
  enum class What { created, modified } what = What::created;
  std::string key;
  std::int64_t revision = 0;  // created at 0: the key is not there
};

struct EtcdPut {
  std::string key{}, value{};
  std::int64_t lease = 0;
};

/// When all compares hold, the puts and deletes are made, together; else, and after them, `read` are read.
struct EtcdTransaction {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdPut> puts;
  std::vector<std::string> deletes, read;
};

EtcdRequest grant_lease(std::int64_t id, std::chrono::seconds time_to_live);
EtcdRequest keep_lease(std::int64_t id);
EtcdRequest revoke_lease(std::int64_t id);
EtcdRequest read_key(std::string_view key);
EtcdRequest put_key(const EtcdPut& put);
EtcdRequest run_transaction(const EtcdTransaction& transaction);
/// Changes of one key from `revision` on; their answer has no end.
EtcdRequest watch_key(std::string_view key, std::int64_t revision);
EtcdRequest log_in(std::string_view user, std::string_view password);

/// nullopt: the answer is not a failure.
std::optional<EtcdFailure> failure_in(int http_status, std::string_view body);

// Throw: Error(data) for what is not such an answer.
EtcdAnswer answer_in(std::string_view body);
/// The seconds that a lease has from now; 0: there is no such lease any more.
std::int64_t time_to_live_in(std::string_view body);
std::string token_in(std::string_view body);

/// One line of a watch.
struct EtcdChange {
  bool removed = false;
  EtcdEntry entry;  // of a removed key: its name and the revision of the removal

  bool operator==(const EtcdChange&) const = default;
};
struct EtcdWatchNews {
  std::int64_t revision = 0;
  bool ended = false;    // by etcd: the revision has been compacted away, or the login may not read the key
  std::string reason{};  // where etcd gave one
  std::vector<EtcdChange> changes{};
  std::optional<EtcdFailure> failure{};

  bool operator==(const EtcdWatchNews&) const = default;
};
EtcdWatchNews watch_news_in(std::string_view line);

}  // namespace fleetrun::launcher
