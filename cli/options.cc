// The flags are those of launcher/model/settings. They are read one by one until the script: what is the
// script's is never looked at.
#include "cli/options.h"

#include <algorithm>
#include <map>
#include <optional>

#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::From;
using launcher::Kind;
using launcher::Setting;

/// How other launchers (mpirun, srun, DeepSpeed, Horovod, accelerate, torch.multiprocessing) say it.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"n", "nproc_per_node"},
    {"np", "nproc_per_node"},
    {"nprocs", "nproc_per_node"},
    {"nproc", "nproc_per_node"},
    {"num_proc", "nproc_per_node"},
    {"num_processes", "nproc_per_node"},
    {"num_gpus", "nproc_per_node"},
    {"ntasks", "nproc_per_node"},
    {"ntasks_per_node", "nproc_per_node"},
    {"ppn", "nproc_per_node"},
    {"N", "nnodes"},
    {"nodes", "nnodes"},
    {"num_workers", "trainer_num"},
    {"num_servers", "server_num"},
    {"num_nodes", "nnodes"},
    {"num_machines", "nnodes"},
    {"machine_rank", "rank"},
    {"H", "hosts"},
    {"w", "hosts"},
    {"nodelist", "hosts"},
    {"host", "hosts"},
    {"host_file", "hostfile"},
    {"machinefile", "hostfile"},
    {"main_process_ip", "master_addr"},
    {"gpu_ids", "gpus"},
    {"main_process_port", "master_port"},
    {"gpu", "gpus"},
    {"worker", "trainer_num"},
    {"bind_to", "bind"},
    {"cpu_bind", "bind"},
};

/// What they have to be told, and fleetrun has not.
constexpr std::string_view kNotNeeded[] = {
    "allow_run_as_root",
    "btl",
    "envall",
    "genv",
    "gloo",
    "l",
    "label",
    "map_by",
    "mca",
    "mpi",
    "multi_gpu",
    "no_ssh",
    "oversubscribe",
    "prefix_output",
    "quiet",
    "report_bindings",
    "tag_output",
    "use_deepspeed",
    "x",
};

const auto* said_elsewhere(std::string_view name) {
  return std::ranges::find(kElsewhere, name, &std::pair<std::string_view, std::string_view>::first);
}

bool is_not_needed(std::string_view name) {
  return std::ranges::find(kNotNeeded, name) != std::end(kNotNeeded);
}

/// A word of the command line that is a flag: "--log-dir=a-b" → name "--log_dir", written "--log-dir", value
/// "a-b".
struct Flag {
  std::string name, written;
  std::optional<std::string> value;
};

class Flags {
 public:
  Flags() {
    for (const Setting& row : launcher::settings()) {
      for (std::string& flag : launcher::spellings(row)) rows_.emplace(std::move(flag), &row);
    }
  }

  const Setting* find(const std::string& name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : found->second;
  }

  /// The flags that `name` is the beginning of, of those that may be abbreviated.
  std::vector<std::string> beginning_with(const std::string& name) const {
    std::vector<std::string> names;
    for (auto row = rows_.lower_bound(name); row != rows_.end() && row->first.starts_with(name); ++row) {
      if (row->second->from != From::fleetrun) names.push_back(row->first);
    }
    return names;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Setting& row : launcher::other_flags()) names.emplace_back(row.key);
    for (const auto& [name, row] : rows_) {
      if (name.starts_with("--")) names.push_back(name.substr(2));
    }
    return names;
  }

 private:
  std::map<std::string, const Setting*, std::less<>> rows_;
};

/// A flag's name without its dashes, as the tables have it.
std::string plain_name(const Flag& flag) {
  std::string name = flag.name.substr(flag.name.starts_with("--") ? 2 : 1);
  std::ranges::replace(name, '-', '_');
  return name;
}

/// "-machinefile": a long name with one dash, as mpirun writes it, and not -m with a value.
bool has_long_name(const Flag& flag, const Flags& flags) {
  const std::string name = plain_name(flag);
  return flags.find("--" + name) != nullptr || said_elsewhere(name) != std::end(kElsewhere) ||
         is_not_needed(name);
}

Flag cut(const std::string& word, const Flags& flags) {
  const std::size_t equals = word.find('=');
  Flag flag;
  flag.written = flag.name = word.substr(0, equals);
  if (equals != std::string::npos) flag.value = word.substr(equals + 1);
  if (word.starts_with("--")) {
    std::replace(flag.name.begin() + 2, flag.name.end(), '-', '_');
  } else if (word.size() > 2 && word[2] != '=' && flags.find(word.substr(0, 2)) &&
             !has_long_name(flag, flags)) {
    flag.name = flag.written = word.substr(0, 2);
    flag.value = word.substr(2);
  }
  return flag;
}

