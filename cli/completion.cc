// What a shell needs to know is read off the settings once (Word) and then written in each shell's language.
// A value is completed from its unit: "auto|none|core" is a choice, FILE and DIR are paths; others have none.
// Flags are known with '_'; who types '-' gets '-'. After the script the words are the script's own: files.
#include "cli/completion.h"

#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

struct Word {
  std::vector<std::string> flags;    // with their dashes
  std::vector<std::string> choices;  // of the value
  enum class Value { none, optional, some, file, directory } value = Value::none;
  std::string help;
};

Word word_of(const launcher::Setting& row) {
  Word word;
  word.flags = launcher::spellings(row);
  word.help = row.help;
  if (row.kind == launcher::Kind::flag) return word;
  word.value = row.kind == launcher::Kind::optional_value ? Word::Value::optional : Word::Value::some;
  if (row.value == "FILE" || row.value == "PATH") word.value = Word::Value::file;
  if (row.value == "DIR") word.value = Word::Value::directory;
  word.choices = launcher::choices_of(row.value);
  return word;
}

std::vector<Word> words() {
  std::vector<Word> all;
  for (const auto& table : {launcher::settings(), launcher::other_flags()}) {
    for (const launcher::Setting& row : table) all.push_back(word_of(row));
  }
  return all;
}

/// The subcommands behind which a launch is written, or the others: what follows these, `fleetrun complete`
/// knows.
std::string subcommands(bool launching) {
  std::vector<std::string> names;
  for (const Command& subcommand : commands()) {
    if ((subcommand.kind == Command::Kind::launches) == launching) names.emplace_back(subcommand.name);
  }
  return join(names, " ");
}

/// `text` between single quotes, as bash and zsh read it; fish has another way to write the quote itself.
std::string in_quotes(std::string_view text, std::string_view quote = "'\\''") {
  std::string result = "'";
  for (const char c : text) result.append(c == '\'' ? quote : std::string_view(&c, 1));
  return result + "'";
}

std::string alternatives(const std::vector<std::string>& flags) {
  return join(flags, "|");
}

// ---- bash ----

constexpr const char* kBashHead = R"(# bash completion for fleetrun; made by `fleetrun --completion=bash`
_fleetrun_value() {  # FLAG WORD: what may follow the flag; fails where the flag takes no value
  case ${1//-/_} in
)";

constexpr const char* kBashTail = R"(    *) return 1 ;;
  esac
}

_fleetrun() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} index script=
  COMPREPLY=()
  if [[ $COMP_CWORD -ge 2 && " $_fleetrun_asked " == *" ${COMP_WORDS[1]} "* ]]; then
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 0 ]]; then
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "${word#=}")
    fi
    return
  fi
  # '=' is a word of its own here: "--bind" "=" "co"
  if [[ $word == = ]]; then
    _fleetrun_value "$previous" ""
    return
  fi
  if [[ $previous == = && $COMP_CWORD -ge 2 ]]; then
    _fleetrun_value "${COMP_WORDS[COMP_CWORD - 2]}" "$word"
    return
  fi
  for ((index = 1; index < COMP_CWORD; ++index)); do
    case ${COMP_WORDS[index]} in
      -*)
        if [[ ${COMP_WORDS[index + 1]} == = ]]; then
          ((index += 2))
        elif [[ " $_fleetrun_optional " != *" ${COMP_WORDS[index]//-/_} "* ]] &&
          _fleetrun_value "${COMP_WORDS[index]}" ""; then
          ((index += 1))
        fi ;;
      *)
        [[ $index == 1 && " $_fleetrun_launching " == *" ${COMP_WORDS[index]} "* ]] && continue
        script=${COMP_WORDS[index]}
        break ;;
    esac
  done
  COMPREPLY=()
  if [[ -n $script ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  elif [[ $index -gt $COMP_CWORD ]]; then
    _fleetrun_value "$previous" "$word"
  elif [[ $word == -* ]]; then
    local flags=$_fleetrun_flags
    [[ $word == --*-* ]] && flags=$(sed 's/\([a-z0-9]\)_/\1-/g' <<<"$flags")
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word"
      [[ $COMP_CWORD -gt 1 ]] || compgen -W "$_fleetrun_subcommands" -- "$word")
  fi
}
complete -F _fleetrun fleetrun
)";

