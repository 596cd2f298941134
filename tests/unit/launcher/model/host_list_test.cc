#include "launcher/model/host_list.h"

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "launcher/model/host_range.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

using Names = std::vector<std::string>;

template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "not refused";
}

std::string list_refusal(std::string_view text) {
  return refusal([&] { parse_host_list(text, "--hosts"); });
}

std::string file_refusal(std::string_view text) {
  return refusal([&] { parse_hostfile(text, "hosts.txt"); });
}

bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text, " lacks ", std::string(part));
  return found;
}

Names names_of(const std::vector<RemoteHost>& hosts) {
  Names names;
  for (const RemoteHost& host : hosts) names.push_back(host.name);
  return names;
}

std::vector<RemoteHost> hosts(std::string_view text) {
  return parse_host_list(text, "--hosts").hosts;
}

}  // namespace

TEST_CASE("ranges are expanded as Slurm does, with its widths and combinations") {
  CHECK(expand_range("h1") == Names{"h1"});
  CHECK(expand_range("n[08-10]") == Names{"n08", "n09", "n10"});
  CHECK(expand_range("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(expand_range("n[001-003,7]") == Names{"n001", "n002", "n003", "n7"});
  CHECK(expand_range("n[1-2]x[3-4].lan") == Names{"n1x3.lan", "n1x4.lan", "n2x3.lan", "n2x4.lan"});
  CHECK(expand_range("n[001-010,7]").size() == 11);
  CHECK(expand_range("n[1-3]x[1-9]").size() == 27);
  CHECK(expand_range("n[1-65536]").size() == 65'536);
  CHECK(expand_names("a,n[1,3-4],b") == Names{"a", "n1", "n3", "n4", "b"});
  CHECK(expand_names("").empty());
}

TEST_CASE("a range that is none, or too long, is refused before anything is made of it") {
  CHECK(has(refusal([] { expand_range("n[3-1]"); }), "'n[3-1]': the range 3-1 begins above its end"));
  CHECK(has(refusal([] { expand_range("n[1-"); }), "the '[' is not closed"));
  CHECK(has(refusal([] { expand_range("n[[1]]"); }), "a '[' within brackets"));
  CHECK(has(refusal([] { expand_range("n1]"); }), "a ']' without its '['"));
  CHECK(has(refusal([] { expand_range("n[]"); }), "the brackets are empty"));
  CHECK(has(refusal([] { expand_range("n[1,]"); }), "'' is not a number"));
  CHECK(has(refusal([] { expand_range("n[-1]"); }), "'' is not a number"));
  CHECK(has(refusal([] { expand_range("n[a-b]"); }), "'a' is not a number"));
  CHECK(has(refusal([] { expand_range("n[1-2-3]"); }), "'2-3' is not a number"));
  CHECK(has(refusal([] { expand_range("n[1-010]"); }), "filled with zeros to different widths"));
  CHECK(has(refusal([] { expand_range("n[0-999999999]"); }), "more than 65536 hosts"));
  CHECK(has(refusal([] { expand_range("n[0-99999999999999999999]"); }), "at most 15 digits"));
  CHECK(has(refusal([] { expand_range("n[1-60000,1-60000]"); }), "more than 65536 hosts"));
  CHECK(has(refusal([] { expand_range("n[1-257]x[1-256]"); }), "more than 65536 hosts"));
  CHECK(has(refusal([] { expand_names("n[1-65536],b"); }), "more than 65536 hosts"));
  CHECK(has(refusal([] { expand_names("a,,b"); }), "a name in the list is empty"));
}

TEST_CASE("a list has hosts with users, slots, addresses and ranges") {
  const auto list =
      hosts("h1:2,root@H2.lan:4,n[1-2]:slots=3,[fe80::1]:2,fe80::2,10.0.0.1,h_3.,[fe80::3%eth0]");
  REQUIRE(list.size() == 9);
  CHECK(list[0] ==
        RemoteHost{.user = "", .name = "h1", .slots = 2, .servers = {}, .devices = {}, .where = "--hosts"});
  CHECK(list[1].user == "root");
  CHECK(list[1].name == "H2.lan");
  CHECK(list[1].slots == 4);
  CHECK(list[3].name == "n2");
  CHECK(list[3].slots == 3);
  CHECK(list[4].name == "fe80::1");
  CHECK(list[4].slots == 2);
  CHECK(list[5].name == "fe80::2");
  CHECK(!list[5].slots);
  CHECK(list[6].name == "10.0.0.1");
  CHECK(list[7].name == "h_3.");
  CHECK(list[8].name == "fe80::3%eth0");
  CHECK(written(list[4]) == "[fe80::1]");
  CHECK(hosts("h1:port=2222:2")[0].port == 2222);
  CHECK(hosts("h1:port=2222:2")[0].slots == 2);
}

TEST_CASE("a host that names roles has these roles only") {
  const auto list = hosts("h1:servers=1,h2:trainers=2,h3:servers=1:trainers=1,h4:2,h5");
  CHECK(list[0].servers == 1);
  CHECK(list[0].slots == 0);
  CHECK(list[1].servers == 0);
  CHECK(list[1].slots == 2);
  CHECK(list[2].servers == 1);
  CHECK(list[2].slots == 1);
  CHECK(!list[3].servers);
  CHECK(list[3].slots == 2);
  CHECK(!list[4].servers);
  CHECK(!list[4].slots);
  CHECK(has(list_refusal("h1:servers=0:trainers=0"), "nothing is to run there"));
  CHECK(has(list_refusal("h1:servers=0"), "nothing is to run there"));
  CHECK(has(list_refusal("h1:2:trainers=2"), "slots and trainers are the same"));
}

TEST_CASE("nothing that ssh or a shell would act on is a host") {
  for (const char* word : {"-oProxyCommand=touch x",
                           "a;b",
                           "a|b",
                           "`id`",
                           "$(id)",
                           "a b",
                           "h\tx",
                           "h\n",
                           "h*",
                           "h'",
                           "h\"",
                           "h\\x",
                           "h/x",
                           "h&",
                           "<h",
                           "h%h",
                           "%h",
                           "\xC3\xA4",
                           ".h",
                           "_h",
                           "h~"}) {
    CAPTURE(word);
    CHECK(list_refusal(word) != "not refused");
    CHECK(has(list_refusal(word), "--hosts: "));
  }
  CHECK(has(list_refusal("-oProxyCommand"), "the host '-oProxyCommand' begins with '-'"));
  CHECK(has(list_refusal("-oProxyCommand=touch x"), "begins with '-'"));
  CHECK(has(list_refusal("user@-x"), "the host '-x' begins with '-'"));
  CHECK(has(list_refusal("-x@h"), "the user '-x' begins with '-'"));
  CHECK(has(list_refusal("a$b@h"), "'a$b' is not the name of a user"));
  CHECK(has(list_refusal("@h"), "'@h' lacks the user before its '@'"));
  CHECK(has(list_refusal("h@"), "'h@' lacks the host behind its '@'"));
  CHECK(has(list_refusal("a@b@h"), "'a@b' is not the name of a user"));
  CHECK(has(list_refusal(std::string(300, 'h')), "has 300 characters, and 253 are the most"));
  CHECK(has(list_refusal("-n[1-2]"), "begins with '-'"));
  CHECK(has(list_refusal("n[1-2];id"), "'n1;id' is not the name of a host"));
  CHECK(has(list_refusal("[fe80::g]"), "'fe80::g' is not an IPv6 address"));
  CHECK(has(list_refusal("[fe80::1%-x]"), "is not an IPv6 address"));
}

TEST_CASE("a list with empty parts, bad numbers or unknown words is refused") {
  CHECK(has(list_refusal(""), "no host is given"));
  CHECK(has(list_refusal(",h1"), "is empty"));
  CHECK(has(list_refusal(","), "is empty"));
  CHECK(has(list_refusal("h1,,"), "is empty"));
  CHECK(has(list_refusal("h1,,h2"), "is empty"));
  CHECK(has(list_refusal(":2"), "':2' has no name"));
  CHECK(has(list_refusal("h1:"), "ends with ':'"));
  for (const char* slots : {"h:-1", "h:0", "h:slots=-1", "h:slots=0", "h:1e3", "h:+1", "h: 1", "h:1.0",
                            "h:65537", "h:slots=", "h:99999999999999999999"}) {
    CAPTURE(slots);
    CHECK(has(list_refusal(slots), "a whole number from 1 to 65536 is needed"));
  }
  CHECK(has(list_refusal("h:2:3"), "slots is given twice"));
  CHECK(has(list_refusal("h:slot=2"), "'slot' cannot be said of a host"));
  CHECK(has(list_refusal("h:port=0"), "port is '0'"));
  CHECK(has(list_refusal("h:port=65536"), "port is '65536'"));
  CHECK(has(list_refusal("n[1-"), "the '[' is not closed"));
}

TEST_CASE("a host that is named again is counted, as PBS and Open MPI write their files") {
  const RemoteHosts pbs = parse_hostfile("h1\nh1\nh2\nH1.\n", "nodes");
  REQUIRE(pbs.hosts.size() == 2);
  CHECK(pbs.hosts[0].slots == 3);
  CHECK(pbs.hosts[1].slots == 1);
  REQUIRE(pbs.notes.size() == 1);
  CHECK(pbs.notes[0] ==
        "nodes:2: h1 is named more than once: the numbers are added up, "
        "one trainer where none is given");
  CHECK(parse_host_list("h1:2,h1", "--hosts").hosts[0].slots == 3);
  CHECK(parse_host_list("n[1-3],n2", "--hosts").hosts[1].slots == 2);
  CHECK(parse_host_list("[fe80:0::1],fe80::1", "--hosts").hosts.size() == 1);
  const RemoteHosts roles = parse_host_list("h1:servers=1,h1:trainers=2", "--hosts");
  CHECK(roles.hosts[0].servers == 1);
  CHECK(roles.hosts[0].slots == 2);
  CHECK(parse_host_list("h1,h2,", "--hosts").hosts.size() == 2);
  CHECK_FALSE(parse_host_list("h1,h2", "--hosts").hosts[0].slots);
}

TEST_CASE("a host that is named again otherwise is refused, and both places are named") {
  CHECK(has(list_refusal("h1,root@H1"), "H1 is in the list twice, the other time as h1, with another user"));
  CHECK(has(list_refusal("h1,h1:port=22"), "with another user or port"));
  CHECK(has(list_refusal("h1:servers=1,h1"), "with and without its servers or trainers"));
  CHECK(has(file_refusal("h1 devices=0\nh2\nh1 slots=2\n"),
            "hosts.txt:3: h1 is in the list twice, first in hosts.txt:1, with devices"));
}

TEST_CASE("a host file has comments, blank lines, slots in every usual spelling") {
  const RemoteHosts file = parse_hostfile(
      "\xEF\xBB\xBF# hosts\r\n\r\nh1 slots=2\r\nh2:3   # big\n\t u@n[01-02] slots = 4 max_slots=8\n[fe80::1] "
      "slots= 2 "
      "port =2222\nh3 devices=0,2\nh4",
      "hosts.txt");
  REQUIRE(file.hosts.size() == 7);
  CHECK(names_of(file.hosts) == Names{"h1", "h2", "n01", "n02", "fe80::1", "h3", "h4"});
  CHECK(file.hosts[0].slots == 2);
  CHECK(file.hosts[1].slots == 3);
  CHECK(file.hosts[3].slots == 4);
  CHECK(file.hosts[3].user == "u");
  CHECK(file.hosts[3].where == "hosts.txt:5");
  CHECK(file.hosts[4].port == 2222);
  CHECK(file.hosts[5].devices == Names{"0", "2"});
  CHECK(file.hosts[5].slots == 2);
  CHECK(file.notes == Names{"hosts.txt:5: max_slots has no effect"});
}

TEST_CASE("host files of other launchers and schedulers are read as those read them") {
  struct Dialect {
    std::string_view name, text;
    std::vector<std::pair<std::string, int>> hosts;  // 0: no number is given
  };
  const Dialect dialects[] = {
      {"Open MPI",
       "h1 slots=4 max_slots=8\nh2 cpu=2 slots_max=2\nh3 count=3\n",
       {{"h1", 4}, {"h2", 2}, {"h3", 3}}},
      {"MPICH", "h1:4 ifname=ib0\nh2:2 binding=user:0,1\nh3\n", {{"h1", 4}, {"h2", 2}, {"h3", 0}}},
      {"DeepSpeed", "worker-1 slots=4\nworker-2 slots=4\n", {{"worker-1", 4}, {"worker-2", 4}}},
      {"Grid Engine", "n1.x 4 all.q@n1.x <NULL>\nn2.x 2 all.q@n2.x 0,1\n", {{"n1.x", 4}, {"n2.x", 2}}},
      {"Grid Engine, two queues", "n1 4 a.q@n1 UNDEFINED\nn1 2 b.q@n1 UNDEFINED\n", {{"n1", 6}}},
      {"host and number", "n1 4\nn2\t2\n", {{"n1", 4}, {"n2", 2}}},
      {"PBS", "n1\nn1\nn2\n", {{"n1", 2}, {"n2", 1}}},
      {"Horovod", "h1:2,h2:2\n", {{"h1", 2}, {"h2", 2}}},
      {"Slurm", "n[01-02,7],login1\n", {{"n01", 0}, {"n02", 0}, {"n7", 0}, {"login1", 0}}},
      {"a comma at each end", "h1,\nh2,\n", {{"h1", 0}, {"h2", 0}}},
      {"old ends of lines", "h1\rh2 slots=2\r", {{"h1", 0}, {"h2", 2}}},
  };
  for (const Dialect& dialect : dialects) {
    CAPTURE(dialect.name);
    std::vector<std::pair<std::string, int>> read;
    for (const RemoteHost& host : parse_hostfile(dialect.text, "hosts.txt").hosts)
      read.emplace_back(host.name, host.slots.value_or(0));
    CHECK(read == dialect.hosts);
  }
  CHECK(parse_hostfile("h1 slots=2 username=me\nh2 user=you\n", "f").hosts[1].user == "you");
  CHECK(has(file_refusal("a\r\nb c=1"), "hosts.txt:2: "));
  CHECK(parse_hostfile("h1:22\n", "f").notes ==
        Names{"f:1: ':22' is 22 trainers; the port of an ssh server is "
              "written as port=22"});
  CHECK(parse_hostfile("h1 slots=2048\n", "f").hosts[0].slots == 2048);
  CHECK(names_of(hosts("h1:2, h2 ,\th3")) == Names{"h1", "h2", "h3"});
}

TEST_CASE("what is wrong in a host file is said with its line") {
  CHECK(has(file_refusal(""), "hosts.txt: no host is in the file"));
  CHECK(has(file_refusal("# nothing\n\n  \n"), "hosts.txt: no host is in the file"));
  CHECK(has(file_refusal("h1\na;b\n"), "hosts.txt:2: 'a;b' is not the name of a host"));
  CHECK(has(file_refusal("h1 x\n"), "hosts.txt:1: 'x' after the host is not understood"));
  CHECK(has(file_refusal("h1 4 h2 2\n"), "hosts.txt:1: '4' after the host is not understood"));
  CHECK(has(file_refusal("h1,h2 slots=2\n"), "hosts.txt:1: 'h1,h2' are several hosts"));
  CHECK(has(file_refusal("h1,,h2\n"), "hosts.txt:1: a host is empty"));
  CHECK(has(file_refusal("h1\nh2\u00a0slots=2\n"), "hosts.txt:2: "));
  CHECK(has(file_refusal("h1:2222\n"), "hosts.txt:1: ':2222' would be 2222 trainers there"));
  CHECK(has(file_refusal("me@h1 user=you\n"), "hosts.txt:1: the user is given twice"));
  CHECK(has(file_refusal("h1 user=-x\n"), "hosts.txt:1: the user '-x' begins with '-'"));
  CHECK(has(file_refusal("h1 slots=\n"), "slots is ''"));
  CHECK(has(file_refusal("h1 slots=2 slots=3\n"), "slots is given twice"));
  CHECK(has(file_refusal("h1 sockets=2\n"), "'sockets' cannot be said of a host"));
  CHECK(has(file_refusal("h1 devices=0,0\n"), "without repetitions"));
  CHECK(has(file_refusal("h1 devices=0,1 slots=3\n"), "3 slots and 2 devices"));
  CHECK(has(file_refusal(std::string_view("h1\nh\0x\n", 7)), "hosts.txt:2: the line holds a NUL byte"));
  const std::string long_line = "h1\n" + std::string(1 << 20, 'x') + "\n";
  const std::string text = file_refusal(long_line);
  CHECK(has(text, "hosts.txt:2: "));
  CHECK(text.size() < 300);
}

TEST_CASE("a host file that is not a file is refused at once") {
  const tests::TempDir directory;
  CHECK(read_hostfile(directory.write("good", "h1\nh2\n")).hosts.size() == 2);
  CHECK(has(refusal([&] { read_hostfile(directory.file("missing")); }), "No such file or directory"));
  CHECK(has(refusal([&] { read_hostfile(directory.path().string()); }), "this is a directory"));
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(has(refusal([&] { read_hostfile(fifo); }), "this is not a regular file"));
  CHECK(has(refusal([&] { read_hostfile("/dev/null"); }), "this is not a regular file"));
  CHECK(has(refusal([&] { read_hostfile(""); }), "No such file"));
  const std::string secret = directory.write("unreadable", "h1\n");
  REQUIRE(::chmod(secret.c_str(), 0) == 0);
  if (::geteuid() != 0) CHECK(has(refusal([&] { read_hostfile(secret); }), "Permission denied"));
}

TEST_CASE("--include takes hosts and devices of the list, in the list's order") {
  const auto list = hosts("h1:4,h2:2,[fe80::1]:2,n[1-3]");
  CHECK(names_of(include_hosts(list, "h2@h1")) == Names{"h1", "h2"});
  CHECK(names_of(include_hosts(list, "n[2-3]@[fe80::1]:1")) == Names{"fe80::1", "n2", "n3"});
  const auto chosen = include_hosts(list, "h1:0,2@h2");
  CHECK(chosen[0].devices == Names{"0", "2"});
  CHECK(chosen[0].slots == 2);
  CHECK(!chosen[1].devices);
  CHECK(chosen[1].slots == 2);
  CHECK(include_hosts(list, "n1:3,5")[0].devices == Names{"3", "5"});
  CHECK(has(refusal([&] { include_hosts(list, "h9"); }), "--include: 'h9' is not in the list of hosts"));
  CHECK(has(refusal([&] { include_hosts(list, "h1:4"); }), "--include: h1 has no device '4', only 0,1,2,3"));
  CHECK(has(refusal([&] { include_hosts(list, "h1:0,0"); }), "there twice"));
  CHECK(has(refusal([&] { include_hosts(list, "h1@h1"); }), "h1 is there twice"));
  CHECK(has(refusal([&] { include_hosts(list, "h1:"); }), "ends with ':'"));
  CHECK(has(refusal([&] { include_hosts(list, ""); }), "no host is given"));
  CHECK(has(refusal([&] { include_hosts(list, "h1@@h2"); }), "'' is not in the list"));
}

TEST_CASE("--exclude leaves out hosts and devices") {
  const auto list = hosts("h1:3,h2:1,h3");
  CHECK(names_of(exclude_hosts(list, "h1")) == Names{"h2", "h3"});
  const auto left = exclude_hosts(list, "h1:1@h2:0");
  CHECK(names_of(left) == Names{"h1", "h3"});
  CHECK(left[0].devices == Names{"0", "2"});
  CHECK(left[0].slots == 2);
  CHECK(has(refusal([&] { exclude_hosts(list, "h3:0"); }), "how many devices h3 has is not known here"));
  CHECK(has(refusal([&] { exclude_hosts(list, "h1@h2@h3"); }), "no host is left"));
}