std::optional<std::string> meant_by(const std::string& name, const Flags& flags) {
  const auto* row = said_elsewhere(name);
  return row != std::end(kElsewhere) ? std::optional<std::string>(row->second) : nearest(name, flags.names());
}

[[noreturn]] void refuse_unknown(const Flag& flag, const Flags& flags) {
  if (flag.name == "-c")
    throw Error(ErrorKind::usage, "unknown flag -c", "code is run as fleetrun python3 -c CODE");
  const std::string name = plain_name(flag);
  if (is_not_needed(name))
    throw Error(ErrorKind::usage, "unknown flag " + printable(flag.written),
                "leave it out: processes have the environment of fleetrun, and run where --hosts says");
  const auto meant = meant_by(name, flags);
  throw Error(ErrorKind::usage, "unknown flag " + printable(flag.written),
              meant ? "did you mean --" + *meant + "?"
                    : "fleetrun --help lists the flags; the script's own flags come after the script");
}

/// The row of an abbreviation, whose flag is then written out.
const Setting& abbreviated(Flag& flag, const Flags& flags, std::vector<std::string>& notes) {
  constexpr std::size_t kShortest = 4;  // "--" and two letters
  const std::vector<std::string> names =
      flag.name.size() < kShortest ? std::vector<std::string>() : flags.beginning_with(flag.name);
  if (names.empty()) refuse_unknown(flag, flags);
  const Setting* row = flags.find(names.front());
  for (const std::string& name : names) {
    if (flags.find(name) != row)
      throw Error(ErrorKind::usage, printable(flag.written) + " may be " + join(names, " or "),
                  "write the flag out");
  }
  notes.push_back(flag.written + " is read as " + names.front());
  flag.name = flag.written = names.front();
  return *row;
}

/// The value of `flag`, from behind its '=' or from the next word.
std::string value_of(const Flag& flag, const Setting& row, const std::vector<std::string>& arguments,
                     std::size_t& next, const Flags& flags) {
  if (flag.value) return *flag.value;
  if (row.kind == Kind::flag || row.kind == Kind::optional_value) return std::string(row.implied);
  const bool another = next < arguments.size() && arguments[next].starts_with("--") &&
                       flags.find(cut(arguments[next], flags).name);
  if (next == arguments.size() || another)
    throw Error(ErrorKind::usage, flag.written + " has no value",
                "write it as " + flag.written + "=" + std::string(row.value));
  return arguments[next++];
}

/// Text programs make one dash of two, which comes along with what is copied: U+2010 to U+2015, U+2212.
void refuse_typeset(std::string_view script) {
  const bool dash =
      script.starts_with("\xe2\x88\x92") ||
      (script.starts_with("\xe2\x80") && script.size() > 2 && script[2] >= '\x90' && script[2] <= '\x95');
  if (dash)
    throw Error(ErrorKind::usage, "'" + printable(script) + "' begins with a dash of a text program",
                "write --" + printable(script.substr(3)));
}

/// Paddle takes these for not given where they are empty: `--nnodes=$NNODES`, in a script that may set it.
bool may_be_empty(std::string_view key) noexcept {
  constexpr std::string_view kKeys[] = {"devices", "host", "ips", "master", "nnodes", "servers", "trainers"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  const Flags flags;
  CommandLine line;
  std::size_t next = 0;
  while (next < arguments.size() && arguments[next].size() > 1 && arguments[next].starts_with('-')) {
    const std::string& word = arguments[next++];
    if (word == "--") break;
    if (word == "-h" || word == "--help") line.help = true;
    if (word == "--version") line.version = true;
    if (word == "--job_schema" || word == "--job-schema") line.job_schema = true;
    if (line.help || line.version || line.job_schema) return line;
    Flag flag = cut(word, flags);
    const Setting* row = flags.find(flag.name);
    if (!row) row = &abbreviated(flag, flags, line.options.notes);
    const std::string key(row->key);
    std::string value = value_of(flag, *row, arguments, next, flags);
    if (value.empty() && may_be_empty(key)) {
      line.options.notes.push_back(flag.written + " is empty: it counts as not given");
      continue;
    }
    const auto [known, is_new] = line.options.values.emplace(key, value);
    if (!is_new && known->second != value && row->kind != Kind::refused) {
      const std::string& first = line.options.spelled.at(key);
      throw Error(ErrorKind::usage,
                  first == flag.written ? first + " is given twice"
                                        : first + " and " + flag.written + " are the same flag, given twice",
                  "give it once");
    }
    line.options.spelled.emplace(key, flag.written);
  }
  if (next == arguments.size()) return line;
  refuse_typeset(arguments[next]);
  line.options.script = arguments[next];
  line.options.script_args.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next) + 1, arguments.end());
  return line;
}

}  // namespace fleetrun::cli
