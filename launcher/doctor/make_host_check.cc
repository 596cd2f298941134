// Names are looked up side by side, so that one name server that does not answer costs its time once.
#include "launcher/doctor/make_host_check.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "launcher/etcd/etcd_client.h"
#include "launcher/etcd/state_writer.h"
#include "launcher/host/find_devices.h"
#include "launcher/model/devices.h"
#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/host_name.h"
#include "runtime/base/version.h"
#include "runtime/secure/crypto.h"
#include "runtime/secure/secret.h"

namespace fleetrun::launcher::doctor {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookupTime = 4s, kMasterTime = 3s;

NameFacts name_facts(const std::string& name, const FoundAddresses& found) {
  NameFacts facts{.name = name, .addresses = {}, .failure = found.failure, .from = {}};
  for (const SocketAddress& address : found.addresses) {
    const std::string digits = to_endpoint(address).host;
    if (std::find(facts.addresses.begin(), facts.addresses.end(), digits) == facts.addresses.end())
      facts.addresses.push_back(digits);
  }
  if (found.addresses.empty()) return facts;
  if (const auto from = address_facing(with_port(found.addresses.front(), 9)))
    facts.from = to_endpoint(*from).host;
  return facts;
}

std::vector<NameFacts> look_up_all(const std::vector<std::string>& names) {
  boost::asio::io_context loop;
  std::vector<NameFacts> facts(names.size());
  std::vector<std::unique_ptr<NameLookup>> lookups;
  for (std::size_t i = 0; i < names.size(); ++i) {
    facts[i] = {.name = names[i], .addresses = {}, .failure = "no answer from the name server", .from = {}};
    lookups.push_back(look_up(loop, {names[i], 0}, [&facts, &names, i](const FoundAddresses& found) {
      facts[i] = name_facts(names[i], found);
    }));
  }
  loop.run_for(kLookupTime);
  return facts;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.length);
    addresses.push_back(to_endpoint(address).host);
  }
  return addresses;
}

std::uint64_t limit_of(rlim_t value) noexcept {
  return value == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : value;
}

Limits read_limits() {
  Limits limits;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    limits.open_files = limit_of(limit.rlim_cur), limits.most_open_files = limit_of(limit.rlim_max);
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0) limits.processes = limit_of(limit.rlim_cur);
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) limits.locked_bytes = limit_of(limit.rlim_cur);
  struct statvfs memory = {};
  if (::statvfs("/dev/shm", &memory) == 0)
    limits.shared_memory_bytes = static_cast<std::uint64_t>(memory.f_blocks) * memory.f_frsize;
  return limits;
}

DirectoryFacts read_directory(const Questions& questions) {
  DirectoryFacts facts;
  struct stat info = {};
  facts.exists = ::stat(questions.directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  facts.writable = facts.exists && ::access(questions.directory.c_str(), W_OK) == 0;
  facts.shared =
      !questions.marker.empty() && ::stat((questions.directory + "/" + questions.marker).c_str(), &info) == 0;
  struct statvfs disk = {};
  if (facts.exists && ::statvfs(questions.directory.c_str(), &disk) == 0)
    facts.free_bytes = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  return facts;
}

/// Eight digits that say whether two secrets are the same, and nothing else about them.
void read_secret(const Environ& environment, HostCheck& host_check) {
  const std::string config = environment.value_or("XDG_CONFIG_HOME", "");
  const std::string path =
      (config.empty() ? environment.value_or("HOME", "") + "/.config" : config) + "/fleetrun/secret";
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) return;
  try {
    host_check.secret = hex(read_secret_file(path).derive("doctor").bytes().substr(0, 4));
  } catch (const Error& error) {
    host_check.secret_failure = error.what();
  }
}

MasterFacts ask_etcd(const std::string& rest) {
  boost::asio::io_context loop;
  const auto client = make_etcd_client(loop, parse_etcd_address(rest));
  MasterFacts facts{.failure = client->shown() + " does not answer"};
  const auto question =
      client->ask(read_key(job_keys("doctor").state), kMasterTime, [&](const EtcdReply& reply) {
        facts.failure = reply.failure ? client->shown() + ": " + reply.failure->text : "";
        loop.stop();
      });
  loop.run_for(kMasterTime + 1s);
  return facts;
}

/// Why nobody could be dialed there; empty: somebody answers, be it with a refusal.
std::string dial_failure(const SocketAddress& address) {
  const UniqueFd socket = connecting_socket(address);
  if (!socket) return errno == ECONNREFUSED ? "" : std::strerror(errno);
  pollfd ready{socket.value(), POLLOUT, 0};
  if (::poll(&ready, 1, static_cast<int>(kMasterTime.count())) <= 0) return "no answer within 3 s";
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.value(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 || error == ECONNREFUSED ? "" : std::strerror(error);
}

MasterFacts ask_master(const Endpoint& master) {
  MasterFacts facts;
  const FoundAddresses found = look_up_now(master);
  if (found.addresses.empty()) {
    facts.failure = "it does not know " + master.host + ": " + found.failure;
    return facts;
  }
  for (const SocketAddress& address : found.addresses) {
    if (!may_be_own(address)) continue;
    const UniqueFd listener = listening_socket(address);
    facts.busy = facts.busy || (!listener && errno == EADDRINUSE);
    facts.ours = facts.ours || listener || facts.busy;
  }
  if (facts.busy) facts.failure = "another process listens at " + to_string(master) + " already";
  if (facts.ours) return facts;
  const std::string failure = dial_failure(found.addresses.front());
  if (!failure.empty()) facts.failure = "it cannot dial " + to_string(master) + ": " + failure;
  return facts;
}

MasterFacts read_master(const std::string& master) {
  constexpr std::string_view kEtcd = "etcd://", kSchemes[] = {"http://", "tcp://"};
  try {
    if (master.starts_with(kEtcd)) return ask_etcd(master.substr(kEtcd.size()));
    std::string_view rest = master;
    for (const std::string_view scheme : kSchemes)
      if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
    return ask_master(parse_endpoint(rest));
  } catch (const Error& error) {
    return {.failure = error.what()};
  }
}

}  // namespace

HostCheck make_host_check(const Questions& questions, const Environ& environment) {
  HostCheck host_check;
  host_check.version = FLEETRUN_VERSION;
  host_check.host_name = host_name();
  std::vector<std::string> names = questions.names;
  names.insert(names.begin(), host_check.host_name);
  host_check.names = look_up_all(names);
  host_check.own_name = host_check.names.front();
  host_check.names.erase(host_check.names.begin());
  host_check.addresses = own_addresses();
  timex clock = {};
  host_check.clock_synchronized = ::adjtimex(&clock) != TIME_ERROR;
  host_check.cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<DeviceFile> files = read_device_files("");
  host_check.devices = visible_devices(environment, files).tokens;
  host_check.unusable_devices = static_cast<int>(
      std::count_if(files.begin(), files.end(), [](const DeviceFile& file) { return !file.usable; }));
  struct stat info = {};
  host_check.has_rdma = ::stat("/dev/infiniband", &info) == 0;
  host_check.limits = read_limits();
  host_check.directory = read_directory(questions);
  if (questions.secret) read_secret(environment, host_check);
  if (!questions.master.empty()) host_check.master = read_master(questions.master);
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  host_check.clock_ns = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  return host_check;
}

}  // namespace fleetrun::launcher::doctor
