#include "cli/command_flags.h"

#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

class Parser {
 public:
  Parser(std::string_view command, const std::vector<std::string>& arguments,
         std::span<const CommandFlag> known)
      : command_(command), arguments_(arguments), known_(known) {}

  CommandWords parse() {
    bool flags_end = false;
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& word = arguments_[at_];
      if (flags_end || word.size() < 2 || word.front() != '-')
        result_.words.push_back(word);
      else if (word == "--")
        flags_end = true;
      else if (word.starts_with("--"))
        long_flag(word);
      else
        short_flag(word);
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::usage, what, "fleetrun " + std::string(command_) + " --help lists the flags");
  }

  void long_flag(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string spelled = word.substr(0, equals);
    std::string name = spelled.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    const CommandFlag& flag = find(spelled, [&](const CommandFlag& f) { return f.name == name; });
    if (equals == std::string::npos)
      add(flag, spelled, std::nullopt);
    else
      add(flag, spelled, word.substr(equals + 1));
  }

  void short_flag(const std::string& word) {
    const std::string spelled = word.substr(0, 2);
    const CommandFlag& flag = find(spelled, [&](const CommandFlag& f) { return f.letter == spelled[1]; });
    if (word.size() > 2)
      add(flag, spelled, word.substr(2));
    else
      add(flag, spelled, std::nullopt);
  }

  template <class Matches>
  const CommandFlag& find(const std::string& spelled, Matches matches) const {
    const auto found = std::find_if(known_.begin(), known_.end(), matches);
    if (found == known_.end()) refuse("unknown flag " + printable(spelled) + " of " + std::string(command_));
    return *found;
  }

  void add(const CommandFlag& flag, const std::string& spelled, std::optional<std::string> value) {
    if (flag.value.empty() && value) refuse(spelled + " takes no value");
    if (!flag.value.empty() && !value) {
      if (at_ + 1 == arguments_.size()) refuse(spelled + " needs a value");
      value = arguments_[++at_];
    }
    if (!result_.flags.emplace(flag.name, value.value_or("")).second) refuse(spelled + " is there twice");
  }

  std::string_view command_;
  const std::vector<std::string>& arguments_;
  std::span<const CommandFlag> known_;
  std::size_t at_ = 0;
  CommandWords result_;
};

}  // namespace

std::optional<std::string> CommandWords::value(std::string_view name) const {
  const auto found = flags.find(name);
  if (found == flags.end()) return std::nullopt;
  return found->second;
}

CommandWords parse_command_words(std::string_view command, const std::vector<std::string>& arguments,
                                 std::span<const CommandFlag> known) {
  return Parser(command, arguments, known).parse();
}

std::optional<int> whole_number(const CommandWords& words, std::string_view flag, int least) {
  const auto text = words.value(flag);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < least || *number > std::numeric_limits<int>::max())
    throw Error(ErrorKind::usage, "--" + std::string(flag) + " is '" + printable(*text) +
                                      "': a whole number from " + std::to_string(least) + " is needed");
  return static_cast<int>(*number);
}

std::string describe_flags(std::span<const CommandFlag> known) {
  std::string text;
  for (const CommandFlag& flag : known) {
    std::string head = flag.letter == 0 ? "      " : std::string("  -") + flag.letter + ", ";
    head.append("--").append(flag.name);
    if (!flag.value.empty()) head.append("=").append(flag.value);
    head.resize(std::max<std::size_t>(head.size() + 2, 26), ' ');
    text.append(head).append(flag.help).append("\n");
  }
  return text;
}

}  // namespace fleetrun::cli
