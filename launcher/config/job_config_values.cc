#include "launcher/config/job_config_values.h"

#include <algorithm>
#include <set>

#include "launcher/model/job_settings.h"
#include "runtime/base/defences.h"
#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestName = 64;

/// POD_IP is set by others too (Kubernetes); as Paddle does, only an address counts.
bool ignored(const Setting& row, const std::string& value) {
  return value.empty() || (row.key == "host" && value.find('.') == std::string::npos);
}

/// The first of the row's variables that says something.
std::optional<Value> from_environment(const Setting& row, const Environ& environ) {
  for (const std::string& name : split(row.variables, ' ')) {
    const std::string* text = environ.find(name);
    if (text && !ignored(row, *text)) return Value{*text, name, Source::environment};
  }
  return std::nullopt;
}

/// What is said to a launcher. One that a process of a job starts finds what that process was told: whom to
/// meet, the place of its logs. There it has a folder for this process, which others of its job are without.
Environ without_outer_job(Environ environ, const Options& options, std::vector<std::string>& notes) {
  if (!is_in_job(environ)) return environ;
  std::vector<std::string> left;
  for (const Setting& row : settings()) {
    if (row.key == "host") continue;  // true of both
    for (const std::string& name : split(row.variables, ' ')) {
      if (!is_in_contract(name) || !environ.has(name)) continue;
      environ.erase(name);
      if (row.key != "log_dir") left.push_back(name);
    }
  }
  const std::string* logs = environ.find("FLEETRUN_LOG_DIR");
  if (logs && !options.values.contains("log_dir"))
    environ.set("PADDLE_LOG_DIR", *logs + "/" + environ.value_or("FLEETRUN_ROLE", "trainer") + "." +
                                      environ.value_or("FLEETRUN_RANK", "0"));
  if (!left.empty())
    notes.push_back("a process of another job starts this one: " + join(left, ", ") +
                    " are of that job, and set nothing here; give flags");
  return environ;
}

}  // namespace

Values::Values(const Options& options, const Environ& all, std::vector<std::string>& notes) {
  const Environ environ = without_outer_job(all, options, notes);
  for (const Setting& row : settings()) {
    const auto flag = options.values.find(row.key);
    const std::optional<Value> variable = from_environment(row, environ);
    if (flag != options.values.end()) {
      const auto spelled = options.spelled.find(row.key);
      const std::string name =
          spelled != options.spelled.end() ? spelled->second : "--" + std::string(row.key);
      values_[row.key] = {flag->second, name, Source::flag};
      if (variable && variable->text != flag->second)
        notes.push_back(name + " " + printable(flag->second) + " is used, not " + variable->name + "=" +
                        printable(variable->text) + " from the environment");
    } else if (variable) {
      values_[row.key] = *variable;
    } else {
      values_[row.key] = {std::string(row.initial), "--" + std::string(row.key), Source::standard};
    }
  }
}

void refuse(const Value& value, const std::string& wanted, std::string hint) {
  throw Error(value.source == Source::environment ? ErrorKind::config : ErrorKind::usage,
              value.name + " is '" + printable(value.text) + "': " + wanted, std::move(hint));
}

std::int64_t read_whole_number(const Value& value, std::int64_t min, std::int64_t max) {
  const auto number = parse_integer(value.text);
  if (!number || *number < min || *number > max)
    refuse(value, "a whole number from " + std::to_string(min) + " to " + std::to_string(max) + " is needed");
  return *number;
}

std::uint16_t read_port(const Value& value) {
  return static_cast<std::uint16_t>(read_whole_number(value, 1, 65535));
}

bool read_truth(const Value& value) {
  std::string text = value.text;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const char* word : {"y", "yes", "t", "true", "on", "1"}) {
    if (text == word) return true;
  }
  for (const char* word : {"n", "no", "f", "false", "off", "0"}) {
    if (text == word) return false;
  }
  refuse(value, "True or False is needed");
}

std::chrono::milliseconds read_duration(const Value& value) {
  const auto ms = parse_duration_ms(value.text);
  if (!ms) refuse(value, "a number of seconds is needed", "write for example " + value.name + "=2.5");
  return std::chrono::milliseconds(*ms);
}

std::uint64_t read_size(const Value& value) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view text = value.text;
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit != std::string_view::npos) text.remove_suffix(1);
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > (std::int64_t{1} << 50) >> shift)
    refuse(value, "a size is needed",
           "write for example " + value.name + "=64M; K, M, G and T are powers of 1024");
  return static_cast<std::uint64_t>(*number) << shift;
}

std::vector<std::string> read_list(const Value& value, std::string_view example) {
  std::vector<std::string> parts = split(value.text, ',');
  const std::string hint = "write it as " + std::string(example);
  if (parts.empty()) refuse(value, "a list is needed", hint);
  std::set<std::string> seen;
  for (std::string& part : parts) {
    part.erase(0, part.find_first_not_of(' '));  // --gpus="0, 1" of Paddle's documentation
    part.erase(part.find_last_not_of(' ') + 1);
    if (part.empty() || part.find_first_of(" \t\n") != std::string::npos)
      refuse(value, "a part of the list has no name", hint);
    if (!seen.insert(part).second) refuse(value, printable(part) + " is in the list twice");
  }
  return parts;
}

std::vector<std::pair<std::string, std::string>> read_pairs(const Value& value, std::string_view example) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& part : read_list(value, example)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
      refuse(value, "'" + printable(part) + "' is not NAME=VALUE", "write it as " + std::string(example));
    for (const auto& [name, meaning] : pairs) {
      if (name == part.substr(0, equals)) refuse(value, printable(name) + " is in the list twice");
    }
    pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return pairs;
}

std::string read_file_safe_name(const Value& value) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const std::string& text = value.text;
  if (!defends("names in paths")) return text;
  if (text.empty() || text.size() > kLongestName || text.front() == '.' || text.front() == '-' ||
      !std::all_of(text.begin(), text.end(), allowed))
    refuse(value, "it becomes part of file names",
           "use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit");
  return text;
}

std::string read_host_address(const Value& value) {
  if (value.text.find(',') != std::string::npos)
    refuse(value, "the address of one host is needed", "--hosts takes a list of hosts");
  while_doing("reading " + value.name, [&] {
    const bool ipv6 = value.text.find(':') != std::string::npos;
    parse_endpoint(ipv6 ? "[" + value.text + "]:1" : value.text + ":1");
  });
  return value.text;
}

Value part_of(const Value& value, std::string text) {
  return {std::move(text), value.name, value.source};
}

}  // namespace fleetrun::launcher
