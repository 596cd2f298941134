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
  Again again = Again::no;
};

constexpr std::string_view kBusyHint =
    "sshd there lets in few logins at a time (MaxStartups); --ssh_window=2 asks for fewer";
constexpr std::string_view kHungUpHint =
    "its log says why: too many logins at a time (MaxStartups; --ssh_window=2 asks for fewer), hosts.deny, "
    "or "
    "a proxy with nothing behind it";
constexpr std::string_view kUpHint = "is it up, and reachable from here?";
constexpr std::string_view kByHandHint = "see what ssh itself says: ssh -v HOST true";

/// These say more than what follows them.
constexpr Sign kCauses[] = {
    {"remote host identification has changed", "its host key differs from the known one",
     "ssh-keygen -R removes the old one, if the change is yours"},
    {"banner line contains invalid characters", "what listens at its ssh port is not sshd", "check the port"},
    {"exceeded maxstartups", "sshd there is busy", kBusyHint, Again::yes},
    {"not allowed at this time", "sshd there lets nobody in from here for a while",
     "too many logins from here have failed (PerSourcePenalties)", Again::yes},
    {"exchange_identification", "sshd there hung up before it said who it is", kHungUpHint, Again::perhaps},
    {"are too open", "ssh takes no key that others may read", "chmod 600 the file of the key"},
};
/// Looked for in the last lines first: others may be a banner's.
constexpr Sign kSigns[] = {
    {"could not resolve hostname", "its name is not known", "check the name, or write its address"},
    {"host key verification failed", "its host key is not known",
     "log in once by hand, or add the key to known_hosts"},
    {"too many authentication failures", "too many keys were offered",
     "name the right one: IdentityFile in ~/.ssh/config"},
    {"permission denied", "ssh is not let in (and passwords are not asked for)",
     "a key without a passphrase, or an agent, is needed: ssh-copy-id, ssh-add"},
    {"bad configuration option:", "the configuration of ssh has a line that ssh does not know",
     "mend ~/.ssh/config, or name another: --ssh='ssh -F FILE'"},
    {"bad owner or permissions on", "others may write the configuration of ssh", "chmod 600 the file"},
    {"unable to negotiate", "ssh and its sshd have no method in common",
     "HostKeyAlgorithms, PubkeyAcceptedAlgorithms and KexAlgorithms in ~/.ssh/config allow old ones"},
    {"administratively prohibited", "it forwards nothing",
     "AllowTcpForwarding of its sshd has to be yes, or name another host as ProxyJump"},
    {"connection timed out", "it does not answer", kUpHint},
    {"operation timed out", "it does not answer", kUpHint},
    {"connection refused", "nothing listens at its ssh port", "is sshd running there, and at that port?"},
    {"no route to host", "there is no route to it", kUpHint},
    {"network is unreachable", "its network cannot be reached", kUpHint},
    {"connection reset by", "the connection was reset", kHungUpHint, Again::perhaps},
    {"connection closed by", "the connection was closed", kHungUpHint, Again::perhaps},
};

using Lines = std::vector<std::string>;

/// Without what `ssh -v` tells of itself, but for what the server said before it said who it is.
Lines lines_of(std::string_view said) {
  constexpr std::string_view kBeforehand = "exchange_identification: banner line ";
  Lines lines;
  for (std::string line : split(said, '\n')) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.starts_with("debug")) {
      const std::size_t word = line.find(kBeforehand);
      const std::size_t text = word == std::string::npos ? word : line.find(": ", word + kBeforehand.size());
      line = text == std::string::npos ? "" : line.substr(text + 2);
    }
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

bool has(const std::string& line, std::string_view sign) {
  return lower(line).find(sign) != std::string::npos;
}

