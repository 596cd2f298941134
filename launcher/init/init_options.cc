// Written by hand rather than with getopt(), whose state is global and whose messages go to standard error.
#include "launcher/init/init_options.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

struct Flag {
  char letter;
  std::string_view name;  // empty: it has none
  bool has_value;
};

constexpr Flag kTiniFlags[] = {{'h', "", false}, {'l', "", false}, {'s', "", false},
                               {'g', "", false}, {'w', "", false}, {'v', "", false},
                               {'p', "", true},  {'e', "", true},  {'V', "version", false}};
constexpr Flag kDumbInitFlags[] = {{'h', "help", false},
                                   {'V', "version", false},
                                   {'v', "verbose", false},
                                   {'c', "single-child", false},
                                   {'r', "rewrite", true}};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// One option after the other, as POSIX has them: "-vvg", "-p VALUE", "-pVALUE", "--name=VALUE", "--".
class Words {
 public:
  Words(const std::vector<std::string>& argv, InitDialect dialect)
      : argv_(argv),
        first_(dialect == InitDialect::tini ? kTiniFlags : kDumbInitFlags),
        last_(dialect == InitDialect::tini ? std::end(kTiniFlags) : std::end(kDumbInitFlags)) {}

  /// The letter of the next option; '?' for one that is wrong, with error(); 0 at the end.
  char next() {
    if (at_ == argv_.size()) return 0;
    const std::string& word = argv_[at_];
    if (inside_ == 0) {
      if (word.size() < 2 || word[0] != '-') return 0;
      if (word == "--") return ++at_, 0;
      if (word[1] == '-') return next_long(word);
      inside_ = 1;
    }
    const char letter = word[inside_];
    const Flag* flag = std::find_if(first_, last_, [&](const Flag& f) { return f.letter == letter; });
    if (flag == last_) return wrong(std::string("invalid option -- '") + letter + "'");
    if (++inside_ < word.size() && !flag->has_value) return letter;
    value_ = word.substr(inside_);
    inside_ = 0;
    ++at_;
    return flag->has_value && value_.empty() ? take_value(letter) : letter;
  }

  const std::string& value() const noexcept { return value_; }
  const std::string& error() const noexcept { return error_; }
  std::vector<std::string> rest() const {
    return {argv_.begin() + static_cast<std::ptrdiff_t>(at_), argv_.end()};
  }

 private:
  char next_long(const std::string& word) {
    ++at_;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Flag* flag =
        std::find_if(first_, last_, [&](const Flag& f) { return !f.name.empty() && f.name == name; });
    if (flag == last_) return wrong("unrecognized option '" + word + "'");
    if (equals == std::string::npos) return flag->has_value ? take_value(flag->letter) : flag->letter;
    value_ = word.substr(equals + 1);
    return flag->letter;
  }

  char take_value(char letter) {
    if (at_ == argv_.size()) return wrong(std::string("option requires an argument -- '") + letter + "'");
    value_ = argv_[at_++];
    return letter;
  }

  char wrong(const std::string& what) {
    error_ = base_name(argv_[0]) + ": " + what + "\n";
    return '?';
  }

  const std::vector<std::string>& argv_;
  const Flag *first_, *last_;
  std::size_t at_ = 1, inside_ = 0;
  std::string value_, error_;
};

/// "SIGUSR1"; 0 for none.
int signal_number(const std::string& name) {
  if (!name.starts_with("SIG")) return 0;
  for (int number = 1; number <= kLastPlainSignal; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name.substr(3) == known) return number;
  }
  return 0;
}

std::string usage_of(const std::string& program, InitDialect dialect) {
  if (dialect == InitDialect::dumb_init)
    return "Usage: " + program + " [option] program [args]\nTry " + program + " --help for full usage.\n";
  return "Usage: " + program + " [-gsvw] [-p SIGNAL] [-e CODE] [--] COMMAND...\n";
}

std::string help_of(const std::string& program, InitDialect dialect) {
  if (dialect == InitDialect::dumb_init)
    return "Usage: " + program +
           " [option] command [arg]...\n"
           "Runs a command, hands signals on to it and reaps what it leaves behind (fleetrun-init).\n\n"
           "  -c, --single-child   signals go to the command alone, not to its session\n"
           "  -r, --rewrite s:r    send signal r for signal s; 0: nothing\n"
           "  -v, --verbose        say what happens, on standard error\n"
           "  -h, --help           this text\n"
           "  -V, --version        the version\n";
  return usage_of(program, dialect) +
         "Runs a command, hands signals on to it and reaps what it leaves behind (fleetrun-init).\n\n"
         "  -s          orphans come to it although it is not pid 1 (TINI_SUBREAPER)\n"
         "  -g          signals go to the command's group (TINI_KILL_PROCESS_GROUP)\n"
         "  -p SIGNAL   gets this signal when its parent dies\n"
         "  -e CODE     this exit status counts as 0\n"
         "  -w          tell of what is reaped\n"
         "  -v          say more; again: more (TINI_VERBOSITY)\n"
         "  -h          this text\n"
         "  --version   the version\n";
}

