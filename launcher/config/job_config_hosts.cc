// Jobs of several hosts: how many, where they meet, over which hosts they are spread.
//
// Where hosts meet is said by --master, by torchrun's --rdzv_endpoint or --master_addr, by --ips, or by a
// list of everybody's endpoints in the environment, as Paddle's launcher reads it;
// the first of these that is given counts.
#include <algorithm>
#include <set>

#include "launcher/config/job_config_values.h"
#include "launcher/net/etcd_address.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxHosts = 65'536;
constexpr std::chrono::seconds kLeastLostAfter{2};
constexpr std::uint16_t kRendezvousPort = 6768;  // Paddle's, where only addresses are given

NodeCount read_node_count(const Value& value) {
  NodeCount count;
  const std::vector<std::string> parts = split(value.text, ':');
  std::vector<int> numbers;
  for (const std::string& part : parts) {
    const auto number = parse_integer(part);
    if (!number || *number < 1 || *number > kMaxHosts) break;
    numbers.push_back(static_cast<int>(*number));
  }
  if (numbers.empty() || numbers.size() != parts.size() || numbers.size() > 3)
    refuse(value, "a number of hosts, MIN:MAX or MIN:MAX:MULTIPLE is needed");
  count.min = numbers[0];
  count.max = numbers.size() > 1 ? numbers[1] : numbers[0];
  count.multiple = numbers.size() > 2 ? numbers[2] : 1;
  if (count.min > count.max) refuse(value, "the least number of hosts is greater than the most");
  if (count.max / count.multiple * count.multiple < count.min)
    refuse(value, "no multiple of " + std::to_string(count.multiple) + " is in the range");
  return count;
}

Endpoint read_master(const Value& value, std::optional<std::uint16_t> standard_port) {
  std::string_view text = value.text;
  constexpr std::string_view kSchemes[] = {"http://", "tcp://"};
  for (const std::string_view scheme : kSchemes) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  const bool has_port = text.find("]:") != std::string_view::npos ||
                        (!text.starts_with('[') && std::count(text.begin(), text.end(), ':') == 1);
  if (standard_port && !has_port)
    return {read_host_address(part_of(value, std::string(text))), *standard_port};
  return while_doing("reading " + value.name, [&] { return parse_endpoint(text); });
}

/// A list of endpoints in the environment, of more than one host.
std::optional<Value> inherited_endpoints(const Environ& environ) {
  for (const char* name : {"PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"}) {
    const std::string* list = environ.find(name);
    std::set<std::string> hosts;
    for (const std::string& endpoint : split(list ? *list : "", ','))
      hosts.insert(endpoint.substr(0, endpoint.rfind(':')));
    if (hosts.size() > 1) return Value{*list, name, Source::environment};
  }
  return std::nullopt;
}

int distinct_hosts(const std::string& endpoints) {
  std::set<std::string> hosts;
  for (const std::string& endpoint : split(endpoints, ','))
    hosts.insert(endpoint.substr(0, endpoint.rfind(':')));
  return static_cast<int>(hosts.size());
}

void read_etcd(const Value& value, std::string_view rest, Rendezvous& rendezvous) {
  rendezvous.kind = Rendezvous::Kind::etcd;
  rendezvous.etcd = rest;
  while_doing("reading " + value.name, [&] { parse_etcd_address(rest); });
}

/// Of "HOST:PORT" or "HOST", whatever the port may be.
std::string host_part(const std::string& text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return std::count(text.begin(), text.end(), ':') > 1 ? text : text.substr(0, text.find(':'));
}

/// "localhost:0": here, at a port that is free. On another host nobody could know which.
bool is_any_port_here(const std::string& text) {
  const std::string host = host_part(text);
  return text.ends_with(":0") && (host == "localhost" || host == "127.0.0.1" || host == "::1");
}