/// A flag as the case of _fleetrun_value sees it: each '-' a '_'.
std::vector<std::string> underscored(std::vector<std::string> flags) {
  for (std::string& flag : flags) std::replace(flag.begin(), flag.end(), '-', '_');
  return flags;
}

std::string bash_action(const Word& word) {
  if (word.value == Word::Value::file)
    return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$2\")";
  if (word.value == Word::Value::directory)
    return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$2\")";
  if (word.choices.empty()) return "COMPREPLY=()";
  return "mapfile -t COMPREPLY < <(compgen -W " + in_quotes(join(word.choices, " ")) + " -- \"$2\")";
}

std::string bash_script() {
  std::string text = kBashHead;
  std::vector<std::string> flags, optional;
  for (const Word& word : words()) {
    flags.insert(flags.end(), word.flags.begin(), word.flags.end());
    if (word.value == Word::Value::none) continue;
    const std::vector<std::string> names = underscored(word.flags);
    if (word.value == Word::Value::optional) optional.insert(optional.end(), names.begin(), names.end());
    text.append("    ").append(alternatives(names)).append(") ").append(bash_action(word)).append(" ;;\n");
  }
  text.append(kBashTail);
  std::vector<std::string> names;
  for (const Command& subcommand : commands()) names.emplace_back(subcommand.name);
  text.append("_fleetrun_launching=").append(in_quotes(subcommands(true))).append("\n");
  text.append("_fleetrun_asked=").append(in_quotes(subcommands(false))).append("\n");
  text.append("_fleetrun_flags=").append(in_quotes(join(flags, " "))).append("\n");
  text.append("_fleetrun_optional=").append(in_quotes(join(optional, " "))).append("\n");
  return text.append("_fleetrun_subcommands=").append(in_quotes(join(names, " "))).append("\n");
}

// ---- zsh ----

/// Colons and brackets end parts of an _arguments specification.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result.push_back('\\');
    result.push_back(c);
  }
  return result;
}

std::string zsh_action(const Word& word) {
  if (word.value == Word::Value::file) return ":file:_files";
  if (word.value == Word::Value::directory) return ":directory:_files -/";
  if (word.choices.empty()) return ":value: ";
  return ":value:(" + join(word.choices, " ") + ")";
}

