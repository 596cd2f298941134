// How the script is run, and on what.
#include "launcher/config/job_config_values.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

ScriptKind script_kind(const Values& values) {
  if (read_truth(values["module"])) {
    if (read_truth(values["no_python"]))
      refuse(values["no_python"], "a module needs Python", "leave " + values["module"].name + " out");
    return ScriptKind::module;
  }
  if (read_truth(values["run_path"])) return ScriptKind::python;
  return read_truth(values["no_python"]) ? ScriptKind::direct : ScriptKind::by_name;
}

DryRun dry_run(const Values& values) {
  const Value& format = values["dry_run"];
  if (!values.given("dry_run")) return DryRun::no;
  if (format.text == "text") return DryRun::text;
  if (format.text == "json") return DryRun::json;
  if (format.text == "sh") return DryRun::sh;
  refuse(format, "there is no such format", "use text, json or sh");
}

Bind bind(const Values& values) {
  if (values.given("numa_binding") && !values.given("bind"))
    return read_word<Bind>(values["numa_binding"], {{"node", Bind::numa},
                                                    {"socket", Bind::numa},
                                                    {"exclusive", Bind::core},
                                                    {"core-complex", Bind::core}});
  return read_word<Bind>(
      values["bind"],
      {{"auto", Bind::automatic}, {"none", Bind::none}, {"core", Bind::core}, {"numa", Bind::numa}});
}

StandardInput standard_input(const Values& values) {
  using Kind = StandardInput::Kind;
  const Value& wanted = values["stdin"];
  if (!values.given("stdin")) return {};
  if (wanted.text == "none") return {Kind::none, 0};
  return {Kind::trainer, static_cast<int>(read_whole_number(wanted, 0, 65535))};
}

std::string bad_line(const Value& value) {
  constexpr std::string_view skip = "skip:";
  if (value.text == "fail") return value.text;
  const auto count = value.text.starts_with(skip)
                         ? parse_integer(std::string_view(value.text).substr(skip.size()))
                         : std::nullopt;
  if (!count || *count < 1)
    refuse(value, "fail or skip:N with N above 0 is wanted",
           "skip:100 passes over up to 100 bad lines of a pass");
  return value.text;
}

std::string sentinel(const Value& value) {
  return read_word<const char*>(value, {{"rotating", "rotating"}, {"every", "every"}, {"off", "off"}});
}

/// The file that Paddle's tuner would read, and write its findings to, before the script runs.
std::string auto_parallel(const Values& values, std::vector<std::string>& notes) {
  const Value& file = values["auto_parallel_config"];
  if (!values.given("auto_parallel_config")) return "";
  notes.push_back(file.name + ": fleetrun has no tuner, so the script runs with " + printable(file.text) +
                  " as it is");
  return file.text;
}

}  // namespace

void read_run(const Values& values, JobConfig& config) {
  if (values.given("python")) config.python = values["python"].text;
  if (values.given("compat")) {
    if (values["compat"].text != "paddle")
      refuse(values["compat"], "there is no such package", "use --compat=paddle");
    config.compat_paddle = true;
  }
  if (values.given("bad_line")) config.bad_line = bad_line(values["bad_line"]);
  if (values.given("sentinel")) config.sentinel = sentinel(values["sentinel"]);
  config.script_kind = script_kind(values);
  config.role_name = values["role"].text;
  config.run_id = values.given("rdzv_id") ? values["rdzv_id"].text : config.job_id;
  config.signals_to_handle = values["signals_to_handle"].text;
  config.bind = bind(values);
  config.standard_input = standard_input(values);
  config.detach = read_truth(values["detach"]);
  if (config.detach && config.standard_input.kind == StandardInput::Kind::trainer)
    refuse(values["stdin"], "a detached job has no standard input", "leave --stdin or --detach out");
  config.pty = read_truth(values["pty"]);
  if (config.pty && config.detach)
    refuse(values["pty"], "a detached job has no terminal", "leave one of them out");
  if (config.pty && config.standard_input.kind == StandardInput::Kind::none)
    refuse(values["pty"], "--stdin=none leaves nobody for it", "leave --stdin out");
  config.dry_run = dry_run(values);
  config.auto_cluster = read_truth(values["auto_cluster_config"]) ? "1" : "0";
  config.auto_parallel = auto_parallel(values, config.notes);
  read_truth(values["standalone"]);
  read_duration(values["monitor_interval"]);
}

}  // namespace fleetrun::launcher
