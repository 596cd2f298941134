// The hosts of a job as the user wrote them: --hosts, --hostfile, --include, --exclude. Nothing is looked up.
// Pure, but for read_hostfile.
//
//   --hosts     [USER@]HOST[:SLOTS][:NAME=VALUE…],…         h1:2,user@node[01-16],[fe80::1]:2,h5:servers=1
//   --hostfile  [USER@]HOST[:SLOTS…] [NAME=VALUE]…  # note  one a line, or several with commas between them
//               HOST SLOTS [QUEUE@HOST PROCESSORS]          Grid Engine's; CRLF, CR, a byte order mark and
//                                                           blank lines are fine
//
// NAME is slots (trainers there), port (of its ssh server), user, devices (in a file only: 0,2), and in a
// parameter-server job servers and trainers: a host for which one of these two is named has the named ones
// only. Other launchers' names for these are known, and what of theirs has no effect is noted. HOST is an
// IPv4 or IPv6 address or a name, and may have ranges (launcher/model/host_range). It becomes a word of the
// ssh command, so it begins with a letter or digit and holds nothing that ssh or a shell would act on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct RemoteHost {
  std::string user;          // empty: whom ssh chooses
  std::string name;          // as written, without brackets; how people know the host
  std::uint16_t port = 0;    // of its ssh server; 0: the one that ssh chooses
  std::optional<int> slots;  // trainers there; nullopt: as the options say
  std::optional<int> servers;
  std::optional<std::vector<std::string>> devices;
  std::string where;  // it was written: "--hosts", "hosts.txt:3"

  bool operator==(const RemoteHost&) const = default;
};

struct RemoteHosts {
  std::vector<RemoteHost> hosts;
  std::vector<std::string> notes;  // what was written and has no effect
};

/// A host that is named again is counted, as PBS and Open MPI write their files: each time without a number
/// is one trainer there. Throws: Error(config), the message beginning with `where`: a name that is none, the
/// same host with another user, port or devices, more than kMaxNamedHosts.
RemoteHosts parse_host_list(std::string_view text, std::string_view where);

/// `path` is for messages, FILE:LINE. Throws: as above, and where no host is in it.
RemoteHosts parse_hostfile(std::string_view text, const std::string& path);

/// Throws: as above, and Error(config) for what is not a file (a pipe is not waited for),
/// cannot be read, or is larger than 16 MiB.
RemoteHosts read_hostfile(const std::string& path);

/// DeepSpeed's selection: "h1:0,2@h2" is devices 0 and 2 of h1, and all of h2. Hosts stay in the list's
/// order. Throws: Error(config) for a host that is not in the list,
/// a device that it does not have, and where nothing is left.
std::vector<RemoteHost> include_hosts(const std::vector<RemoteHost>& hosts, std::string_view selection);
std::vector<RemoteHost> exclude_hosts(const std::vector<RemoteHost>& hosts, std::string_view selection);

/// Adds what `again`, another mention of the host `first`, says of its trainers and servers.
/// Throws: Error(config) where the two do not agree.
void count_again(RemoteHost& first, const RemoteHost& again);

/// "h1", or "[fe80::1]" as it is written in a list.
std::string written(const RemoteHost& host);

/// The name by which two spellings of the same host are equal: lower case; the shortest form of an address.
std::string host_key(std::string_view name);

}  // namespace fleetrun::launcher
