// What `fleetrun doctor` finds out about one host, and what it asks for that. Values, and their JSON, in
// which they go between hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/endpoint.h"

namespace fleetrun::launcher::doctor {

/// A name as one host sees it.
struct NameFacts {
  std::string name;
  std::vector<std::string> addresses;  // in digits, in the order in which they would be tried
  std::string failure;                 // why there are none: "Name or service not known"
  std::string from;  // own address from which the first of them is reached; empty: no way there
  bool operator==(const NameFacts&) const = default;
};

/// The working directory of the job, as one host sees it.
struct DirectoryFacts {
  bool exists = false, writable = false;
  bool shared = false;  // holds the file that the asking host has put there
  std::uint64_t free_bytes = 0;
  bool operator==(const DirectoryFacts&) const = default;
};

/// Where the hosts of a job would meet (--master), as one host sees it.
struct MasterFacts {
  bool ours = false;      // it is an address of this host
  bool busy = false;      // and somebody listens there
  std::string failure{};  // why it cannot be used from here; empty: it can
  bool operator==(const MasterFacts&) const = default;
};

struct Limits {
  std::uint64_t open_files = 0, most_open_files = 0;  // of a process: soft and hard
  std::uint64_t processes = 0;                        // of the user
  std::uint64_t locked_bytes = 0;
  std::uint64_t shared_memory_bytes = 0;  // size of /dev/shm; 0: there is none
  bool operator==(const Limits&) const = default;
};

struct HostCheck {
  std::string version;    // of fleetrun
  std::string host_name;  // its own name for itself
  NameFacts own_name;
  std::vector<std::string> addresses;  // of its interfaces that are up, without the loopback's
  std::vector<NameFacts> names;        // of the other hosts
  std::int64_t clock_ns = 0;           // CLOCK_REALTIME when it answered
  bool clock_synchronized = true;
  int cores = 0;
  std::vector<std::string> devices;  // that a job would be shown
  int unusable_devices = 0;
  bool has_rdma = false;  // /dev/infiniband
  Limits limits;
  DirectoryFacts directory;
  std::string secret;  // of the user: eight digits that say whether two are the same; empty: there is none
  std::string secret_failure;
  std::optional<MasterFacts> master;
  bool operator==(const HostCheck&) const = default;
};

struct Questions {
  std::vector<std::string> names{};  // to look up
  std::string directory{};           // absolute
  std::string marker{};              // file in it that the asking host has made; empty: none
  std::string master{};              // as the user wrote it; empty: not asked
  bool secret = false;               // whether to compare secrets
  bool operator==(const Questions&) const = default;
};

/// What came of dialing one other host.
struct Reach {
  std::uint32_t host = 0;   // that was dialed
  std::string failure;      // empty: it answered, and is who it should be
  std::int64_t micros = 0;  // until then
  bool operator==(const Reach&) const = default;
};

struct Target {
  std::uint32_t host = 0;
  Endpoint endpoint;
  bool operator==(const Target&) const = default;
};

std::string to_json(const HostCheck& host_check);
std::string to_json(const Questions& questions);
// Throw: Error(data).
HostCheck host_check_from_json(std::string_view text);
Questions questions_from_json(std::string_view text);

}  // namespace fleetrun::launcher::doctor
