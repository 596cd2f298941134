// Usage and examples first, then the flags of launcher/model/job_settings by group.
#include "cli/help.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/launch.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"
#include "runtime/language/line_words.h"
#include "runtime/language/translator.h"

namespace fleetrun::cli {
namespace {

constexpr const char* kHead = R"(usage: fleetrun [FLAGS] SCRIPT [ARGUMENTS OF THE SCRIPT]
       fleetrun COMMAND …

Starts the processes of a distributed training job, watches them, and ends them together. Each process finds
its role, rank and peers in environment variables, as scripts for Paddle's Fleet expect them. Everything after
SCRIPT is the script's own. A .py runs in a Python interpreter, anything else directly.

examples:
  fleetrun --server_num=1 --trainer_num=2 train.py    a parameter server and two trainers on this host
  fleetrun --nproc_per_node=4 train.py --epochs=3     four trainers that talk to each other (collective)
  fleetrun --gpus=0,1 train.py                        one trainer per GPU
  fleetrun --dry-run --server_num=1 train.py          show what would be started, and start nothing
  fleetrun run_check                                  two processes that look for each other:
                                                      does it work here?
  fleetrun --compat=paddle --server_num=1 train.py    a script that says `import paddle`, unchanged

Logs are in log/workerlog.N (trainers) and log/serverlog.N; the first trainer's is shown on standard output
too. When a process fails, the others are stopped, and fleetrun's exit status is that process's own.
)";

constexpr const char* kTail = R"(
exit status: 0 all well; the first failing process's own, or 128 + its signal; 130, 143 or 129 after Ctrl-C,
SIGTERM or SIGHUP; 75 please start the job again (it was drained); 127 the script is not there, 126 it cannot
be started; 125 any other refusal of fleetrun itself.

A flag may be written with '-' for '_', and wins over its variable in the environment. man fleetrun says more.
)";

/// `words` in lines of at most `kWidth` bytes, each indented.
void append_wrapped(const std::string& words, std::string& text) {
  constexpr std::size_t kIndent = 6, kWidth = 118;
  std::size_t column = kWidth;
  for (const LineWord& word : line_words(words)) {
    const std::size_t blanks = word.after_blank ? 1 : 0;
    if (column + blanks + word.text.size() > kWidth) {
      text.append(text.ends_with('\n') ? "" : "\n").append(kIndent, ' ');
      column = kIndent;
    } else {
      text.append(blanks, ' ');
      column += blanks;
    }
    text.append(word.text);
    column += word.text.size();
  }
  text.append("\n");
}

void append_flag(const launcher::Setting& row, std::string& text) {
  text.append("  ").append(join(launcher::spellings(row), ", "));
  if (row.kind == launcher::Kind::optional_value)
    text.append("[=").append(row.value).append("]");
  else if (!row.value.empty())
    text.append(" ").append(row.value);
  text.append("\n");
  std::string notes;
  const std::vector<std::string> variables = split(row.variables, ' ');
  if (!variables.empty())
    notes.append(variables.size() > 1 ? "variables " : "variable ").append(join(variables, ", "));
  if (const std::string initial = launcher::shown_default(row); !initial.empty())
    notes.append(notes.empty() ? "" : ", ").append("default ").append(initial);
  append_wrapped(translated(row.help) + (notes.empty() ? "" : " " + translated("(" + notes + ")")), text);
}

/// A flag as it may be asked for: "max_restart", "--max-restart", "-t".
const launcher::Setting* find_flag(std::string word) {
  const bool dashes = word.starts_with('-');
  if (word.starts_with("--") || !dashes) std::replace(word.begin() + (dashes ? 2 : 0), word.end(), '-', '_');
  for (const auto& table : {launcher::settings(), launcher::other_flags()}) {
    for (const launcher::Setting& row : table) {
      for (const std::string& spelling : launcher::spellings(row)) {
        if (spelling == word || spelling == "--" + word) return &row;
      }
    }
  }
  return nullptr;
}

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  for (const launcher::Setting& row : launcher::settings()) names.emplace_back(row.key);
  return names;
}

std::string flag_text(const launcher::Setting& row) {
  std::string text;
  append_flag(row, text);
  if (!row.details.empty()) append_wrapped(translated(row.details), text);
  return text;
}

}  // namespace

int run_help_command(const std::vector<std::string>& arguments, const Environ& environment) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h")
    return print(help_text());
  const std::string& word = arguments.front();
  if (const Command* command = find_command({word}); command && command->run != run_help_command)
    return command->run({"--help"}, environment);
  if (const launcher::Setting* row = find_flag(word)) return print(flag_text(*row));
  const auto meant = nearest(word, topics());
  throw Error(ErrorKind::usage, "there is no command or flag '" + printable(word) + "'",
              meant ? "did you mean " + *meant + "?" : "fleetrun --help lists both");
}

int run_version_command(const std::vector<std::string>&, const Environ&) {
  return print("fleetrun " FLEETRUN_VERSION "\n");
}

std::string help_text() {
  std::string text = translated(kHead);
  text.append(translated("\ncommands (each has a --help):\n"));
  for (const Command& command : commands()) {
    std::string head = "  fleetrun " + std::string(command.name);
    head.resize(std::max<std::size_t>(head.size() + 2, 26), ' ');
    text.append(head).append(translated(command.summary)).append("\n");
  }
  for (const launcher::GroupTitle& title : launcher::group_titles()) {
    text.append("\n").append(translated(title.text)).append(":\n");
    for (const launcher::Setting& row :
         title.group == launcher::Group::others ? launcher::other_flags() : launcher::settings()) {
      if (row.group == title.group) append_flag(row, text);
    }
  }
  return text.append(translated(kTail));
}

}  // namespace fleetrun::cli
