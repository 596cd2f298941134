#include "launcher/remote/ssh_command.h"

#include <algorithm>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr int kSshFailed = 255, kNotFound = 127, kNotExecutable = 126;

bool is_plain(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("/._+-~").find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// What ssh says (in lower case), and what it means to a person.
struct Sign {
  std::string_view said, reason, hint;
  bool again = false;
};

constexpr std::string_view kBusyHint =
    "sshd there lets in few logins at a time (MaxStartups); --ssh_window=2 asks for fewer";
constexpr Sign kSigns[] = {
    {"could not resolve hostname", "its name is not known", "check the name, or write its address"},
    {"remote host identification has changed", "its host key differs from the known one",
     "ssh-keygen -R removes the old one, if the change is yours"},
    {"host key verification failed", "its host key is not known",
     "log in once by hand, or add the key to known_hosts"},
    {"too many authentication failures", "too many keys were offered",
     "name the right one: IdentityFile in ~/.ssh/config"},
    {"permission denied", "ssh is not let in (and passwords are not asked for)",
     "a key without a passphrase, or an agent, is needed: ssh-copy-id, ssh-add"},
    {"exceeded maxstartups", "sshd there is busy", kBusyHint, true},
    {"kex_exchange_identification", "sshd there hung up before it said who it is", kBusyHint, true},
    {"ssh_exchange_identification", "sshd there hung up before it said who it is", kBusyHint, true},
    {"banner exchange", "sshd there did not say who it is", kBusyHint, true},
    {"connection reset by", "the connection was reset", kBusyHint, true},
    {"connection closed by", "the connection was closed", kBusyHint, true},
    {"connection timed out", "it does not answer", "is it up, and reachable from here?"},
    {"operation timed out", "it does not answer", "is it up, and reachable from here?"},
    {"connection refused", "nothing listens at its ssh port", "is sshd running there, and at that port?"},
    {"no route to host", "there is no route to it", "is it up, and reachable from here?"},
    {"network is unreachable", "its network cannot be reached", ""},
};

LoginFailure not_there(std::string_view said, const std::string& program) {
  if (said.find("fleetrun: error:") != std::string_view::npos)
    return {"fleetrun there is too old to be started from here", "install the same version on all hosts",
            false};
  return {"there is no " + program, "install fleetrun there, or say where it is: --path=/DIR/fleetrun",
          false};
}

}  // namespace

std::string last_line(std::string_view said) {
  std::string last;
  for (std::string line : split(said, '\n')) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) last = std::move(line);
  }
  return printable(last);
}

std::vector<std::string> split_command(std::string_view text) {
  std::vector<std::string> words;
  for (std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  if (words.empty())
    throw Error(ErrorKind::usage, "--ssh is empty", "write it as --ssh=ssh, or with options after it");
  return words;
}

std::string remote_command(const std::string& program, std::string_view words) {
  const bool plain =
      std::all_of(program.begin(), program.end(), is_plain) || !defends("no words for a shell");
  if (program.empty() || program.front() == '-' || !plain)
    throw Error(ErrorKind::usage,
                "fleetrun on the hosts is '" + printable(program) + "': a plain path is needed",
                "--path=FILE names it: letters, digits and / . _ + - ~ only, since a shell there reads it");
  return program + " " + std::string(words);
}

std::vector<std::string> ssh_argv(const std::vector<std::string>& ssh, const RemoteHost& host,
                                  const std::string& command, std::chrono::seconds connect_timeout) {
  std::vector<std::string> argv = ssh;
  argv.push_back("-T");
  for (const char* option : {"BatchMode=yes", "ControlMaster=no", "ControlPath=none",
                             "ClearAllForwardings=yes", "ForwardX11=no", "PermitLocalCommand=no"})
    argv.insert(argv.end(), {"-o", option});
  argv.insert(argv.end(), {"-o", "ConnectTimeout=" + std::to_string(connect_timeout.count())});
  if (host.port != 0) argv.insert(argv.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) argv.insert(argv.end(), {"-l", host.user});
  if (defends("an end of options")) argv.push_back("--");
  argv.insert(argv.end(), {host.name, command});
  return argv;
}

LoginFailure explain_login(int exit_status, std::string_view said, const std::string& program) {
  if (exit_status == kNotFound) return not_there(said, program);
  if (exit_status == kNotExecutable) return {program + " cannot be executed there", "", false};
  const std::string last = last_line(said);
  if (exit_status == kSshFailed) {
    const std::string text = lower(said);
    for (const Sign& sign : kSigns) {
      if (text.find(sign.said) == std::string::npos) continue;
      return {std::string(sign.reason) + " (ssh: " + last + ")", std::string(sign.hint), sign.again};
    }
    return {last.empty() ? "ssh failed without a word" : "ssh: " + last, "", false};
  }
  const std::string by_hand = "run it by hand: ssh HOST " + program + " --version";
  return {"no agent was started there, the command ended with " + std::to_string(exit_status) +
              (last.empty() ? "" : ": " + last),
          exit_status == 0 ? "does a script of its shell, such as .bashrc, exit? " + by_hand : by_hand,
          false};
}

}  // namespace fleetrun::launcher::remote