/// torchrun's way of saying where to meet; nothing on one host, where nobody has to be met.
void read_torchrun(const Values& values, Rendezvous& rendezvous) {
  const Value& backend = values["rdzv_backend"];
  const bool etcd = backend.text == "etcd" || backend.text == "etcd-v2";
  if (!etcd && backend.text != "c10d" && backend.text != "static")
    refuse(backend, "there is no such rendezvous", "use static, c10d or etcd");
  if (etcd && !values.given("rdzv_endpoint"))
    refuse(backend, "it needs an address", "add --rdzv_endpoint=HOST:2379");
  const bool several = rendezvous.nodes.max > 1;
  if (values.given("rdzv_endpoint")) {
    const Value& endpoint = values["rdzv_endpoint"];
    if (etcd) return read_etcd(endpoint, endpoint.text, rendezvous);
    if (!several) {  // "localhost:0" is what people write for one host
      if (backend.text == "c10d") rendezvous.master.host = host_part(endpoint.text);
      return;
    }
    rendezvous.kind = Rendezvous::Kind::master;
    if (!is_any_port_here(endpoint.text)) rendezvous.master = read_master(endpoint, std::uint16_t{29400});
  } else if (values.given("master_addr") && several) {
    rendezvous.kind = Rendezvous::Kind::master;
    rendezvous.master_by_torchrun = true;
    const std::uint16_t port = values.given("master_port") ? read_port(values["master_port"]) : 29'500;
    if (port == 65'535)
      refuse(values["master_port"], "the rendezvous needs the port above it, and there is none");
    rendezvous.master = {read_host_address(values["master_addr"]), static_cast<std::uint16_t>(port + 1)};
  }
}

void read_ips(const Values& values, JobConfig& config) {
  const Value& value = values["ips"];
  const std::vector<std::string> ips = read_list(value, "10.0.0.1,10.0.0.2");
  for (const std::string& ip : ips) read_host_address(part_of(value, ip));
  if (ips.size() == 1) {
    config.host = ips.front();
    config.host_chosen = true;
    return;
  }
  if (values.given("nnodes") &&
      config.rendezvous.nodes != NodeCount{static_cast<int>(ips.size()), static_cast<int>(ips.size()), 1})
    refuse(value,
           "these are " + std::to_string(ips.size()) + " hosts, and " + values["nnodes"].name + " is '" +
               values["nnodes"].text + "'",
           "leave one of them out");
  Rendezvous& rendezvous = config.rendezvous;
  rendezvous.nodes = {static_cast<int>(ips.size()), static_cast<int>(ips.size()), 1};
  rendezvous.addresses = ips;
  if (rendezvous.kind == Rendezvous::Kind::none) {
    rendezvous.kind = Rendezvous::Kind::master;
    rendezvous.master = {ips.front(), kRendezvousPort};
  }
}

void read_rendezvous(const Values& values, const Environ& environ, JobConfig& config) {
  Rendezvous& rendezvous = config.rendezvous;
  rendezvous.nodes = read_node_count(values["nnodes"]);
  const bool several = rendezvous.nodes.max > 1;
  const Value& master = values["master"];
  constexpr std::string_view kEtcd = "etcd://";
  if (master.text.starts_with(kEtcd)) {
    read_etcd(master, std::string_view(master.text).substr(kEtcd.size()), rendezvous);
  } else if (values.given("master")) {
    rendezvous.master = read_master(master, std::nullopt);
    if (several)
      rendezvous.kind = Rendezvous::Kind::master;
    else
      rendezvous.master.port = 0;  // settle_rendezvous() sees whether the place is this host
  } else {
    read_torchrun(values, rendezvous);
  }
  if (values.given("ips")) read_ips(values, config);
  if (rendezvous.kind != Rendezvous::Kind::none || read_engine(values, environ, config)) return;
  if (const auto endpoints = inherited_endpoints(environ)) {
    rendezvous.kind = Rendezvous::Kind::master;
    rendezvous.master =
        read_master(part_of(*endpoints, split(endpoints->text, ',').front()), kRendezvousPort);
    if (!several) rendezvous.nodes = {distinct_hosts(endpoints->text), distinct_hosts(endpoints->text), 1};
  } else if (several) {
    rendezvous.kind = Rendezvous::Kind::master;  // an address and a port of this host are chosen, and shown
  }
}

void read_ship(const Values& values, HostList& list) {
  list.ship_remove = read_truth(values["ship_remove"]);
  for (const char* key : {"ship_to", "ship_exclude", "ship_remove"}) {
    const bool asks = values.given(key) && (list.ship_remove || key != std::string_view("ship_remove"));
    if (asks && !values.given("ship")) refuse(values[key], "nothing travels", "add --ship");
  }
  if (!values.given("ship")) return;
  for (const char* key : {"path", "chdir"}) {
    if (values.given(key))
      refuse(values[key], "--ship says where fleetrun and the files lie on the hosts",
             "leave one of them out; --ship_to names another place");
  }
  list.ship = values["ship"].text;
  if (values.given("ship_to")) list.ship_to = values["ship_to"].text;
  if (values.given("ship_exclude")) list.ship_exclude = split(values["ship_exclude"].text, ',');
}

void read_host_list(const Values& values, JobConfig& config) {
  HostList& list = config.host_list;
  const auto take = [&](const char* key, std::optional<std::string>& text) {
    if (values.given(key)) text = values[key].text;
  };
  take("hosts", list.hosts);
  take("hostfile", list.hostfile);
  take("include", list.include);
  take("exclude", list.exclude);
  if (list.hosts && list.hostfile)
    refuse(values["hostfile"], values["hosts"].name + " is given too", "give one list of hosts");
  for (const char* key : {"include", "exclude", "export", "chdir", "path", "ship"}) {
    if (values.given(key) && !list.given())
      refuse(values[key], "there is no list of hosts that it could apply to", "add --hosts or --hostfile");
  }
  if (values.given("export")) list.exported = split(values["export"].text, ',');
  if (values.given("chdir")) list.chdir = values["chdir"].text;
  if (values.given("path")) list.path = values["path"].text;
  list.ssh = values["ssh"].text;
  list.window = static_cast<int>(read_whole_number(values["ssh_window"], 0, 1024));
  read_ship(values, list);
  list.collect_logs = read_truth(values["collect_logs"]) || (list.ship && !values.given("collect_logs"));
}

}  // namespace

