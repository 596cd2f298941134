// Where an etcd is: what follows etcd:// in --master, `[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]`. Pure.
//
// Every endpoint is a member of one etcd cluster; the port is 2379 unless it is written. A byte of the user's
// name or password that has a meaning of its own (`:`, `@`, `,`, `/`, `%`) is written %XX.
// The password is never shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/endpoint.h"

namespace fleetrun::launcher {

struct EtcdAddress {
  std::vector<Endpoint> endpoints;
  std::string user{}, password{};  // user empty: etcd is asked without a login

  bool operator==(const EtcdAddress&) const = default;
};

/// Throws: Error(config) that says what is wrong with `text`, without a password that is in it.
EtcdAddress parse_etcd_address(std::string_view text);

/// For people: "etcd://h1:2379,h2:2379", without user and password.
std::string to_string(const EtcdAddress& address);

/// An address as it was written, to be shown or kept: "etcd://root:x@h" → "etcd://h".
/// Others stay as they are.
std::string without_login(std::string_view address);

}  // namespace fleetrun::launcher