std::string zsh_script() {
  std::string text =
      "#compdef fleetrun\n# made by `fleetrun --completion=zsh`\n_fleetrun() {\n  local -a subcommands "
      "flags\n";
  text.append("  local fleetrun_asked=").append(in_quotes(subcommands(false))).append("\n");
  text.append("  subcommands=(\n");
  for (const Command& subcommand : commands())
    text.append("    ")
        .append(in_quotes(std::string(subcommand.name) + ":" + std::string(subcommand.summary)))
        .append("\n");
  text.append("  )\n  flags=(\n");
  for (const Word& word : words()) {
    for (const std::string& flag : word.flags) {
      // "--flag=-": the value in the same word; "--flag=": there or in the next one.
      const bool is_short = !flag.starts_with("--");
      std::string spec = flag;
      if (word.value == Word::Value::optional)
        spec.append("=-");
      else if (word.value != Word::Value::none && !is_short)
        spec.append("=");
      spec.append("[").append(zsh_text(word.help)).append("]");
      if (word.value == Word::Value::optional) spec.append(":");
      if (word.value != Word::Value::none) spec.append(zsh_action(word));
      text.append("    ").append(in_quotes(spec)).append("\n");
    }
  }
  text.append("  )\n  local launching=0\n  if (( CURRENT > 2 )) && [[ ${words[2]} == (")
      .append(join(split(subcommands(true), ' '), "|"))
      .append(") ]]; then\n    launching=1\n    words[2]=()\n    (( CURRENT-- ))\n  fi\n");
  return text.append(R"zsh(  # Who types '-' in a flag means '_'.
  [[ ${words[CURRENT]} == --*-* ]] && flags=("${(@)flags/(#m)--[a-z_]##/--${${MATCH#--}//_/-}}")
  _arguments -S $flags '1:script:_fleetrun_scripts' '*::argument:_fleetrun_arguments'
}
_fleetrun_arguments() {
  local -a found
  [[ " $fleetrun_asked " == *" ${words[1]} "* ]] &&
    found=(${(f)"$(fleetrun complete "${(@)words[1,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then
    compadd -a found
  else
    _files
  fi
}
_fleetrun_scripts() {
  local -a first
  (( CURRENT == 2 && ! launching )) && first=($subcommands)
  _alternative 'subcommands:subcommand:{_describe subcommand first}' 'files:script:_files'
}
setopt local_options extended_glob 2>/dev/null
if [[ $funcstack[1] == _fleetrun ]]; then _fleetrun "$@"; else compdef _fleetrun fleetrun; fi
)zsh");
}

// ---- fish ----

std::string fish_script() {
  std::string text = R"(# fish completion for fleetrun; made by `fleetrun --completion=fish`
function __fleetrun_before_script
    set -l words (commandline -opc)
    set -e words[1]
    contains -- "$words[1]" $__fleetrun_launching; and set -e words[1]
    set -l is_value 0
    for word in $words
        if test $is_value = 1
            set is_value 0
        else if string match -q -- '-*' $word
            string match -q -- '*=*' $word; and continue
            contains -- (string replace -a -- - _ $word) $__fleetrun_valued; and set is_value 1
        else
            return 1
        end
    end
    return 0
end
function __fleetrun_found
    set -l words (commandline -opc)
    set -g __fleetrun_answers
    test (count $words) -ge 2; and contains -- "$words[2]" $__fleetrun_asked
    and set __fleetrun_answers (fleetrun complete $words[2..-1] (commandline -ct) 2>/dev/null)
    test (count $__fleetrun_answers) -gt 0
end
function __fleetrun_first_word
    test (count (commandline -opc)) = 1
end
)";
  std::string lines, valued;
  for (const Word& word : words()) {
    lines.append("complete -c fleetrun -n __fleetrun_before_script");
    for (const std::string& flag : word.flags)
      lines.append(flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1));
    if (word.value == Word::Value::file)
      lines.append(" -r -F");
    else if (word.value == Word::Value::directory)
      lines.append(" -x -a '(__fish_complete_directories)'");
    else if (word.value == Word::Value::some)
      lines.append(" -x");
    if (!word.choices.empty()) lines.append(" -f -a ").append(in_quotes(join(word.choices, " ")));
    lines.append(" -d ").append(in_quotes(word.help, "\\'")).append("\n");
    if (word.value == Word::Value::none || word.value == Word::Value::optional) continue;
    for (const std::string& flag : underscored(word.flags)) valued.append(" ").append(flag);
  }
  for (const Command& subcommand : commands())
    lines.append("complete -c fleetrun -n __fleetrun_first_word -a ")
        .append(subcommand.name)
        .append(" -d ")
        .append(in_quotes(subcommand.summary, "\\'"))
        .append("\n");
  lines.append("complete -c fleetrun -n __fleetrun_found -f -a '$__fleetrun_answers'\n");
  text.append("set -g __fleetrun_asked ").append(subcommands(false)).append("\n");
  text.append("set -g __fleetrun_launching ").append(subcommands(true)).append("\n");
  return text.append("set -g __fleetrun_valued").append(valued).append("\n").append(lines);
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  throw Error(ErrorKind::usage, "no completion for '" + printable(shell) + "'",
              "there is bash, zsh and fish");
}

}  // namespace fleetrun::cli
