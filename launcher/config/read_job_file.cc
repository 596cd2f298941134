// Text → tree (job_file_json, job_file_toml) → JobFile. Every key is known or refused with the nearest one.
#include "launcher/config/read_job_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/config/job_file_node.h"
#include "launcher/model/job_settings.h"
#include "launcher/model/readiness_rule.h"
#include "launcher/model/signal_map.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

using Node = JobFileNode;
using Form = Node::Kind;

constexpr int kMaxProcesses = 4096;  // per role
constexpr std::size_t kLongestName = 32, kLongestFile = 4 << 20;

[[noreturn]] void refuse(const Node& node, const std::string& what, std::string hint = {}) {
  throw Error(ErrorKind::config, node.where + ": " + what, std::move(hint));
}

[[noreturn]] void refuse_unknown(const Node& node, const std::string& key, const std::string& of,
                                 const std::vector<std::string>& known) {
  const auto meant = nearest(key, known);
  refuse(node, "unknown key '" + printable(key) + "'" + of,
         meant ? "did you mean " + *meant + "?" : "its keys are " + join(known, ", "));
}

const Node& need(const Node& node, Form kind, const std::string& what, const char* example) {
  if (node.kind != kind) refuse(node, what + " is needed here", "write for example " + std::string(example));
  return node;
}

std::string text_of(const Node& node, const char* example) {
  const std::string& text = need(node, Form::text, "a text", example).text;
  if (text.find('\0') != std::string::npos) refuse(node, "a text with a zero byte cannot be used");
  return text;
}

/// Texts and numbers, as texts.
std::vector<std::string> words_of(const Node& node, const char* example) {
  std::vector<std::string> words;
  for (const Node& item : need(node, Form::list, "a list", example).items)
    words.push_back(item.kind == Form::number ? item.text : text_of(item, example));
  return words;
}

bool truth_of(const Node& node) {
  return need(node, Form::boolean, "true or false", "true").text == "True";
}

std::int64_t whole_number(const Node& node, std::int64_t min, std::int64_t max) {
  const auto number = node.kind == Form::number ? parse_integer(node.text) : std::nullopt;
  if (!number || *number < min || *number > max)
    refuse(node,
           "a whole number from " + std::to_string(min) + " to " + std::to_string(max) + " is needed here");
  return *number;
}

std::chrono::milliseconds duration_of(const Node& node) {
  const auto ms =
      node.kind == Form::number || node.kind == Form::text ? parse_duration_ms(node.text) : std::nullopt;
  if (!ms) refuse(node, "a number of seconds is needed here", "write for example 10, 0.5 or \"500ms\"");
  return std::chrono::milliseconds(*ms);
}

template <class Enum>
Enum word_of(const Node& node, std::initializer_list<std::pair<const char*, Enum>> words) {
  std::vector<std::string> known;
  for (const auto& [word, meaning] : words) {
    if (node.kind == Form::text && node.text == word) return meaning;
    known.emplace_back(word);
  }
  refuse(node, "there is no such choice: '" + printable(node.text) + "'", "use one of " + join(known, ", "));
}

std::string name_of(const Node& node) {
  const std::string name = text_of(node, "\"trainer\"");
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (name.empty() || name.size() > kLongestName || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), allowed))
    refuse(node, "the name of a role is '" + printable(name) + "'",
           "use 1 to 32 letters, digits, '_' or '-': logs are named by it");
  return name;
}

Readiness port_of(const Node& node) {
  if (node.kind == Form::boolean && truth_of(node)) return {Readiness::Kind::port, ""};
  if (node.kind == Form::number)
    return {Readiness::Kind::port, "127.0.0.1:" + std::to_string(whole_number(node, 1, 65535))};
  const std::string text = text_of(node, "true, 8000 or \"127.0.0.1:8000\"");
  while_doing("reading " + node.where, [&] { parse_endpoint(text); });
  return {Readiness::Kind::port, text};
}

