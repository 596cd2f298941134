#include "launcher/remote/ssh_command.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/remote/fan_out.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::remote;

namespace {

RemoteHost host(std::string name) {
  return {.user = "", .name = std::move(name), .slots = {}, .servers = {}, .devices = {}, .where = ""};
}

}  // namespace

TEST_CASE("ssh never asks or forwards, and gets one constant command behind the host") {
  const auto argv = ssh_argv({"ssh", "-F", "config"}, host("h1"), remote_command("/opt/fleetrun"),
                             std::chrono::seconds(10));
  CHECK(join(argv, " ") ==
        "ssh -F config -T -o BatchMode=yes -o ControlMaster=no -o ClearAllForwardings=yes -o ForwardX11=no "
        "-o PermitLocalCommand=no -o RemoteCommand=none -o ConnectTimeout=10 -- h1 /opt/fleetrun agent "
        "--stdin");
  RemoteHost other = host("fe80::1");
  other.user = "me";
  other.port = 2222;
  const auto more = ssh_argv({"ssh"}, other, "x", std::chrono::seconds(10));
  CHECK(std::vector<std::string>(more.end() - 7, more.end()) ==
        std::vector<std::string>{"-p", "2222", "-l", "me", "--", "fe80::1", "x"});
  CHECK(std::find(argv.begin(), argv.end(), "StrictHostKeyChecking=no") == argv.end());
}

