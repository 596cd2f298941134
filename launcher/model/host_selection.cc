// --include and --exclude: DeepSpeed's way of choosing among the hosts of a list, HOST[:DEVICE,…]@HOST…
#include <algorithm>
#include <map>

#include "launcher/model/host_list.h"
#include "launcher/model/host_range.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

/// Devices by host; none: the whole host.
using Selection = std::map<std::string, std::vector<std::string>>;

[[noreturn]] void refuse(std::string_view flag, const std::string& why, std::string hint = {}) {
  throw Error(ErrorKind::config, std::string(flag) + ": " + why, std::move(hint));
}

std::vector<std::string> devices_of(const RemoteHost& host) {
  if (host.devices) return *host.devices;
  std::vector<std::string> devices;
  for (int i = 0; i < host.slots.value_or(0); ++i) devices.push_back(std::to_string(i));
  return devices;
}

/// The name ends at the first ':' that is not part of an IPv6 address in brackets.
std::pair<std::string, std::string> name_and_devices(std::string_view flag, std::string_view part) {
  const bool bracketed = part.starts_with('[') && part.find(':') < part.find(']');
  const std::size_t close = bracketed ? part.find(']') : std::string_view::npos;
  if (bracketed && close == std::string_view::npos)
    refuse(flag, "'" + printable(part, 80) + "': the '[' is not closed");
  const std::size_t colon = part.find(':', bracketed ? close : 0);
  std::string name(bracketed ? part.substr(1, close - 1) : part.substr(0, colon));
  if (colon == std::string_view::npos) return {std::move(name), ""};
  if (colon + 1 == part.size())
    refuse(flag, "'" + printable(part, 80) + "' ends with ':'", "devices are written as h1:0,2");
  return {std::move(name), std::string(part.substr(colon + 1))};
}

void check_devices(std::string_view flag, const RemoteHost& host, const std::vector<std::string>& chosen) {
  const std::vector<std::string> own = devices_of(host);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::string& device = chosen[i];
    if (device.empty() || std::find(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(i),
                                    device) != chosen.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(flag, "the devices of " + written(host) + " are '" + printable(join(chosen, ","), 80) +
                       "': one is empty or there twice");
    const bool number = parse_integer(device).value_or(-1) >= 0;
    if (!host.slots && !host.devices && number) continue;
    if (std::find(own.begin(), own.end(), device) == own.end())
      refuse(flag,
             written(host) + " has no device '" + printable(device, 40) + "'" +
                 (own.empty() ? "" : ", only " + join(own, ",")),
             "devices are counted from 0");
  }
}

Selection read_selection(std::string_view flag, std::string_view text, const std::vector<RemoteHost>& hosts) {
  std::map<std::string, const RemoteHost*> known;
  for (const RemoteHost& host : hosts) known.emplace(host_key(host.name), &host);
  Selection selection;
  if (text.empty()) refuse(flag, "no host is given", "it is written as h1:0,2@h2");
  for (const std::string& part : split_outside_brackets(text, '@')) {
    const auto [name, devices] = name_and_devices(flag, part);
    const bool address = name.find(':') != std::string::npos;
    for (const std::string& one : address ? std::vector<std::string>{name} : expand_range(name)) {
      const auto host = known.find(host_key(one));
      if (host == known.end())
        refuse(flag, "'" + printable(one, 80) + "' is not in the list of hosts", "write it as the list does");
      const std::vector<std::string> chosen = split(devices, ',');
      check_devices(flag, *host->second, chosen);
      if (!selection.emplace(host->first, chosen).second)
        refuse(flag, written(*host->second) + " is there twice");
    }
  }
  return selection;
}

}  // namespace

std::vector<RemoteHost> include_hosts(const std::vector<RemoteHost>& hosts, std::string_view text) {
  const Selection selection = read_selection("--include", text, hosts);
  std::vector<RemoteHost> kept;
  for (const RemoteHost& host : hosts) {
    const auto chosen = selection.find(host_key(host.name));
    if (chosen == selection.end()) continue;
    kept.push_back(host);
    if (chosen->second.empty()) continue;
    kept.back().devices = chosen->second;
    kept.back().slots = static_cast<int>(chosen->second.size());
  }
  return kept;
}

std::vector<RemoteHost> exclude_hosts(const std::vector<RemoteHost>& hosts, std::string_view text) {
  const Selection selection = read_selection("--exclude", text, hosts);
  std::vector<RemoteHost> kept;
  for (const RemoteHost& host : hosts) {
    const auto chosen = selection.find(host_key(host.name));
    if (chosen != selection.end() && chosen->second.empty()) continue;
    kept.push_back(host);
    if (chosen == selection.end()) continue;
    std::vector<std::string> left = devices_of(host);
    if (left.empty())
      refuse("--exclude", "how many devices " + written(host) + " has is not known here",
             "add its slots to the list: " + written(host) + ":4");
    std::erase_if(left, [&](const std::string& device) {
      return std::find(chosen->second.begin(), chosen->second.end(), device) != chosen->second.end();
    });
    if (left.empty())
      kept.pop_back();
    else {
      kept.back().slots = static_cast<int>(left.size());
      kept.back().devices = std::move(left);
    }
  }
  if (kept.empty()) refuse("--exclude", "no host is left");
  return kept;
}

}  // namespace fleetrun::launcher
