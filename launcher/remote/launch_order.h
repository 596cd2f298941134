// What a host is told to run: everything that its launcher would otherwise find on its command line, in its
// environment and in the files of its user. A value, and its bytes.
//
// Whoever starts launchers elsewhere (a list of hosts over ssh, an engine) makes one order per host and hands
// it to `fleetrun agent` there, as bytes, never as words of a command:
// nothing in it is seen by a shell or by ps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/model/job_config.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::remote {

struct LaunchOrder {
  std::string version;                                     // of the fleetrun that wrote it
  std::map<std::string, std::string, std::less<>> values;  // of settings, by key, as the flags have them
  std::optional<std::string> script;
  std::vector<std::string> script_args;
  std::vector<std::pair<std::string, std::string>>
      environment;  // variables that the processes get beside the host's own
  std::string cwd;

  std::string secret;    // 32 bytes
  Endpoint coordinator;  // whom to join; port 0: through the channel (launcher/remote/tunnel)
  std::string address;   // of the host itself; empty: the one that faces the coordinator
  int node_rank = -1;
  std::string node_name;
  NodeCount nodes;
  bool elastic = false;

  std::optional<int> trainers, servers;  // there; nullopt: as the values say. 0 is none
  std::optional<std::vector<std::string>> devices;

  bool operator==(const LaunchOrder&) const = default;
};

std::string encode(const LaunchOrder& order);
/// Throws: Error(data) for bytes that encode() does not make.
LaunchOrder decode_order(std::string_view bytes);

/// The settings that `options` and `environ` give, as values for an order: without those that are about this
/// host or about the list of hosts.
std::map<std::string, std::string, std::less<>> portable_values(const Options& options,
                                                                const Environ& environ);

/// Variables of `environ` by --export's list: NAME, NAME=VALUE, PREFIX*. Later ones win.
/// Throws: Error(usage) for what is not a name, and for a NAME that is not set here.
std::vector<std::pair<std::string, std::string>> exported_variables(const std::vector<std::string>& list,
                                                                    const Environ& environ);

/// What the host's launcher runs. `environ` is the one that its processes inherit; variables that would be
/// read as settings count only where they were exported. A job file is read here, by its path.
/// Throws: as make_job_config() and read_job_file() do.
JobConfig config_of(const LaunchOrder& order, const Environ& environ);

}  // namespace fleetrun::launcher::remote
