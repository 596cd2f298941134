#include "launcher/config/torchrun_options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "launcher/model/signal_map.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

enum class Takes { text, number, seconds, nothing };

struct Flag {
  std::string_view name;  // as torchrun writes it
  char letter;            // 0: none
  Takes takes;
  std::string_view initial, help;
  bool has_variable = true;  // PET_NAME
};

constexpr Flag kFlags[] = {
    {"nnodes", 0, Takes::text, "1:1", "number of hosts, or the range of it: MIN:MAX"},
    {"nproc-per-node", 0, Takes::text, "1", "processes on each host: a number, auto, cpu or gpu"},
    {"rdzv-backend", 0, Takes::text, "static", "how hosts meet: static, c10d, or etcd (an etcd v3)"},
    {"rdzv-endpoint", 0, Takes::text, "", "where they meet: HOST:PORT"},
    {"rdzv-id", 0, Takes::text, "none", "id of the run"},
    {"rdzv-conf", 0, Takes::text, "", "NAME=VALUE,…, of which join_timeout and last_call_timeout count"},
    {"standalone", 0, Takes::nothing, "0", "a job on this host alone"},
    {"max-restarts", 0, Takes::number, "0", "restarts of all processes before the job fails"},
    {"monitor-interval", 0, Takes::seconds, "0.1", "no effect: deaths are seen when they happen"},
    {"start-method", 0, Takes::text, "spawn", "spawn, fork or forkserver; no effect"},
    {"event-log-handler", 0, Takes::text, "null", "no effect: events are in RUN/.fleetrun"},
    {"role", 0, Takes::text, "default", "ROLE_NAME of the processes"},
    {"module", 'm', Takes::nothing, "0", "SCRIPT is a module, run as by python -m"},
    {"no-python", 0, Takes::nothing, "0", "execute SCRIPT directly"},
    {"run-path", 0, Takes::nothing, "0", "run SCRIPT with Python, whatever else is said"},
    {"log-dir", 0, Takes::text, "", "directory of the logs; default: a temporary one"},
    {"redirects", 'r', Takes::text, "0",
     "streams that go to files: 1 out, 2 err, 3 both; or by rank: 0:3,1:2"},
    {"tee", 't', Takes::text, "0", "streams that go to files and are shown, each line after a prefix"},
    {"log-line-prefix-template", 0, Takes::text, "", "the prefix; default: [${role_name}${local_rank}]:"},
    {"local-ranks-filter", 0, Takes::text, "", "only these local ranks are shown"},
    {"duplicate-stdout-filters", 0, Takes::text, "", "no effect"},
    {"duplicate-stderr-filters", 0, Takes::text, "", "no effect"},
    {"node-rank", 0, Takes::number, "0", "rank of this host; for a static rendezvous"},
    {"master-addr", 0, Takes::text, "127.0.0.1", "host of rank 0; for a static rendezvous"},
    {"master-port", 0, Takes::number, "", "port there; default: 29500, on one host a free one"},
    {"local-addr", 0, Takes::text, "", "address of this host"},
    {"logs-specs", 0, Takes::text, "", "default; others are refused, as plug-ins are not run", false},
    {"numa-binding", 0, Takes::text, "", "node, socket, exclusive or core-complex", false},
    {"signals-to-handle", 0, Takes::text, "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     "signals that end the job; the processes get the same one"},
    {"shutdown-timeout", 0, Takes::number, "", "seconds between such a signal and SIGKILL; default: 30"},
    {"virtual-local-rank", 0, Takes::nothing, "0", "each process sees its GPU alone, and LOCAL_RANK is 0"},
    {"use-env", 0, Takes::nothing, "0", "no effect, as LOCAL_RANK is in the environment in any case", false},
};

std::string underscored(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string shown(const Flag& flag) {
  const std::string name(flag.name);
  const std::string letter = flag.letter == 0 ? "" : std::string("-") + flag.letter + "/";
  return letter + "--" + name + (name.find('-') == std::string::npos ? "" : "/--" + underscored(name));
}

[[noreturn]] void refuse_argument(const Flag& flag, const std::string& why) {
  throw TorchrunUsage("argument " + shown(flag) + ": " + why);
}

std::optional<double> parse_float(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? std::nullopt : std::optional(value);
}

const Flag& flag_of(std::string_view name) {
  return *std::find_if(std::begin(kFlags), std::end(kFlags), [&](const Flag& f) { return f.name == name; });
}

/// The flag of "--nproc_per_node" or a beginning of it that no other flag has.
const Flag& flag_of_word(const std::string& word) {
  const std::string name = underscored(word.substr(2));
  std::vector<const Flag*> meant;
  std::string names;
  for (const Flag& flag : kFlags) {
    const std::string full = underscored(flag.name);
    if (full == name) return flag;
    if (!full.starts_with(name)) continue;
    meant.push_back(&flag);
    names.append(names.empty() ? "--" : ", --").append(flag.name);
  }
  if (meant.size() == 1) return *meant.front();
  if (meant.empty()) throw TorchrunUsage("unrecognized arguments: " + printable(word));
  throw TorchrunUsage("ambiguous option: " + printable(word) + " could match " + names);
}

class Given {
 public:
  explicit Given(const Environ& environ) {
    for (const Flag& flag : kFlags) {
      std::string variable = "PET_" + underscored(flag.name);
      std::transform(variable.begin(), variable.end(), variable.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      const std::string* value = flag.has_variable ? environ.find(variable) : nullptr;
      set(flag, value ? *value : std::string(flag.initial));
      if (value) given_.insert(flag.name);
    }
  }

  void set(const Flag& flag, const std::string& value) {
    if (flag.takes == Takes::number && !value.empty() && !parse_integer(value))
      refuse_argument(flag, "invalid int value: " + python_repr(value));
    if (flag.takes == Takes::seconds && !parse_float(value))
      refuse_argument(flag, "invalid float value: " + python_repr(value));
    values_[flag.name] = value;
  }

  void give(const Flag& flag, const std::string& value) {
    set(flag, value);
    given_.insert(flag.name);
  }

  const std::string& operator[](std::string_view name) const { return values_.at(name); }
  bool given(std::string_view name) const { return given_.contains(name); }
  bool is_on(std::string_view name) const {
    const auto number = parse_integer((*this)[name]);
    return number && *number != 0;
  }

 private:
  std::map<std::string_view, std::string> values_;
  std::set<std::string_view> given_;
};

/// Reads the flags and returns the number of words before the script.
std::size_t read_flags(const std::vector<std::string>& words, Given& given, bool& help) {
  std::size_t next = 0;
  const auto value_of = [&](const Flag& flag, const std::optional<std::string>& written) {
    if (flag.takes == Takes::nothing) {
      if (written) refuse_argument(flag, "ignored explicit argument " + python_repr(*written));
      return std::string("1");
    }
    if (written) return *written;
    if (next == words.size() || words[next].starts_with("--")) refuse_argument(flag, "expected one argument");
    return words[next++];
  };
  while (next < words.size() && words[next].size() > 1 && words[next].starts_with('-')) {
    const std::string& word = words[next++];
    if (word == "--") break;
    if (word == "-h" || word == "--help") {
      help = true;
      return next;
    }
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      const Flag& flag = flag_of_word(word.substr(0, equals));
      given.give(flag, value_of(flag, equals == std::string::npos ? std::nullopt
                                                                  : std::optional(word.substr(equals + 1))));
      continue;
    }
    const auto flag = std::find_if(std::begin(kFlags), std::end(kFlags),
                                   [&](const Flag& f) { return f.letter != 0 && f.letter == word[1]; });
    if (flag == std::end(kFlags)) throw TorchrunUsage("unrecognized arguments: " + printable(word));
    const std::size_t skipped = word.size() > 2 && word[2] == '=' ? 3 : 2;
    given.give(*flag, value_of(*flag, word.size() == 2 ? std::nullopt : std::optional(word.substr(skipped))));
  }
  return next;
}

Streams streams_of(char digit) {
  return {digit == '1' || digit == '3', digit == '2' || digit == '3'};
}

StreamsByRank read_streams(const std::string& text) {
  static const std::regex kAll("[0123]"), kByRank("([0-9]:[0123],)*[0-9]:[0123]");
  StreamsByRank streams;
  if (std::regex_match(text, kAll)) {
    streams.all = streams_of(text[0]);
    return streams;
  }
  if (!std::regex_match(text, kByRank))
    throw Error(ErrorKind::usage,
                printable(text) + " does not match: <^[0123]$> or <^(\\d:[0123],)*(\\d:[0123])$>");
  for (const std::string& part : split(text, ',')) streams.ranks[part[0] - '0'] = streams_of(part[2]);
  return streams;
}

std::set<int> read_ranks(const std::string& text) {
  std::set<int> ranks;
  for (const std::string& part : split(text, ',')) {
    const auto rank = parse_integer(part);
    if (!rank)
      throw Error(ErrorKind::usage,
                  "--local_ranks_filter must be a comma-separated list of integers e.g. "
                  "--local_ranks_filter=0,1,2");
    ranks.insert(static_cast<int>(*rank));
  }
  return ranks;
}

void check_choice(const Given& given, std::string_view name, std::string_view words) {
  std::string shown;
  for (const std::string& word : split(words, ' ')) {
    if (given[name] == word) return;
    shown.append(shown.empty() ? "" : ", ").append(python_repr(word));
  }
  refuse_argument(flag_of(name),
                  "invalid choice: " + python_repr(given[name]) + " (choose from " + shown + ")");
}

void check_nodes(const std::string& text) {
  const std::vector<std::string> ends = split(text, ':');
  if (ends.size() > 2)
    throw Error(ErrorKind::usage, "nnodes=" + printable(text) + " is not in \"MIN:MAX\" format");
  const auto least = parse_integer(ends.empty() ? "" : ends.front());
  const auto most = parse_integer(ends.empty() ? "" : ends.back());
  if (!least || !most || *least < 1 || *most < *least)
    throw Error(ErrorKind::usage,
                "min_nodes must be > 0 and <= max_nodes, and --nnodes is '" + printable(text) + "'",
                "write a number of hosts, or MIN:MAX");
}

/// What torchrun itself checks of the values, in its words.
void check(const Given& given) {
  check_choice(given, "start-method", "spawn fork forkserver");
  if (!given["numa-binding"].empty())
    check_choice(given, "numa-binding", "node socket exclusive core-complex");
  check_nodes(given["nnodes"]);
  if (*parse_float(given["monitor-interval"]) <= 0)
    throw Error(ErrorKind::usage, "monitor_interval must be > 0");
  if (*parse_integer(given["max-restarts"]) < 0) throw Error(ErrorKind::usage, "max_restarts must be >= 0");
  if (given.is_on("module") && given.is_on("no-python") && !given.is_on("run-path"))
    throw Error(ErrorKind::usage,
                "Don't use both the '--no-python' flag and the '--module' flag at the same time.");
  if (!given["logs-specs"].empty() && given["logs-specs"] != "default")
    throw Error(
        ErrorKind::usage,
        "Could not find entrypoint under 'torchrun.logs_specs[" + printable(given["logs-specs"]) + "]' key",
        "plug-ins of torchrun are not run: leave --logs-specs out");
  for (const std::string& option : split(given["rdzv-conf"], ',')) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals + 1 == option.size())
      throw Error(ErrorKind::usage, "The rendezvous configuration option '" + printable(option) +
                                        "' must have a value specified.");
  }
  const std::string& per_node = given["nproc-per-node"];
  const auto count = parse_integer(per_node);
  if (!count && per_node != "auto" && per_node != "cpu" && per_node != "gpu")
    throw Error(ErrorKind::usage, "Unsupported nproc_per_node value: " + printable(per_node),
                "use a number, auto, cpu or gpu");
}

