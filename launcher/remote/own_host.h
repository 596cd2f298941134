// What this host is called and reached by, as seen by a launch over a list of hosts.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/host_list.h"

namespace fleetrun::launcher::remote {

struct OwnHost {
  std::set<std::string> names;      // host_key() of each: localhost, its own name, long and short
  std::set<std::string> addresses;  // of its interfaces, as texts; with a zone where they have one
};

/// Looks at the machine.
OwnHost own_host();

/// Adds to the names of `own` those of `hosts` that begin with one of them and lead to this host when they
/// are looked up, which may take a while: what a scheduler lists as node1.cluster may call itself node1.
void learn_names(OwnHost& own, const std::vector<RemoteHost>& hosts);

/// Whether `name` is this host: one of its names, one of its addresses, or a loopback address. Pure: nothing
/// is looked up in the network.
bool is_own(const OwnHost& own, std::string_view name);

/// The own address in `own` that equals `address`, whatever zone either has. Pure.
std::optional<std::string> own_address(const OwnHost& own, std::string_view address);

/// The address of this host from which `name` is reached; looks the name up, which may take a while, and
/// sends nothing. nullopt: it is not known, or there is no way to it.
std::optional<std::string> address_towards(const std::string& name);

}  // namespace fleetrun::launcher::remote