Readiness readiness_of(const Node& node) {
  const char* example = "{port = true}, {log = \"ready\"} or {descriptor = true}";
  if (need(node, Form::table, "a table", example).fields.size() != 1)
    refuse(node, "a role is ready in one way", "write for example " + std::string(example));
  const auto& [key, value] = node.fields.front();
  if (key == "port") return port_of(value);
  if (key == "log") {
    const std::string text = text_of(value, "\"ready\"");
    const std::string fault = regex_fault(text);
    if (!fault.empty())
      refuse(value, "'" + printable(text) + "' is not a regular expression: " + printable(fault));
    return {Readiness::Kind::log_line, text};
  }
  if (key != "descriptor") refuse_unknown(value, key, " of ready", {"port", "log", "descriptor"});
  if (!truth_of(value)) refuse(value, "descriptor is true or left out");
  return {Readiness::Kind::descriptor, ""};
}

void read_environment(const Node& node, JobFileRole& role) {
  for (const auto& [name, value] : need(node, Form::table, "a table", "{NAME = \"value\"}").fields) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      refuse(value, "'" + printable(name) + "' is not a name of a variable");
    role.environment[name] = value.kind == Form::number ? value.text : text_of(value, "\"value\"");
  }
}

int signal_of(const Node& node) {
  const auto number =
      node.kind == Form::number || node.kind == Form::text ? parse_signal(node.text) : std::nullopt;
  if (!number)
    refuse(node, "there is no such signal: '" + printable(node.text) + "'", "write for example \"INT\"");
  return *number;
}

struct KnownKey {
  RoleKey key;
  void (*read)(const Node& value, JobFileRole& role);
};

// clang-format off
constexpr KnownKey kRoleKeys[] = {
  {{"name", "NAME", "1 to 32 letters, digits, '_' or '-', by which logs, flags and messages call the role",
    "For example --grace evaluator=5."},
   [](const Node& v, JobFileRole& r) { r.name = name_of(v); }},
  {{"kind", "plain|trainer|server", "which variables its processes get; default: plain",
    "`server` and `trainer` get the variables of Paddle (and torchrun) as the processes of --server_num and "
    "--trainer_num, or of --nproc_per_node where there are no servers, do; there may be one role of each. "
    "`plain` gets the FLEETRUN_ variables of fleetrun-environment(7) alone, and FLEETRUN_ENDPOINTS where it "
    "is ready by its own port."},
   [](const Node& v, JobFileRole& r) {
     r.kind = word_of<RoleKind>(
         v, {{"plain", RoleKind::plain}, {"trainer", RoleKind::trainer}, {"server", RoleKind::server}});
   }},
  {{"count", "N", "processes; default: as many as the role has devices, or 1"},
   [](const Node& v, JobFileRole& r) { r.count = static_cast<int>(whole_number(v, 1, kMaxProcesses)); }},
  {{"script", "FILE", "run as the command line runs a script: a .py by Python, others directly"},
   [](const Node& v, JobFileRole& r) { r.script = text_of(v, "\"train.py\""); }},
  {{"args", "TEXT,…", "arguments of the script"},
   [](const Node& v, JobFileRole& r) { r.args = words_of(v, "[\"--lr\", \"0.1\"]"); }},
  {{"command", "TEXT,…", "a program and its arguments, instead of script and args"},
   [](const Node& v, JobFileRole& r) {
     r.args = words_of(v, "[\"./serve\", \"--fast\"]");
     if (r.args.empty() || r.args.front().empty()) refuse(v, "a command names a program");
     r.script = r.args.front();
     r.args.erase(r.args.begin());
     r.is_command = true;
   }},
  {{"environment", "NAME=VALUE,…", "variables, in addition to those that fleetrun itself has"},
   read_environment},
  {{"cwd", "DIR", "working directory of its processes; a relative script is relative to it"},
   [](const Node& v, JobFileRole& r) { r.cwd = text_of(v, "\"work\""); }},
  {{"devices", "DEVICE,…", "as --devices, for this role alone",
    "One for each process, or all of them for one that is alone."},
   [](const Node& v, JobFileRole& r) { r.devices = words_of(v, "[0, 1]"); }},
  {{"restart", "nobody|process|group",
    "who is started again when one of its processes fails; default: as --restart"},
   [](const Node& v, JobFileRole& r) {
     r.restart = word_of<RestartScope>(v, {{"nobody", RestartScope::nobody},
                                           {"process", RestartScope::process},
                                           {"group", RestartScope::group}});
   }},
  {{"grace", "SECONDS",
    "time between the stop signal and SIGKILL, for example 10 or \"500ms\"; default: as --grace"},
   [](const Node& v, JobFileRole& r) { r.grace = duration_of(v); }},
  {{"stop_signal", "SIGNAL", "signal that asks its processes to stop, for example \"INT\"; default: TERM",
    ""},
   [](const Node& v, JobFileRole& r) { r.stop_signal = signal_of(v); }},
  {{"serves", "BOOL", "true: nobody waits for it, and it is ended when the others have ended well",
    "A server serves, unless the file says otherwise."},
   [](const Node& v, JobFileRole& r) { r.serves = truth_of(v); }},
  {{kReadyKey, "WAY", "when the role counts as ready",
    "`{log = \"REGEX\"}`: when a line of its log matches; `{port = true}`: when its own port accepts "
    "connections (a number or HOST:PORT: that one); `{descriptor = true}`: when a line is written to the "
    "descriptor FLEETRUN_READY_FD. A server is ready by its port unless the file says otherwise."},
   [](const Node& v, JobFileRole& r) { r.ready = readiness_of(v); }},
  {{"after", "ROLE,…", "roles that have to be ready before this one is started",
    "A job's trainers wait for its servers anyway."},
   [](const Node& v, JobFileRole& r) { r.after = words_of(v, "[\"server\"]"); }},
};
// clang-format on