/// What ssh says where the command that leads to the host (ProxyJump, ProxyCommand) has ended: no reason.
bool take_end_of_proxy(Lines& lines) {
  if (lines.empty() || !has(lines.back(), "unknown port 65535")) return false;
  lines.pop_back();
  if (!lines.empty() && has(lines.back(), "kex_exchange_identification: connection closed by remote host"))
    lines.pop_back();
  return true;
}

LoginFailure explain_ssh(std::string_view said) {
  Lines lines = lines_of(said);
  if (lines.empty())
    return {"ssh failed without a word",
            std::string(kByHandHint) + " (LogLevel QUIET in ~/.ssh/config keeps it silent)"};
  const bool led = take_end_of_proxy(lines);
  const auto failure = [&](const Sign& sign, const std::string& line) {
    const bool further = has(line, "open failed: connect failed");  // the jump host says so of the next one
    return LoginFailure{(!led      ? ""
                         : further ? "seen from its jump host, "
                                   : "its jump host: ") +
                            std::string(sign.reason) + " (ssh: " + printable(line) + ")",
                        std::string(sign.hint), sign.again};
  };
  for (const Sign& cause : kCauses) {
    for (const std::string& line : lines) {
      if (has(line, cause.said)) return failure(cause, line);
    }
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    for (const Sign& sign : kSigns) {
      if (has(*line, sign.said)) return failure(sign, *line);
    }
  }
  const std::string last = lines.empty() ? "" : "ssh: " + printable(lines.back());
  if (led)
    return {"ProxyJump or ProxyCommand of ssh does not lead there" + (last.empty() ? "" : " (" + last + ")"),
            std::string(kByHandHint)};
  return {last, std::string(kByHandHint)};
}

LoginFailure not_there(std::string_view said, const std::string& program) {
  if (said.find("fleetrun: error:") != std::string_view::npos)
    return {"fleetrun there is too old to be started from here", "install the same version on all hosts"};
  return {"there is no " + program,
          "install fleetrun there, say where it is: --path=/DIR/fleetrun, or let it travel: --ship"};
}

}  // namespace

std::string last_line(std::string_view said) {
  const Lines lines = lines_of(said);
  return lines.empty() ? "" : printable(lines.back());
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
                                  const std::string& command, std::chrono::seconds connect_timeout,
                                  bool talks) {
  std::vector<std::string> argv = ssh;
  argv.push_back("-T");
  if (talks) argv.push_back("-v");  // an option of the level would not reach the ssh to a jump host
  // A master that runs is used (who logs in with a second factor has one); none is started.
  for (const char* option : {"BatchMode=yes", "ControlMaster=no", "ClearAllForwardings=yes", "ForwardX11=no",
                             "PermitLocalCommand=no", "RemoteCommand=none"})
    argv.insert(argv.end(), {"-o", option});
  argv.insert(argv.end(), {"-o", "ConnectTimeout=" + std::to_string(connect_timeout.count())});
  if (host.port != 0) argv.insert(argv.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) argv.insert(argv.end(), {"-l", host.user});
  if (defends("an end of options")) argv.push_back("--");
  argv.insert(argv.end(), {host.name, command});
  return argv;
}

LoginFailure explain_login(int exit_status, std::string_view said, const std::string& program) {
  const bool ships = program.empty();
  if (exit_status == kNotFound && !ships) return not_there(said, program);
  if (exit_status == kNotExecutable && !ships)
    return {program + " cannot be executed there",
            "is it of the same kind of machine, and executable by that user? --ship sends the one from here"};
  if (exit_status == kSshFailed) return explain_ssh(said);
  const std::string last = last_line(said);
  const std::string by_hand =
      "run it by hand: ssh HOST " + (ships ? "exec /bin/sh -c date" : program + " --version");
  return {"no agent was started there, the command ended with " + std::to_string(exit_status) +
              (last.empty() ? "" : ": " + last),
          exit_status == 0 ? "does a script of its shell, such as .bashrc, exit? " + by_hand : by_hand};
}

}  // namespace fleetrun::launcher::remote