TEST_CASE("fleetrun on the hosts is a plain path") {
  CHECK(remote_command("fleetrun") == "fleetrun agent --stdin");
  CHECK(remote_command("~/a-b_c+d/1.2/fleetrun") == "~/a-b_c+d/1.2/fleetrun agent --stdin");
  for (const char* path : {"", "-x", "a b", "a;b", "$(id)", "`id`", "a\nb", "a'b", "a\"b", "a|b", "a&b", "a*",
                           "\xC3\xA4", "a\\b"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(remote_command(path), Error);
  }
  CHECK(split_command(" ssh  -p 22 ") == std::vector<std::string>{"ssh", "-p", "22"});
  CHECK_THROWS_AS(split_command("  "), Error);
}

TEST_CASE("every way in which a login fails has a reason, and a busy server another try") {
  struct Case {
    int status;
    const char* said;
    const char* reason;
    Again again = Again::no;
  };
  const Case cases[] = {
      {255, "ssh: Could not resolve hostname h1: Name or service not known\r\n", "its name is not known"},
      {255, "ssh: connect to host h1 port 22: Connection timed out\r\n", "it does not answer"},
      {255, "ssh: connect to host h1 port 22: Connection refused\r\n", "nothing listens at its ssh port"},
      {255, "ssh: connect to host h1 port 22: No route to host\n", "there is no route to it"},
      {255, "Host key verification failed.\r\n", "its host key is not known"},
      {255, "@  WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @\nHost key verification failed.\n",
       "its host key differs from the known one"},
      {255, "me@h1: Permission denied (publickey,password).\r\n", "ssh is not let in"},
      {255, "kex_exchange_identification: read: Connection reset by peer\r\n",
       "hung up before it said who it is", Again::perhaps},
      {255,
       "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port "
       "22\n",
       "hung up before it said who it is", Again::perhaps},
      {255,
       "debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n"
       "kex_exchange_identification: Connection closed by remote host\n",
       "sshd there is busy (ssh: Exceeded MaxStartups)", Again::yes},
      {255,
       "debug1: kex_exchange_identification: banner line 0: Not allowed at this time\r\n"
       "kex_exchange_identification: Connection closed by remote host\n",
       "lets nobody in from here for a while (ssh: Not allowed at this time)", Again::yes},
      {255, "me@h1: Permission denied (publickey).\r\ndebug1: Exit status 255\r\n", "ssh is not let in"},
      {255, "Connection reset by 10.0.0.1 port 22\n", "the connection was reset", Again::perhaps},
      {255, "Connection closed by 10.0.0.1 port 22\n", "the connection was closed", Again::perhaps},
      {255, "banner\n\nsomething new\n", "ssh: something new"},
      {255, "Permission denied to strangers.\nConnection closed by 10.0.0.1 port 22\n",
       "the connection was closed", Again::perhaps},
      {255, "Permissions 0644 for '/k' are too open.\nme@h1: Permission denied (publickey).\n",
       "no key that others may read (ssh: Permissions 0644 for '/k' are too open.)"},
      {255, "Connection timed out during banner exchange\n", "it does not answer"},
      {255, "config line 2: Bad configuration option: x\nconfig: terminating, 1 bad configuration options\n",
       "does not know (ssh: config line 2: Bad configuration option: x)"},
      {255,
       "ssh: connect to host jump port 22: Connection refused\nkex_exchange_identification: Connection "
       "closed "
       "by remote host\nConnection closed by UNKNOWN port 65535\n",
       "its jump host: nothing listens at its ssh port"},
      {255,
       "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n"
       "kex_exchange_identification: Connection closed by remote host\n"
       "Connection closed by UNKNOWN port 65535\n",
       "seen from its jump host, nothing listens at its ssh port"},
      {255,
       "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.9 port "
       "22\n"
       "kex_exchange_identification: Connection closed by remote host\n"
       "Connection closed by UNKNOWN port 65535\n",
       "its jump host: sshd there hung up", Again::perhaps},
      {255, "sh: 1: exec: /x: not found\nConnection closed by UNKNOWN port 65535\n",
       "does not lead there (ssh: sh: 1: exec: /x: not found)"},
      {255, "", "ssh failed without a word"},
      {127, "bash: line 1: /opt/fleetrun: No such file or directory\n", "there is no /opt/fleetrun"},
      {127, "fleetrun: error: script agent: No such file or directory\n", "fleetrun there is too old"},
      {126, "Permission denied\n", "/opt/fleetrun cannot be executed there"},
      {1, "This account is currently not available.\n",
       "the command ended with 1: This account is currently"},
      {0, "", "the command ended with 0"},
  };
  for (const Case& one : cases) {
    const LoginFailure failure = explain_login(one.status, one.said, "/opt/fleetrun");
    CAPTURE(failure.reason);
    CHECK(failure.reason.find(one.reason) != std::string::npos);
    CHECK(failure.reason.find('\n') == std::string::npos);
    CHECK(failure.again == one.again);
  }
}

TEST_CASE("a fleetrun that was to be sent there is not looked for where it is here") {
  for (const int status : {0, 1, 126, 127}) {
    const LoginFailure failure = explain_login(status, "/bin/sh: restricted\n", "");
    CHECK(failure.reason == "no agent was started there, the command ended with " + std::to_string(status) +
                                ": /bin/sh: restricted");
    CHECK(failure.hint.ends_with("run it by hand: ssh HOST exec /bin/sh -c date"));
  }
}

TEST_CASE("pauses between tries double up to the longest, and half of each is random") {
  FanOutSettings settings;
  settings.first_pause = std::chrono::milliseconds(100);
  settings.longest_pause = std::chrono::milliseconds(1000);
  CHECK(login_pause(settings, 1, 0).count() == 100);
  CHECK(login_pause(settings, 2, 0).count() == 200);
  CHECK(login_pause(settings, 9, 0).count() == 1000);
  CHECK(login_pause(settings, 99, 0).count() == 1000);
  for (std::uint64_t random = 0; random < 1000; ++random) {
    CHECK(login_pause(settings, 1, random).count() >= 50);
    CHECK(login_pause(settings, 1, random).count() <= 100);
  }
}

TEST_CASE("few hosts are logged in directly, many in slices, and each of them once") {
  CHECK(plan_tree(64, 64, 32).empty());
  CHECK(plan_tree(10, 4, 3) == std::vector<Slice>{{0, 1, 4}, {4, 5, 8}, {8, 9, 10}});
  std::vector<int> starts(65'536);
  for (const Slice& slice : plan_tree(starts.size(), 64, 32)) {
    ++starts[slice.relay];
    for (std::size_t i = slice.begin; i < slice.end; ++i) ++starts[i];
  }
  CHECK(std::count(starts.begin(), starts.end(), 1) == 65'536);
}