const Node* field_of(const Node& node, std::string_view key) {
  const auto found = std::find_if(node.fields.begin(), node.fields.end(),
                                  [&](const auto& field) { return field.key == key; });
  return found == node.fields.end() ? nullptr : &found->value;
}

JobFileRole read_role(const Node& node) {
  need(node, Form::table, "a role", "{\"name\": \"trainer\", \"script\": \"train.py\"}");
  JobFileRole role;
  role.where = node.where;
  const Node* named = field_of(node, "name");
  if (!named) refuse(node, "a role has no name", "give every role a name");
  role.name = name_of(*named);
  const std::string of = " of role '" + role.name + "'";
  if (const Node* both = field_of(node, "args"); both && field_of(node, "command"))
    refuse(*both, "args go with script, and a command has its own", "write them into the command");
  if (const Node* both = field_of(node, "script"); both && field_of(node, "command"))
    refuse(*both, "role '" + role.name + "' has a script and a command", "leave one of them out");
  for (const auto& [key, value] : node.fields) {
    const auto row = std::find_if(std::begin(kRoleKeys), std::end(kRoleKeys),
                                  [&, &key = key](const KnownKey& known) { return known.key.name == key; });
    if (row == std::end(kRoleKeys)) {
      std::vector<std::string> names;
      for (const KnownKey& known : kRoleKeys) names.emplace_back(known.key.name);
      refuse_unknown(value, key, of, names);
    }
    row->read(value, role);
  }
  if (role.script.empty())
    refuse(node, "role '" + role.name + "' has nothing to run", "give it a script or a command");
  if (role.devices && role.devices->empty()) refuse(*field_of(node, "devices"), "a list of devices is empty");
  return role;
}

/// A setting's value, as its flag would have it: lists by commas, tables as NAME=VALUE by commas.
std::string flag_text(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Form::list:
      for (const Node& item : node.items) parts.push_back(flag_text(item));
      return join(parts, ",");
    case Form::table:
      for (const auto& [key, value] : node.fields) parts.push_back(key + "=" + flag_text(value));
      return join(parts, ",");
    case Form::nothing:
      refuse(node, "a value is needed here", "leave the key out for the default");
    default:
      return node.text;
  }
}

