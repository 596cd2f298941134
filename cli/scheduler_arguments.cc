// Whose a word is has to be known before either parser sees it: a flag of the command's own, a flag of
// fleetrun's with or without a word behind it, or the script, from which on everything is the script's.
#include "cli/scheduler_arguments.h"

#include <algorithm>

#include "cli/options.h"
#include "launcher/config/make_job_config.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

/// "--gpus-per-node=8" → "gpus_per_node"; "" for what is not a long flag.
std::string name_of(const std::string& word) {
  if (!word.starts_with("--")) return {};
  std::string name = word.substr(2, word.find('=') - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const CommandFlag* own_flag(const std::string& word, std::span<const CommandFlag> known) {
  const std::string name = name_of(word);
  const auto found = std::find_if(known.begin(), known.end(), [&](const CommandFlag& flag) {
    return name.empty() ? flag.letter != 0 && word[1] == flag.letter : flag.name == name;
  });
  return found == known.end() ? nullptr : &*found;
}

/// Whether the next word is the value of this flag of fleetrun's.
bool takes_next_word(const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const std::string name = name_of(word);
  for (const launcher::Setting& row : launcher::settings()) {
    const std::vector<std::string> aliases = split(row.aliases, ' ');
    const auto spelled = [&](const std::string& alias) { return alias == (name.empty() ? word : name); };
    if ((name.empty() || row.key != name) && std::none_of(aliases.begin(), aliases.end(), spelled)) continue;
    return row.kind != launcher::Kind::flag && row.kind != launcher::Kind::optional_value;
  }
  return false;
}

void refuse_rendezvous(std::string_view engine, const launcher::JobConfig& config) {
  if (config.host_list.given() || config.rendezvous.kind == launcher::Rendezvous::Kind::etcd ||
      !config.rendezvous.addresses.empty() || config.rendezvous.master.port != 0)
    throw Error(ErrorKind::usage,
                "the hosts of this job are " + std::string(engine) + "'s to give, and where they meet",
                "leave out --hosts, --hostfile, --ips, --master and their like");
}

}  // namespace

LaunchArguments split_launch_arguments(std::string_view command, const std::vector<std::string>& arguments,
                                       std::span<const CommandFlag> known) {
  std::vector<std::string> own;
  LaunchArguments words;
  std::size_t next = 0;
  while (next < arguments.size() && arguments[next].size() > 1 && arguments[next].starts_with('-')) {
    const std::string& word = arguments[next++];
    if (word == "--") break;
    const CommandFlag* flag = own_flag(word, known);
    auto& whose = flag ? own : words.launch;
    whose.push_back(word);
    const bool two = flag ? !flag->value.empty() && word.find('=') == std::string::npos &&
                                (word.size() == 2 || word[1] == '-')
                          : takes_next_word(word);
    if (two && next < arguments.size()) whose.push_back(arguments[next++]);
  }
  words.own = parse_command_arguments(command, own, known);
  words.launch.insert(words.launch.end(), arguments.begin() + static_cast<std::ptrdiff_t>(next),
                      arguments.end());
  return words;
}

SchedulerArguments parse_scheduler_arguments(std::string_view command, std::string_view engine,
                                             const std::vector<std::string>& arguments,
                                             std::span<const CommandFlag> known) {
  SchedulerArguments words{split_launch_arguments(command, arguments, known), {}};
  if (words.own.has("help")) return words;
  const CommandLine line = parse_command_line(words.launch);
  if (!line.options.script)
    throw Error(ErrorKind::usage, "no script is given",
                "write it last, for example: fleetrun " + std::string(command) + " --nodes=2 train.py");
  words.config = launcher::make_job_config(line.options, Environ());
  refuse_rendezvous(engine, words.config);
  return words;
}

std::string name_of_script(std::string_view script, std::size_t longest) {
  script.remove_prefix(script.rfind('/') + 1);
  script = script.substr(0, script.find('.', 1));
  std::string name;
  for (const char c : script) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (letter)
      name.push_back(static_cast<char>(c | 0x20));
    else if (digit && !name.empty())
      name.push_back(c);
    else if (!name.empty() && name.back() != '-')
      name.push_back('-');
    if (name.size() == longest) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "job" : name;
}

}  // namespace fleetrun::cli
