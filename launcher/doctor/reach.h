// Whether hosts can dial each other: one listens, another dials, and both prove that they are the doctor's,
// so that a stranger (or another program) that answers at the address is not taken for the host.
//
//   listener → dialer:  16 random bytes
//   dialer → listener:  HMAC-SHA256(key, "dial" + those), 32 bytes
//   listener → dialer:  HMAC-SHA256(key, "listen" + those), 32 bytes
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/doctor/host_check.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher::doctor {

/// Until it is destroyed. 512 connections at a time, 5 s each.
class ReachListener {
 public:
  virtual ~ReachListener() = default;
  virtual const std::vector<Endpoint>& endpoints() const noexcept = 0;
};

/// At eight ports of those that a launch would choose, or as many of them as are free; `ports`: from these.
/// A firewall that lets a part of the range through is not seen at one port.
/// Throws: Error(host) when `host` is not an address of this machine, or no port is free.
std::unique_ptr<ReachListener> listen_for_doctors(boost::asio::io_context& loop, const std::string& host,
                                                  std::string key,
                                                  const std::optional<std::pair<int, int>>& ports = {});

/// Under way until it is destroyed.
class Dialing {
 public:
  virtual ~Dialing() = default;
};

/// Dials all of `targets`, which are in digits, side by side; `done` is called once, from the loop, with an
/// answer for each in their order, within the patience. The first of a host's is sent large packets, too.
std::unique_ptr<Dialing> dial_all(boost::asio::io_context& loop, std::vector<Target> targets,
                                  const std::string& key, std::chrono::milliseconds patience,
                                  std::function<void(const std::vector<Reach>&)> done);

constexpr std::string_view kAtPorts = ", at port";
/// One for each host, in their order: the first failure, and at which ports it is
/// (kAtPorts) where not at all of them.
std::vector<Reach> reaches_by_host(const std::vector<Target>& targets, const std::vector<Reach>& reaches);

}  // namespace fleetrun::launcher::doctor