void read_setting(const std::string& key, const Node& node, JobFile& file) {
  std::string name = key;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> known = {"roles"};
  for (const Setting& row : settings()) {
    const std::vector<std::string> aliases = split(row.aliases, ' ');
    known.emplace_back(row.key);
    if (name != row.key && std::find(aliases.begin(), aliases.end(), name) == aliases.end()) continue;
    if (is_said_by_roles(row))
      refuse(node, key + " has no place here: the roles say that",
             "write it into a role (kind, count, devices, script)");
    if (!file.settings.emplace(row.key, JobFileSetting{flag_text(node), key + " (" + node.where + ")"})
             .second)
      refuse(node, std::string(row.key) + " is there twice, under two names", "leave one of them out");
    return;
  }
  refuse_unknown(node, key, "", known);
}

void check_names(const JobFile& file) {
  std::vector<std::string> names;
  for (const JobFileRole& role : file.roles) {
    const auto refuse_role = [&](const std::string& what, std::string hint) {
      throw Error(ErrorKind::config, role.where + ": " + what, std::move(hint));
    };
    if (std::find(names.begin(), names.end(), role.name) != names.end())
      refuse_role("two roles are called '" + role.name + "'", "give every role a name of its own");
    names.push_back(role.name);
    if ((role.name == "trainer" && role.kind != RoleKind::trainer) ||
        (role.name == "server" && role.kind != RoleKind::server))
      refuse_role("role '" + role.name + "' is not of kind " + role.name,
                  "write kind = \"" + role.name + "\", or give it another name");
  }
}

}  // namespace

std::vector<RoleKey> role_keys() {
  std::vector<RoleKey> keys;
  for (const KnownKey& known : kRoleKeys) keys.push_back(known.key);
  return keys;
}

bool is_said_by_roles(const Setting& setting) noexcept {
  constexpr std::string_view kAboutOneScript[] = {"module", "no_python", "run_path"};
  return setting.group == Group::processes ||
         std::find(std::begin(kAboutOneScript), std::end(kAboutOneScript), setting.key) !=
             std::end(kAboutOneScript);
}

bool is_job_file(std::string_view script) noexcept {
  return script.ends_with(".json") || script.ends_with(".toml");
}

JobFile parse_job_file(const std::string& text, const std::string& name) {
  const Node root = name.ends_with(".toml") ? parse_toml(text, name) : parse_json(text, name);
  need(root, Form::table, "an object", "{\"roles\": [{\"name\": \"trainer\", \"script\": \"train.py\"}]}");
  const Node* roles = field_of(root, "roles");
  if (!roles) refuse(root, "there are no roles", "write at least one, as fleetrun-jobfile(5) shows");
  JobFile file;
  for (const auto& [key, value] : root.fields) {
    if (key != "roles" && key != "$schema") read_setting(key, value, file);
  }
  for (const Node& role : need(*roles, Form::list, "a list of roles", "[[roles]]").items)
    file.roles.push_back(read_role(role));
  if (file.roles.empty())
    refuse(*roles, "there are no roles", "write at least one, as fleetrun-jobfile(5) shows");
  check_names(file);
  return file;
}

JobFile read_job_file(const std::string& path) {
  // A pipe without a writer would be waited for, were it opened in the usual way.
  const UniqueFd fd(check_errno(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), "open",
                                "reading job file " + printable(path), ErrorKind::config));
  struct stat facts = {};
  if (::fstat(fd.value(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
    throw Error(ErrorKind::config, "job file " + printable(path) + " is not a file",
                "write it to a file, and name that");
  std::string text;
  char bytes[16384];
  for (ssize_t count; (count = ::read(fd.value(), bytes, sizeof bytes)) != 0;) {
    check_errno(static_cast<int>(count), "read", "reading job file " + printable(path), ErrorKind::config);
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.size() > kLongestFile)
      throw Error(ErrorKind::config, "job file " + printable(path) + " is longer than 4 MiB");
  }
  return parse_job_file(text, path);
}

}  // namespace fleetrun::launcher