bool several_hosts(const Given& given) {
  const auto most = parse_integer(split(given["nnodes"], ':').back());
  return most.value_or(1) > 1;
}

/// One of rdzv-conf that has a meaning here. Quotes that a shell did not take away are passed over.
std::optional<std::string> conf_value(const Given& given, std::string_view name) {
  for (std::string part : split(given["rdzv-conf"], ',')) {
    std::erase(part, '\'');
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos && part.substr(0, equals) == name &&
        parse_duration_ms(part.substr(equals + 1)))
      return part.substr(equals + 1);
  }
  return std::nullopt;
}

void set_rendezvous(const Given& given, TorchrunCommand& command) {
  auto& values = command.options.values;
  values["nnodes"] = given["nnodes"];
  command.run_id = given["rdzv-id"];
  const std::string& backend = given["rdzv-backend"];
  const std::string& endpoint = given["rdzv-endpoint"];
  const bool several = several_hosts(given);
  const bool of_itself = backend == "static" && endpoint.empty() && given["master-port"].empty() && !several;
  if (given.is_on("standalone") && parse_integer(split(given["nnodes"], ':').front()).value_or(1) > 1)
    throw Error(ErrorKind::usage,
                "--standalone is a job on this host alone, and --nnodes is " + printable(given["nnodes"]),
                "leave --standalone out, and say where the hosts meet: --rdzv-endpoint=HOST:PORT");
  if (given.is_on("standalone") || of_itself) {
    if (given.is_on("standalone")) command.run_id.clear();
    values["nnodes"] = "1";
    return;
  }
  if (const auto seconds = conf_value(given, "join_timeout")) values["join_timeout"] = *seconds;
  values["rdzv_backend"] = backend;
  if (backend != "static") {
    if (endpoint.empty() && backend != "c10d")
      throw Error(ErrorKind::usage, "--rdzv-backend=" + printable(backend) + " needs an endpoint",
                  "add --rdzv-endpoint=HOST:PORT");
    values["rdzv_endpoint"] = endpoint.empty() ? "localhost" : endpoint;
    if (endpoint.empty() && several && given.given("master-addr"))
      command.options.notes.push_back(
          "--master-addr is for a static rendezvous: these hosts meet at localhost, each alone; write "
          "--rdzv-endpoint=" +
          printable(given["master-addr"]) + ":PORT");
    return;
  }
  const std::size_t colon = endpoint.rfind(':');
  values["master_addr"] = endpoint.empty() ? given["master-addr"] : endpoint.substr(0, colon);
  values["master_port"] = !endpoint.empty() && colon != std::string::npos ? endpoint.substr(colon + 1)
                          : given["master-port"].empty()                  ? "29500"
                                                                          : given["master-port"];
  if (several) values["rank"] = given["node-rank"];
}