void read_hosts(const Values& values, const Environ& environ, JobConfig& config) {
  read_rendezvous(values, environ, config);
  name_pod(environ, config);
  read_host_list(values, config);
  Rendezvous& rendezvous = config.rendezvous;
  if (const int wanted = static_cast<int>(read_whole_number(values["rank"], -1, kMaxHosts));
      values.given("rank"))
    rendezvous.node_rank = wanted;
  if (rendezvous.node_rank >= rendezvous.nodes.max)
    refuse(values["rank"],
           "the job has " + std::to_string(rendezvous.nodes.max) +
               (rendezvous.nodes.max == 1 ? " host" : " hosts"),
           "ranks count from 0; --nnodes is the number of hosts");
  rendezvous.elastic =
      rendezvous.nodes.min < rendezvous.nodes.max || read_whole_number(values["elastic_level"], -1, 2) > 0;
  rendezvous.join_timeout = read_duration(values["join_timeout"]);
  rendezvous.elastic_timeout = read_duration(values["elastic_timeout"]);
  if (values.given("lost_after")) {
    rendezvous.lost_after = read_duration(values["lost_after"]);
    if (*rendezvous.lost_after < kLeastLostAfter)
      refuse(values["lost_after"], "hosts say a word every half second, and one may be late",
             "give at least 2 seconds");
  }
  rendezvous.insecure = read_truth(values["insecure"]);
  if (read_truth(values["tls"]))
    config.notes.push_back(values["tls"].name + " has no effect: " +
                           (rendezvous.insecure ? "--insecure disables encryption"
                                                : "what crosses hosts is encrypted without it"));
  for (const char* mapping : {"rank_mapping_path", "cluster_topo_path"}) {
    if (values.given(mapping))
      config.notes.push_back(values[mapping].name +
                             " has no effect: ranks follow --rank and the order of the hosts");
  }
  if (values.given("secret_file")) rendezvous.secret_file = values["secret_file"].text;
  if (rendezvous.insecure && rendezvous.secret_file)
    refuse(values["secret_file"], "--insecure is given too, and nothing is proven then", "give one of them");
}

}  // namespace fleetrun::launcher
