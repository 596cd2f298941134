#include "launcher/record/job_report.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "launcher/plan/plan_json.h"
#include "launcher/stacks/stack_tool.h"
#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kListPackages =
    "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'], d.version, "
    "sep='==')";
constexpr std::size_t kLogBytes = 16'384, kAllLogBytes = 1 << 20, kAllBatchBytes = 64 << 20;

Json events_of(const FlightRecord& record) {
  Json events = Json::array();
  const RecordOpening& opening = record.opening;
  const Plan* plan = &opening.plan;
  events.push_back(parse_json<Json>(job_began_line(*plan, opening.fleetrun_pid, opening.began)));
  for (const RecordEntry& entry : record.entries) {
    if (const auto* made = std::get_if<PlanMade>(&entry)) plan = &made->plan;
    if (const auto* told = std::get_if<Told>(&entry))
      events.push_back(parse_json<Json>(to_json_line(told->event, *plan, told->time)));
  }
  return events;
}

/// Nothing where it does not answer.
std::map<std::string, std::string> packages_of(const std::string& python, const Environ& environment) {
  boost::asio::io_context loop;
  std::string printed;
  const auto run = run_tool(loop, {python, "-B", "-c", kListPackages}, environment.entries(), {},
                            [&](std::string output, bool) { printed = std::move(output); });
  loop.run();
  std::map<std::string, std::string> packages;
  for (const std::string& line : split(printed, '\n')) {
    const std::size_t equals = line.find("==");
    if (equals != std::string::npos) packages[line.substr(0, equals)] = line.substr(equals + 2);
  }
  return packages;
}

Json to_json(const Machine& machine) {
  return {{"kernel", machine.kernel},         {"libc", machine.libc},     {"cpus", machine.cpus},
          {"memory_mib", machine.memory_mib}, {"python", machine.python}, {"packages", machine.packages}};
}

}  // namespace

Machine this_machine(const std::string& python, const Environ& environment) {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = std::string(names.sysname) + " " + names.release;
  char libc[64] = {};
  if (::confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc) > 0) machine.libc = libc;
  machine.cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  struct sysinfo info {};
  if (::sysinfo(&info) == 0)
    machine.memory_mib = static_cast<std::int64_t>(info.totalram) * info.mem_unit / (1 << 20);
  machine.python = python;
  if (!python.empty()) machine.packages = packages_of(python, environment);
  return machine;
}

std::string python_of(const Plan& plan) {
  for (const ProcessSpec& process : plan.processes) {
    const std::string_view path = process.program;
    if (path.substr(path.rfind('/') + 1).starts_with("python")) return process.program;
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> ends_of_logs(const Plan& plan,
                                                              std::span<const LogFile> logs) {
  std::vector<std::pair<std::string, std::string>> ends;
  const std::size_t each = std::min(kLogBytes, kAllLogBytes / std::max<std::size_t>(1, logs.size()));
  for (std::size_t i = 0; i < logs.size(); ++i)
    ends.emplace_back(plan.processes[i].name, last_lines(logs[i], each));
  return ends;
}

std::map<std::string, std::string> failed_batches(const std::string& pod_directory) {
  constexpr std::string_view prefix = "batch.";
  std::map<std::string, std::string> batches;
  std::size_t room = kAllBatchBytes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(pod_directory, error)) {
    std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || !entry.is_regular_file(error) || entry.file_size(error) > room) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    if (content.empty() || content.size() > room) continue;
    room -= content.size();
    name.erase(0, prefix.size());
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name[dot] = ' ';
    batches[std::move(name)] = std::move(content);
  }
  return batches;
}

std::string to_report(std::string_view bytes, const Machine& machine, const Beside& beside) {
  const FlightRecord record = parse_record(bytes);
  const Plan& plan = record.opening.plan;
  Json ends = Json::object();
  for (const auto& [name, text] : record.end ? record.end->logs : beside.logs) ends[name] = text;
  Json batches = Json::object();
  for (const auto& [name, content] : beside.batches) batches[name] = base64(content);
  const Json report = {
      {"schema", kReportSchema},
      {"fleetrun", record.opening.version},
      {"made", iso_time(event_time_now().wall_ns)},
      {"job", plan.job_id},
      {"pod", plan.pod_name},
      {"over", record.end.has_value()},
      {"command", record.opening.command},
      {"machine", to_json(machine)},
      {"plan", parse_json<Json>(launcher::to_json(plan))},
      {"events", events_of(record)},
      {"verdict", record.end ? parse_json<Json>(record.end->verdict) : Json()},
      {"screen", record.end ? record.end->screen : ""},
      {"logs", std::move(ends)},
      {"stacks", beside.stacks},
      {"batches", std::move(batches)},
      {"record", base64(bytes)},
  };
  return json_text(report, 1) + "\n";
}

bool has_batches(const std::string& report) {
  const Json batches = read_json<Json>(report).value("batches", Json());
  return batches.is_object() && !batches.empty();
}

std::string record_in(const std::string& text) {
  const Json report = read_json<Json>(text);
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorKind::data, "this is no report of a job: " + why, "fleetrun report makes one");
  };
  if (!report.is_object()) refuse("it is not JSON");
  if (report.value("schema", Json()) != kReportSchema)
    refuse("its \"schema\" is not " + std::to_string(kReportSchema));
  const auto field = report.find("record");
  if (field == report.end() || !field->is_string()) refuse("it has no \"record\"");
  auto record = from_base64(field->get<std::string>());
  if (!record) refuse("its \"record\" is not base64");
  return std::move(*record);
}

}  // namespace fleetrun::launcher