/// INT, TERM, …: the job stops, and its processes get the same signal. Others than can be caught are passed
/// over, as torchrun does.
std::string signal_map(const std::string& signals, std::vector<std::string>& notes) {
  std::vector<std::string> rules;
  for (const std::string& signal : split(signals, ',')) {
    const std::string name = signal.starts_with("SIG") ? signal.substr(3) : signal;
    try {
      const std::string rule = name + "=stop:" + name;
      parse_signal_map(rule);
      rules.push_back(rule);
    } catch (const Error&) {
      notes.push_back("signal " + printable(signal) + " cannot be handled");
    }
  }
  return join(rules, ",");
}

void set_options(const Given& given, TorchrunCommand& command) {
  auto& values = command.options.values;
  values["nproc_per_node"] = given["nproc-per-node"];
  values["max_restart"] = given["max-restarts"];
  values["restart_backoff"] = "0";  // torchrun starts again at once
  values["role"] = given["role"];
  values["log_level"] = "WARNING";
  values["show"] = "none";
  values["signals_to_handle"] = given["signals-to-handle"];
  const std::string map = signal_map(given["signals-to-handle"], command.options.notes);
  if (!map.empty()) values["signal_map"] = map;
  if (!given["local-addr"].empty()) values["host"] = given["local-addr"];
  if (!given["numa-binding"].empty()) values["numa_binding"] = given["numa-binding"];
  if (!given["shutdown-timeout"].empty()) values["grace"] = given["shutdown-timeout"];
  const bool by_path = given.is_on("run-path"), module = given.is_on("module") && !by_path;
  if (module)
    values["module"] = "True";
  else if (by_path || !given.is_on("no-python"))
    values["run_path"] = "True";
  else
    values["no_python"] = "True";
}

}  // namespace

