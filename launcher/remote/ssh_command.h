// The words of an ssh command that starts an agent, and what its failure means. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/host_list.h"

namespace fleetrun::launcher::remote {

/// "ssh -F file" → {"ssh", "-F", "file"}. Throws: Error(usage) where there is no word.
std::vector<std::string> split_command(std::string_view text);

/// The one constant command that a host is asked to run. `program` is fleetrun there.
/// Throws: Error(usage) unless it is a plain path: letters, digits and / . _ + - ~, not beginning with '-'. A
/// shell there reads the command.
std::string remote_command(const std::string& program, std::string_view words = "agent --stdin");

/// SSH [options] -- HOST COMMAND: never asks anybody, forwards nothing, runs that command whatever the user's
/// configuration has as one, and gives up after `connect_timeout`. A connection that a master of the user's
/// holds is used. What the configuration says about host keys holds. `talks`: it says what a server that
/// hangs up has said before.
std::vector<std::string> ssh_argv(const std::vector<std::string>& ssh, const RemoteHost& host,
                                  const std::string& command, std::chrono::seconds connect_timeout,
                                  bool talks = false);

enum class Again {
  no,       // it would go the same way
  perhaps,  // the server hung up without a word: it is busy, or does that to everybody
  yes       // the server said that it is busy
};

struct LoginFailure {
  std::string reason;  // one line, without the host
  std::string hint;    // may be empty
  Again again = Again::no;
};

/// The last line of `said` that holds something, fit for a message.
std::string last_line(std::string_view said);

/// Why no agent came, by ssh's exit status and what it and the host's shell wrote on standard error.
/// `program`: fleetrun there; empty: it was to be sent there (--ship).
LoginFailure explain_login(int exit_status, std::string_view said, const std::string& program);

}  // namespace fleetrun::launcher::remote
