// Addresses and ports of this host.
#include "launcher/config/job_config_values.h"
#include "runtime/base/error.h"
#include "runtime/base/port_range.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

std::pair<int, int> port_range(const Value& value) {
  const auto range = parse_ports(value.text, ':');
  if (!range) refuse(value, "a range of ports is needed", "write it as 20000:29999");
  return *range;
}

}  // namespace

void read_network(const Values& values, JobConfig& config) {
  config.host_chosen = values.given("host");
  if (config.host_chosen) config.host = read_host_address(values["host"]);
  const std::uint16_t start = read_port(values["start_port"]);
  config.start_port_chosen = values.given("start_port");
  if (config.start_port_chosen || values.given("ips")) config.start_port = start;
  if (values.given("port_range")) config.port_range = port_range(values["port_range"]);
  if (values.given("master_addr")) config.master_addr = read_host_address(values["master_addr"]);
  const Value& master_port = values["master_port"];  // 0: any that is free, as for listen()
  if (values.given("master_port") && master_port.text != "0") config.master_port = read_port(master_port);
  config.gloo_port = read_port(values["gloo_port"]);
  config.gloo_port_chosen = values.given("gloo_port");
  config.with_gloo = values["with_gloo"].text;
  if (config.with_gloo != "0" && config.with_gloo != "1" && config.with_gloo != "2")
    refuse(values["with_gloo"], "0, 1 or 2 is needed");
}

}  // namespace fleetrun::launcher
