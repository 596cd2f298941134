// Any bytes, as --hosts, a host file, or a selection: what is accepted is safe as a word of the ssh command,
// no host is there twice, and the list that is written from it is read as the same hosts.
//
// The first byte chooses how the others are read.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "launcher/model/host_list.h"
#include "launcher/model/host_range.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "host_list_fuzz: %s\n", what);
  std::abort();
}

bool is_safe(std::string_view word) {
  if (word.empty() || word.front() == '-') return false;
  return std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-' || c == ':' || c == '%';
  });
}

void check(const RemoteHosts& found) {
  if (found.hosts.empty()) broken("a list without hosts was accepted");
  if (found.hosts.size() > kMaxNamedHosts) broken("a list of too many hosts was accepted");
  std::set<std::string> keys;
  std::string again;
  for (const RemoteHost& host : found.hosts) {
    if (!is_safe(host.name)) broken("a name was accepted that ssh or a shell would act on");
    if (!host.user.empty() && !is_safe(host.user))
      broken("a user was accepted that ssh or a shell would act on");
    if (!keys.insert(host_key(host.name)).second) broken("a host is in the list twice");
    if (again.size() < 100'000) again += (again.empty() ? "" : ",") + written(host);
  }
  const RemoteHosts second = parse_host_list(again, "again");
  for (std::size_t i = 0; i < second.hosts.size(); ++i) {
    if (second.hosts[i].name != found.hosts[i].name) broken("what is written is read as another host");
  }
}

void select(std::string_view text) {
  const auto hosts = parse_host_list("h1:4,h2:2,n[01-12],[fe80::1]:2,h3", "hosts").hosts;
  const std::size_t half = text.size() / 2;
  if (include_hosts(hosts, text.substr(0, half)).size() > hosts.size())
    broken("more hosts were included than there are");
  if (exclude_hosts(hosts, text.substr(half)).empty()) broken("no host was left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 4) {
      case 0:
        check(parse_host_list(text, "--hosts"));
        break;
      case 1:
        check(parse_hostfile(text, "hosts.txt"));
        break;
      case 2:
        select(text);
        break;
      default:
        if (expand_names(text).size() > kMaxNamedHosts) broken("a list expands to too many names");
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) broken("a list is refused as something else");
    if (std::string_view(error.what()).size() > 2000) broken("a refusal repeats what was given at length");
  }
  return 0;
}
