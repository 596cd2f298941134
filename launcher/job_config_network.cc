// Addresses and ports. Whatever would need a second host is refused here.
#include <set>

#include "launcher/job_config_values.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

std::pair<int, int> port_range(const Value& value) {
  const std::vector<std::string> ends = split(value.text, ':');
  const auto first = parse_integer(ends.size() == 2 ? ends[0] : "");
  const auto last = parse_integer(ends.size() == 2 ? ends[1] : "");
  if (!first || !last || *first < 1 || *last > 65535 || *first > *last)
    refuse(value, "a range of ports is needed", "write it as 20000:29999");
  return {static_cast<int>(*first), static_cast<int>(*last)};
}

/// Where other hosts would meet: nobody does on one host, but what makes no sense is a mistake.
void check_master(const Value& value) {
  constexpr std::string_view kHttp = "http://";
  const std::string_view text = value.text;
  while_doing("reading " + value.name,
              [&] { parse_endpoint(text.starts_with(kHttp) ? text.substr(kHttp.size()) : text); });
}

}  // namespace

void refuse_what_needs_hosts(const Values& values, const Environ& environ) {
  if (values.given("nnodes")) {
    const std::vector<std::string> range = split(values["nnodes"].text, ':');
    if (range.empty() || range.size() > 2)
      refuse(values["nnodes"], "a number of hosts, or MIN:MAX, is needed");
    std::int64_t least = 1;
    for (const std::string& part : range) {
      const auto number = parse_integer(part);
      if (!number || *number < least || *number > 65536)
        refuse(values["nnodes"], "a number of hosts, or MIN:MAX, is needed");
      least = *number;
    }
    if (least > 1) refuse_hosts(values["nnodes"]);
  }
  if (values.given("rank") && read_whole_number(values["rank"], -1, 65535) > 0) refuse_hosts(values["rank"]);
  if (values["master"].text.starts_with("etcd://")) refuse_hosts(values["master"]);
  if (values["rdzv_backend"].text.starts_with("etcd")) refuse_hosts(values["rdzv_backend"]);
  if (values.given("ips") && split(values["ips"].text, ',').size() > 1) refuse_hosts(values["ips"]);
  for (const char* name : {"PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"}) {
    const std::string* list = environ.find(name);
    std::set<std::string> hosts;
    for (const std::string& endpoint : split(list ? *list : "", ','))
      hosts.insert(endpoint.substr(0, endpoint.rfind(':')));
    if (hosts.size() > 1) refuse_hosts({*list, name, Source::environment});
  }
}

void read_network(const Values& values, JobConfig& config) {
  if (values.given("host")) config.host = read_host_address(values["host"]);
  if (values.given("master")) check_master(values["master"]);
  if (values.given("ips")) config.host = read_host_address(values["ips"]);
  const std::uint16_t start = read_port(values["start_port"]);
  if (values.given("start_port") || values.given("ips")) config.start_port = start;
  if (values.given("port_range")) config.port_range = port_range(values["port_range"]);
  if (values.given("master_addr")) config.master_addr = read_host_address(values["master_addr"]);
  if (values.given("master_port")) config.master_port = read_port(values["master_port"]);
  config.gloo_port = read_port(values["gloo_port"]);
  config.gloo_port_chosen = values.given("gloo_port");
  config.with_gloo = values["with_gloo"].text;
  if (config.with_gloo != "0" && config.with_gloo != "1" && config.with_gloo != "2")
    refuse(values["with_gloo"], "0, 1 or 2 is needed");
}

}  // namespace fleetrun::launcher
