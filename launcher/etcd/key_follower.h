// Knows the value of one key of etcd, now and at each change.
//
// It reads the key, and watches it from there; a watch that breaks goes on where it was, with another member.
// Where etcd has forgotten that revision (compaction), the key is read anew. Every few seconds it is read
// besides: a member that is stuck, or cut off from the others, keeps a watch open and says nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/etcd/etcd_client.h"

namespace fleetrun::launcher {

struct KeyListener {
  /// nullopt: there is no such key. `revision` of the store at that time; it never falls.
  std::function<void(const std::optional<EtcdEntry>& entry, std::int64_t revision)> on_value;
  /// etcd cannot be asked; that is tried until the follower is gone.
  std::function<void(const EtcdFailure&)> on_trouble;
};

struct FollowTimes {
  std::chrono::milliseconds patience{2000};  // with a read
  std::chrono::milliseconds check{5000};     // between reads while the watch is quiet
};

/// `client` has to outlive it.
std::unique_ptr<EtcdActivity> follow_key(boost::asio::io_context& loop, EtcdClient& client, std::string key,
                                         KeyListener listener, FollowTimes times = {});

}  // namespace fleetrun::launcher
