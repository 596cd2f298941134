#include "cli/init_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kInitFlags[] = {
    {"script", 0, "FILE", "the program that trains: a .py or any other"},
    {"servers", 0, "N", "parameter servers; default: 0, a collective job"},
    {"trainers", 0, "N", "trainers; default: 2"},
    {"hosts", 0, "HOST:N,…", "the hosts to start it on over ssh; default: this one"},
    {"max_restart", 0, "N", "how often a failure starts the job again; default: 0"},
    {"log_dir", 0, "DIR", "where the logs go; default: log"},
    {"force", 'f', "", "write over a FILE that is there"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kInitHelp = R"(usage: fleetrun init [FILE] [FLAGS]

Writes a job file, job.toml where no FILE is named, which fleetrun FILE runs. On a terminal it asks for what
no flag says; without one --script is needed, defaults stand for the rest, and it says which.

)";

constexpr int kMaxProcesses = 65'536;

/// What is asked for: the flag, the question, and what an empty answer means.
struct Question {
  std::string_view flag, text, standard;
  bool is_number = false;
};

constexpr Question kScript = {"script", "Script that trains", "train.py"};
constexpr Question kServers = {"servers", "Parameter servers (0: collective)", "0", true};
constexpr Question kTrainers = {"trainers", "Trainers", "2", true};
constexpr Question kHosts = {"hosts", "Hosts, as h1:2,h2:2 (empty: this one)", ""};
constexpr Question kRestarts = {"max_restart", "Restarts after a failure", "0", true};
constexpr Question kLogs = {"log_dir", "Directory of the logs", "log"};

std::optional<std::string> wrong_with(const Question& question, const std::string& answer) {
  if (question.is_number) {
    const auto number = parse_integer(answer);
    if (!number || *number < 0 || *number > kMaxProcesses)
      return "a whole number from 0 to " + std::to_string(kMaxProcesses) + " is needed";
  }
  if (answer.empty() && !question.standard.empty()) return "it is empty";
  return std::nullopt;
}

class Interview {
 public:
  explicit Interview(const CommandArguments& words)
      : words_(words), asks_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {}

  /// From the flag, a person, or the default.
  std::string answer(const Question& question) {
    if (const auto given = words_.value(question.flag)) {
      if (const auto wrong = wrong_with(question, *given))
        throw Error(ErrorKind::usage,
                    "--" + std::string(question.flag) + " is '" + printable(*given) + "': " + *wrong);
      return *given;
    }
    if (asks_) return ask(question);
    if (question.flag == kScript.flag)
      throw Error(ErrorKind::usage, "there is no terminal to ask which script trains", "add --script=FILE");
    if (!question.standard.empty())
      defaults_.push_back(std::string(question.flag) + "=" + std::string(question.standard));
    return std::string(question.standard);
  }

  /// "servers=0", for those that were not asked for.
  const std::vector<std::string>& defaults() const noexcept { return defaults_; }

 private:
  static std::string ask(const Question& question) {
    for (;;) {
      write_text(STDOUT_FILENO,
                 std::string(question.text) +
                     (question.standard.empty() ? "" : " [" + std::string(question.standard) + "]") + ": ");
      std::string line;
      if (!std::getline(std::cin, line))
        throw Error(ErrorKind::usage, "the answers have ended", "nothing was written");
      if (line.empty()) return std::string(question.standard);
      const auto wrong = wrong_with(question, line);
      if (!wrong) return line;
      write_text(STDOUT_FILENO, *wrong + "\n");
    }
  }

  const CommandArguments& words_;
  bool asks_;
  std::vector<std::string> defaults_;
};

/// A string of JSON is one of TOML too.
std::string quoted(const std::string& text) {
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    if (utf8_length(rest) == 0)
      throw Error(ErrorKind::usage, "'" + printable(text) + "' is not UTF-8, as a job file is");
  }
  return json_text(nlohmann::json(text));
}

std::string role(const std::string& kind, const std::string& count, const std::string& script) {
  return "\n[[roles]]\nname = \"" + kind + "\"\nkind = \"" + kind + "\"\ncount = " + count +
         "\nscript = " + quoted(script) + "\n";
}

std::string job_file(Interview& interview) {
  const std::string script = interview.answer(kScript);
  const std::string servers = interview.answer(kServers);
  const std::string trainers = interview.answer(kTrainers);
  if (parse_integer(trainers) == 0) throw Error(ErrorKind::usage, "a job needs a trainer", "--trainers=1");
  const std::string hosts = interview.answer(kHosts);
  std::string text =
      "# Run it: fleetrun FILE. All keys: fleetrun-jobfile(5), and the flags of fleetrun(1).\n";
  text += "max_restart = " + interview.answer(kRestarts) + "\n";
  text += "log_dir = " + quoted(interview.answer(kLogs)) + "\n";
  if (!hosts.empty()) text += "hosts = " + quoted(hosts) + "\n";
  if (parse_integer(servers) != 0) text += role("server", servers, script);
  return text + role("trainer", trainers, script);
}

[[noreturn]] void refuse_to_replace(const std::string& path) {
  throw Error(ErrorKind::config, printable(path) + " is there already", "name another file, or add --force");
}

void write_file(const std::string& path, const std::string& text, bool force) {
  const int how = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const UniqueFd file(::open(path.c_str(), how, 0666));
  if (!file && errno == EEXIST) refuse_to_replace(path);
  if (!file || !write_all(file.value(), text))
    throw Error(ErrorKind::host, printable(path) + " cannot be written: " + std::strerror(errno));
}

}  // namespace

int run_init_command(const std::vector<std::string>& arguments, const Environ&) {
  const CommandArguments words = parse_command_arguments("init", arguments, kInitFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kInitHelp + describe_flags(kInitFlags));
    return 0;
  }
  if (words.words.size() > 1)
    throw Error(ErrorKind::usage, "'" + printable(words.words[1]) + "' is a second file", "name one");
  const std::string path = words.words.empty() ? "job.toml" : words.words[0];
  if (!path.ends_with(".toml"))
    throw Error(ErrorKind::usage, "'" + printable(path) + "' does not end with .toml",
                "write it as job.toml");
  if (!words.has("force") && ::access(path.c_str(), F_OK) == 0) refuse_to_replace(path);
  Interview interview(words);
  write_file(path, job_file(interview), words.has("force"));
  std::string told = "wrote " + printable(path);
  if (!interview.defaults().empty())
    told += ", with defaults for what no flag says: " + join(interview.defaults(), ", ");
  write_text(STDOUT_FILENO, told + "\nrun it: fleetrun " + printable(shell_quoted(path)) + "\n");
  return 0;
}

}  // namespace fleetrun::cli
