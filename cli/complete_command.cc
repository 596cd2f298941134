// Flags, the words of their values, subcommands of a subcommand and whether it takes a job are read off its
// own --help, so that nothing is typed twice. Errors are nobody's here: there is nothing to offer then.
#include "cli/complete_command.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "cli/commands.h"
#include "cli/job_choice.h"
#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "launcher/status/control_client.h"
#include "launcher/status/job_status_json.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using Words = std::vector<std::string>;

struct HelpFlag {
  std::string name, letter, value;  // "--rank", "-r", "N,…"
};

struct HelpText {
  std::vector<HelpFlag> flags;
  Words commands;
  bool of_job = false;
};

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

/// "-r, --rank=N,…   of these" and "--job JOB   the job"
void read_flag(std::string line, HelpText& help) {
  HelpFlag flag;
  if (line.size() > 4 && line[0] == '-' && line.substr(2, 2) == ", ") {
    flag.letter = line.substr(0, 2);
    line.erase(0, 4);
  }
  if (!line.starts_with("--")) return;
  const std::size_t end = std::min(line.find_first_of(" =,"), line.size());
  flag.name = line.substr(0, end);
  const bool valued = line.size() > end + 1 && line[end] != ',' && line[end + 1] != ' ' &&
                      (line[end] == '=' || !is_lower(line[end + 1]));
  if (valued) flag.value = line.substr(end + 1, line.find(' ', end + 1) - end - 1);
  help.flags.push_back(std::move(flag));
}

HelpText read_help(const std::string& text) {
  HelpText help;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("usage: ")) help.of_job = line.find("[JOB]") != std::string::npos;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos) continue;
    if (begin == 2 && is_lower(line[2]) && !line.substr(2).starts_with("fleetrun"))
      help.commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    read_flag(line.substr(begin), help);
  }
  return help;
}

const HelpFlag* find_flag(const HelpText& help, std::string name) {
  std::replace(name.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(name.size(), 2)), name.end(),
               '-', '_');
  const auto found = std::find_if(help.flags.begin(), help.flags.end(), [&](const HelpFlag& flag) {
    return name == flag.name || (!flag.letter.empty() && name == flag.letter);
  });
  return found == help.flags.end() ? nullptr : &*found;
}

Words job_names(const Environ& environment) {
  std::set<std::string> names;
  for (const launcher::JobEntry& job :
       launcher::list_jobs(launcher::run_directories(environment, ::geteuid())))
    names.insert({printable(job.job_id), printable(job.pod)});
  return {names.begin(), names.end()};
}

Words signal_names() {
  Words names;
  for (int number = 1; number < 32; ++number) {
    if (const char* name = ::sigabbrev_np(number)) names.emplace_back(name);
  }
  return names;
}

/// Roles, or ranks, of the job's processes.
Words of_processes(const Words& job, bool ranks, const Environ& environment) {
  launcher::ControlClient client(choose_job("complete", job, environment));
  const launcher::JobStatus status =
      launcher::job_status_from_json(launcher::status_in(client.ask(R"({"request":"status"})")));
  std::set<int> numbers;
  std::set<std::string> roles;
  for (const launcher::ProcessStatus& process : status.processes) {
    numbers.insert(process.rank);
    roles.insert(printable(process.role));
  }
  if (!ranks) return {roles.begin(), roles.end()};
  Words words;
  for (const int number : numbers) words.push_back(std::to_string(number));
  return words;
}

Words values_of(const HelpFlag& flag, const Words& job, const Environ& environment) {
  if (flag.value == "JOB") return job_names(environment);
  if (flag.value == "SIGNAL") return signal_names();
  if (flag.value == "WHEN") return {"auto", "always", "never"};
  if (flag.value.starts_with("ROLE")) return of_processes(job, false, environment);
  if (flag.name == "--rank") return of_processes(job, true, environment);
  return {};
}

struct Answer {
  std::string before, typed;  // what stays of the last word, and what a candidate begins with
  Words candidates;
};

Answer answer(Words words, const Environ& environment) {
  const Command* command = find_command(words);
  if (!command || words.size() < 2 || command->kind == Command::Kind::launches || command->summary.empty())
    return {};
  const HelpText help = read_help(
      launcher::output_of({launcher::own_program(), std::string(command->name), "--help"}, environment));
  Answer answer;
  answer.typed = std::move(words.back());
  words.pop_back();
  Words others;  // that belong to no flag
  const HelpFlag* open = nullptr;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const HelpFlag* flag = words[i].find('=') == std::string::npos ? find_flag(help, words[i]) : nullptr;
    const bool is_value = open != nullptr;
    open = !is_value && flag && !flag->value.empty() ? flag : nullptr;
    if (!is_value && !words[i].starts_with('-')) others.push_back(words[i]);
  }
  const std::size_t equals = answer.typed.find('=');
  if (!open && answer.typed.starts_with("--") && equals != std::string::npos) {
    open = find_flag(help, answer.typed.substr(0, equals));
    answer.before = answer.typed.substr(0, equals + 1);
    answer.typed.erase(0, equals + 1);
  }
  if (open) {
    const std::size_t comma = answer.typed.rfind(',');
    if (comma != std::string::npos && open->value.find(',') != std::string::npos) {
      answer.before += answer.typed.substr(0, comma + 1);
      answer.typed.erase(0, comma + 1);
    }
    answer.candidates = values_of(*open, help.of_job ? others : Words(), environment);
  } else if (answer.typed.starts_with('-')) {
    for (const HelpFlag& flag : help.flags) answer.candidates.push_back(flag.name);
  } else if (others.empty()) {
    answer.candidates = help.of_job ? job_names(environment) : help.commands;
  }
  return answer;
}

}  // namespace

int run_complete_command(const std::vector<std::string>& arguments, const Environ& environment) {
  Words words;
  for (std::size_t i = 0; i < arguments.size(); ++i) {  // in bash '=' is a word of its own
    if (arguments[i] != "=") words.push_back(arguments[i]);
    if (arguments[i] == "=" && i + 1 == arguments.size()) words.emplace_back();
  }
  try {
    const Answer found = answer(std::move(words), environment);
    std::string text;
    for (const std::string& candidate : found.candidates) {
      if (candidate.starts_with(found.typed)) text += found.before + candidate + "\n";
    }
    write_text(STDOUT_FILENO, text);
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace fleetrun::cli
