// The author of the arguments and files that a scheduler passes on: T6, T7, T10, T19.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launcher/config/job_config_values.h"
#include "launcher/model/host_list.h"
#include "launcher/model/host_range.h"
#include "launcher/remote/ssh_command.h"
#include "tests/attack/attack.h"

using namespace fleetrun::launcher;
using fleetrun::tests::goes_through;
using fleetrun::tests::stopped_only_by;

TEST_CASE("T6: a program's name makes the shell of another host run something else") {
  stopped_only_by("no words for a shell", [] {
    return goes_through([] { remote::remote_command("/opt/fleetrun;touch${IFS}/tmp/x"); });
  });
}

TEST_CASE("T7: a host's name is read as an option, or by the shell of a ProxyCommand") {
  for (const char* name : {"-oProxyCommand=touch", "user@-oProxyCommand=touch", "$(touch${IFS}x)", "h;touch"})
    stopped_only_by("names of hosts",
                    [name] { return goes_through([name] { parse_host_list(name, "--hosts"); }); });
}

TEST_CASE("T7: a name that came through is read as an option by ssh") {
  stopped_only_by("an end of options", [] {
    RemoteHost host;
    host.name = "-oProxyCommand=touch";
    const std::vector<std::string> words =
        remote::ssh_argv({"ssh"}, host, "fleetrun agent --stdin", std::chrono::seconds(5));
    const auto name = std::find(words.begin(), words.end(), host.name);
    return std::find(words.begin(), name, "--") == name;
  });
}

TEST_CASE("T10: a job's name leads out of the directory of logs") {
  for (const char* name : {"../../home", "/etc/cron.d/x", "..", "-rf"})
    stopped_only_by("names in paths", [name] {
      return goes_through([name] { read_file_safe_name({name, "job_id", Source::flag}); });
    });
}

TEST_CASE("T19: a short word becomes a million hosts") {
  stopped_only_by("counted hosts", [] {
    std::size_t hosts = 0;
    return goes_through([&] { hosts = expand_range("n[0-999][0-999]").size(); }) && hosts == 1'000'000;
  });
}