TorchrunCommand read_torchrun_command(const std::vector<std::string>& words, const Environ& environ) {
  Given given(environ);
  TorchrunCommand command;
  const std::size_t script = read_flags(words, given, command.help);
  if (command.help) return command;
  if (script == words.size())
    throw TorchrunUsage("the following arguments are required: training_script, training_script_args");
  check(given);
  set_options(given, command);
  set_rendezvous(given, command);
  command.options.script = words[script];
  // Python's argparse takes the first "--" for its own, before the script or right after it.
  const bool separated = script > 0 && words[script - 1] == "--";
  const std::size_t after = script + 1;
  const bool skips = !separated && after < words.size() && words[after] == "--";
  command.options.script_args.assign(words.begin() + static_cast<std::ptrdiff_t>(after + skips), words.end());
  TorchrunSettings& settings = command.settings;
  settings.redirects = read_streams(given["redirects"]);
  settings.tee = read_streams(given["tee"]);
  if (!given["local-ranks-filter"].empty()) settings.shown = read_ranks(given["local-ranks-filter"]);
  settings.prefix = given["log-line-prefix-template"];
  if (settings.prefix.empty())
    settings.prefix = environ.value_or("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "");
  if (settings.prefix.empty()) settings.prefix = "[${role_name}${local_rank}]:";
  settings.log_dir = given["log-dir"];
  if (const auto seconds = conf_value(given, "last_call_timeout"))
    settings.last_call = std::chrono::milliseconds(*parse_duration_ms(*seconds));
  settings.virtual_local_rank = given.is_on("virtual-local-rank");
  settings.visible_devices =
      environ.value_or("HIP_VISIBLE_DEVICES", environ.value_or("CUDA_VISIBLE_DEVICES", ""));
  if (given["shutdown-timeout"].empty()) {
    const std::string seconds = environ.value_or("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "");
    if (!seconds.empty()) command.options.values["grace"] = seconds;
  }
  for (const std::string_view name :
       {"duplicate-stdout-filters", "duplicate-stderr-filters", "event-log-handler"}) {
    if (given.given(name) && given[name] != flag_of(name).initial)
      command.options.notes.push_back("--" + std::string(name) + " has no effect");
  }
  return command;
}

std::string torchrun_help() {
  std::string text =
      "usage: torchrun [FLAGS] SCRIPT [ARGUMENTS]\n\n"
      "Starts a job of PyTorch on this host with torchrun's command line and environment, by fleetrun. Each "
      "flag\n"
      "may be written with '_' for '-', and set by its variable: PET_NNODES for --nnodes.\n\n";
  for (const Flag& flag : kFlags) {
    std::string head = "  " + shown(flag);
    head.resize(std::max<std::size_t>(head.size() + 2, 48), ' ');
    text.append(head).append(flag.help);
    if (!flag.initial.empty() && flag.takes != Takes::nothing)
      text.append(" (default ").append(flag.initial).append(")");
    text.append("\n");
  }
  return text;
}

}  // namespace fleetrun::launcher
