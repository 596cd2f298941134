#include "cli/doctor_command.h"

#include <unistd.h>

#include <filesystem>

#include "cli/command_flags.h"
#include "cli/doctor_text.h"
#include "cli/job_choice.h"
#include "launcher/doctor/probe.h"
#include "launcher/doctor/survey.h"
#include "launcher/net/etcd_address.h"
#include "launcher/remote/controller_plan.h"
#include "runtime/base/error.h"
#include "runtime/base/port_range.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using namespace launcher;

constexpr CommandFlag kDoctorFlags[] = {
    {"hosts", 0, "HOST,…", "look at these hosts, over ssh, as a launch writes them"},
    {"hostfile", 0, "FILE", "the same, from a file"},
    {"include", 0, "HOST@…", "of these hosts, these only"},
    {"exclude", 0, "HOST@…", "of these hosts, not these"},
    {"master", 0, "ADDRESS", "and at where they are to meet: HOST:PORT, etcd://HOST:PORT"},
    {"port_range", 0, "FIRST:LAST", "the job's --port_range; default: ports as a launch chooses them"},
    {"insecure", 0, "", "with --master: the launchers are not going to prove a secret"},
    {"chdir", 0, "DIR", "the job's working directory; default: this one"},
    {"ssh", 0, "COMMAND", "the ssh command and its options"},
    {"path", 0, "FILE", "fleetrun on the hosts; default: the same path as here"},
    {"json", 0, "", "as one line of JSON, for programs"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kDoctorHelp =
    R"(usage: fleetrun doctor [--hosts=H1,H2 | --hostfile=FILE] [--master=ADDRESS] [--json]

Looks whether this host is fit for a job, or all hosts of a list: ssh, names, routes, TCP between each two of
them in both directions, clocks, versions, devices, limits, directories, secrets. Says what is wrong and what
to do. Starts no job, and leaves nothing behind. Exit status: 0, or 125 where there is a problem.

)";

constexpr int kProblem = 125;
constexpr std::size_t kMaxLogins = 16;

HostList host_list_of(const CommandArguments& words, const Environ& environment) {
  HostList list;
  list.hosts = words.value("hosts");
  list.hostfile = words.value("hostfile");
  list.include = words.value("include");
  list.exclude = words.value("exclude");
  list.ssh = words.value("ssh").value_or(environment.value_or("FLEETRUN_SSH", "ssh"));
  if (list.hosts && list.hostfile)
    throw Error(ErrorKind::usage, "--hosts and --hostfile are both given", "leave one of them out");
  if (!list.given() && (list.include || list.exclude))
    throw Error(ErrorKind::usage, "--include and --exclude choose from a list of hosts, and there is none",
                "add --hosts or --hostfile");
  return list;
}

doctor::Spec spec_of(const CommandArguments& words) {
  doctor::Spec spec;
  spec.master = words.value("master").value_or("");
  spec.directory = std::filesystem::absolute(words.value("chdir").value_or(".")).lexically_normal().string();
  if (spec.directory.size() > 1 && spec.directory.back() == '/') spec.directory.pop_back();
  spec.ports = words.value("port_range").value_or("");
  if (!spec.ports.empty() && !parse_ports(spec.ports, ':'))
    throw Error(ErrorKind::usage,
                "--port_range is '" + printable(spec.ports) + "': a range of ports is needed",
                "write it as 20000:29999");
  spec.secret = words.has("master") && !words.has("insecure");
  return spec;
}

doctor::SurveySettings survey_settings(const CommandArguments& words, const HostList& list,
                                       const Environ& environment) {
  doctor::SurveySettings settings;
  settings.hosts = remote::hosts_of(list).hosts;
  settings.spec = spec_of(words);
  settings.fan_out.ssh = remote::split_command(list.ssh);
  settings.fan_out.own_program = std::filesystem::read_symlink("/proc/self/exe").string();
  settings.fan_out.program = words.value("path").value_or(settings.fan_out.own_program);
  settings.fan_out.environment = environment.entries();
  settings.fan_out.hello_timeout = std::chrono::seconds(15);
  settings.fan_out.window = static_cast<int>(kMaxLogins);
  return settings;
}

}  // namespace

int run_doctor_command(const std::vector<std::string>& arguments, const Environ& environment) {
  if (arguments == std::vector<std::string>{"--probe"}) return doctor::run_probe(environment);
  const CommandArguments words = parse_command_arguments("doctor", arguments, kDoctorFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kDoctorHelp + describe_flags(kDoctorFlags));
    return 0;
  }
  if (!words.words.empty())
    throw Error(ErrorKind::usage, "fleetrun doctor takes flags only, not '" + words.words.front() + "'",
                "write hosts as --hosts=" + words.words.front());
  const HostList list = host_list_of(words, environment);
  const doctor::Spec spec = spec_of(words);
  std::vector<doctor::HostReport> reports;
  if (list.given())
    reports = doctor::survey(survey_settings(words, list, environment));
  else
    reports.push_back(doctor::survey_here(spec, environment));
  const std::vector<doctor::Finding> findings = doctor::diagnose(reports, spec);
  write_text(STDOUT_FILENO, words.has("json") ? doctor::diagnosis_json(reports, findings)
                                              : doctor_text(reports, findings, spec.directory));
  return doctor::is_well(findings) ? 0 : kProblem;
}

}  // namespace fleetrun::cli