constexpr const char* kVersionText = "fleetrun-init " FLEETRUN_VERSION "\n";

/// "15:2"
bool take_rewrite(const std::string& text, InitOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const auto from = parse_integer(std::string_view(text).substr(0, colon));
  const auto to = parse_integer(std::string_view(text).substr(colon + 1));
  if (!from || !to || *from < 1 || *from > kLastPlainSignal || *to < 0 || *to > kLastPlainSignal)
    return false;
  options.rewrite[static_cast<std::size_t>(*from)] = static_cast<int>(*to);
  return true;
}

/// nullopt: go on.
std::optional<InitAnswer> take_tini_option(char letter, const std::string& value, InitOptions& options) {
  switch (letter) {
    case 's':
      options.subreaper = true;
      break;
    case 'g':
      options.signal_group = true;
      break;
    case 'w':
      options.warn_reaped = true;
      break;
    case 'v':
      ++options.verbosity;
      break;
    case 'p':
      options.parent_death_signal = signal_number(value);
      if (options.parent_death_signal == 0)
        return InitAnswer{"fleetrun-init: error: no such signal for -p: " + printable(value) + "\n", 1};
      break;
    case 'e': {
      const auto code = parse_integer(value);
      if (!code || *code < 0 || *code > 255)
        return InitAnswer{"fleetrun-init: error: no exit status for -e: " + printable(value) + "\n", 1};
      options.success.set(static_cast<std::size_t>(*code));
      break;
    }
    default:
      break;
  }
  return std::nullopt;
}

std::optional<InitAnswer> take_dumb_init_option(char letter, const std::string& value, InitOptions& options) {
  if (letter == 'v') options.verbosity = 2;
  if (letter == 'c') options.signal_group = false;
  if (letter == 'r' && !take_rewrite(value, options))
    return InitAnswer{
        "Usage: -r option takes <signum>:<signum>, where <signum> is between 1 and 31.\n"
        "This option can be specified multiple times.\nUse --help for full usage.\n",
        1};
  return std::nullopt;
}

void obey_environment(const Environ& environment, InitOptions& options) {
  if (options.dialect == InitDialect::tini) {
    if (environment.has("TINI_SUBREAPER")) options.subreaper = true;
    if (environment.has("TINI_KILL_PROCESS_GROUP")) options.signal_group = true;
    if (const std::string* level = environment.find("TINI_VERBOSITY"))
      options.verbosity = static_cast<int>(parse_integer(*level).value_or(0));
    return;
  }
  if (environment.value_or("DUMB_INIT_DEBUG", "") == "1") options.verbosity = 2;
  if (environment.value_or("DUMB_INIT_SETSID", "") == "0") options.signal_group = false;
  if (!options.signal_group) return;
  // In a session of its own the command cannot be stopped by its terminal's signals,
  // so it is stopped outright.
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    int& sent = options.rewrite[static_cast<std::size_t>(number)];
    if (sent == kAsItCame) sent = SIGSTOP;
  }
}

}  // namespace

std::optional<InitDialect> init_dialect(const std::vector<std::string>& argv) {
  if (argv.empty()) return std::nullopt;
  const std::string name = base_name(argv[0]);
  if (name == "tini" || name == "tini-static") return InitDialect::tini;
  if (name == "dumb-init") return InitDialect::dumb_init;
  if (argv.size() > 1 && argv[1].starts_with("-")) return InitDialect::tini;
  return std::nullopt;
}

std::variant<InitOptions, InitAnswer> parse_init_options(InitDialect dialect,
                                                         const std::vector<std::string>& argv,
                                                         const Environ& environment) {
  InitOptions options;
  options.dialect = dialect;
  options.signal_group = dialect == InitDialect::dumb_init;
  options.rewrite.fill(kAsItCame);
  const std::string program = base_name(argv.at(0));
  options.subreaper = !program.starts_with("tini") && dialect == InitDialect::tini;
  Words words(argv, dialect);
  while (const char letter = words.next()) {
    if (letter == '?') return InitAnswer{words.error(), 1};
    if (letter == 'h') return InitAnswer{help_of(program, dialect), 0};
    if (letter == 'V' || letter == 'l') return InitAnswer{kVersionText, 0};
    const auto answer = dialect == InitDialect::tini ? take_tini_option(letter, words.value(), options)
                                                     : take_dumb_init_option(letter, words.value(), options);
    if (answer) return *answer;
  }
  options.command = words.rest();
  if (options.command.empty()) return InitAnswer{usage_of(program, dialect), 1};
  obey_environment(environment, options);
  return options;
}

}  // namespace fleetrun::launcher
