// Any bytes, as the short texts that the launcher reads of others: answers of a host that was asked, lines of
// processes, tools and clients, values of variables. No crash, no other exception than Error, and what can be
// written reads the same again.
//
// The first byte chooses the reader: '0' and what follows it in kReaders.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/doctor/host_check.h"
#include "launcher/doctor/probe.h"
#include "launcher/host/find_devices.h"
#include "launcher/host/port_lease.h"
#include "launcher/host/read_topology.h"
#include "launcher/host/resource_usage.h"
#include "launcher/model/injection.h"
#include "launcher/model/signal_map.h"
#include "launcher/net/etcd_address.h"
#include "launcher/remote/launch_order.h"
#include "launcher/run/heartbeat.h"
#include "launcher/run/member_link.h"
#include "launcher/schedulers/slurm_allocation.h"
#include "launcher/stacks/stack_groups.h"
#include "launcher/stacks/stack_kernel.h"
#include "launcher/status/control_request.h"
#include "launcher/status/metrics_server.h"
#include "launcher/status/server_metrics.h"
#include "launcher/ui/gate.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "launcher_text_fuzz: %s\n", what);
  std::abort();
}

/// What was read is written, and reads the same.
template <class Read, class Write>
void round_trip(std::string_view text, Read read, Write write) {
  const auto value = read(text);
  if (read(write(value)) != value) broken("what was written reads as something else");
}

void read_host_check(std::string_view text) {
  round_trip(text, doctor::host_check_from_json, [](const auto& value) { return doctor::to_json(value); });
}

void read_questions(std::string_view text) {
  round_trip(text, doctor::questions_from_json, [](const auto& value) { return doctor::to_json(value); });
}

void read_answer(std::string_view text) {
  (void)doctor::answer_from_json(text);
}

void read_order(std::string_view text) {
  round_trip(text, remote::decode_order, [](const auto& order) { return remote::encode(order); });
}

/// A request that was written takes the form that clients send, which says all that it asks.
void read_request(std::string_view text) {
  static const Plan plan;
  round_trip(
      text, [](std::string_view line) { return parse_control_request(line, plan); },
      [](const ControlRequest& request) { return to_json(request, plan); });
}

void read_member_line(std::string_view text) {
  (void)parse_member_line(text, 1);
}

/// Bytes mean the same however they come, but for the number of beats.
void read_heartbeats(std::string_view text) {
  HeartbeatParser whole, pieces;
  whole.feed(text);
  for (std::size_t at = 0; at < text.size(); at += 1 + at % 5) pieces.feed(text.substr(at, 1 + at % 5));
  Heartbeat one = whole.heartbeat(), other = pieces.heartbeat();
  one.beats = other.beats = 0;
  if (one.step != other.step || one.values.size() != other.values.size())
    broken("heartbeats depend on the cut");
}

void read_server_metrics(std::string_view text) {
  const auto metrics = parse_server_metrics(text);
  if (metrics && parse_server_metrics(to_json(*metrics)) != metrics)
    broken("a server's metrics read as something else");
}

void read_gdb(std::string_view text) {
  (void)parse_gdb_stacks(text);
}
void read_py_spy(std::string_view text) {
  (void)parse_py_spy_stacks(text);
}

void read_kernel(std::string_view text) {
  for (const auto& [pid, threads] : decode_kernel_stacks(text)) {
    const auto again = decode_kernel_stacks(encode_kernel_stacks(pid, threads));
    if (again.size() != 1 || again.begin()->second != threads) broken("stacks of the kernel read otherwise");
  }
}

void read_query(std::string_view text) {
  (void)query_value(text, "token");
}
void read_stat(std::string_view text) {
  (void)parse_proc_stat(text);
}

void read_task_counts(std::string_view text) {
  constexpr std::size_t kMost = 100;
  if (const auto counts = parse_task_counts(text, kMost); counts && counts->size() > kMost)
    broken("more tasks than there may be");
}

void read_injections(std::string_view text) {
  (void)parse_injections(text);
}

/// As text: a map that was written says of HUP that the user has said it.
void read_signal_map(std::string_view text) {
  const std::string map = to_string(parse_signal_map(text));
  if (to_string(parse_signal_map(map)) != map) broken("signals mean something else");
}

void read_etcd_address(std::string_view text) {
  const EtcdAddress address = parse_etcd_address(text);
  if (parse_etcd_address(to_string(address)).endpoints != address.endpoints) broken("etcd is elsewhere");
}

void read_metrics_address(std::string_view text) {
  (void)parse_metrics_address(text);
}
void read_ports(std::string_view text) {
  (void)parse_port_range(std::string(text));
}
void read_cpu_list(std::string_view text) {
  (void)parse_cpu_list(std::string(text));
}
void read_devices(std::string_view text) {
  (void)parse_visible_devices(std::string(text));
}

constexpr std::array kReaders = {
    read_host_check,   read_questions,       read_answer,     read_order,
    read_request,      read_member_line,     read_heartbeats, read_server_metrics,
    read_gdb,          read_py_spy,          read_kernel,     read_query,
    read_stat,         read_task_counts,     read_injections, read_signal_map,
    read_etcd_address, read_metrics_address, read_ports,      read_cpu_list,
    read_devices,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    kReaders[static_cast<std::uint8_t>(data[0] - '0') % kReaders.size()](text);
  } catch (const Error&) {
  }
  return 0;
}
