#include "launcher/remote/fan_out.h"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include <doctest/doctest.h>

#include "launcher/remote/launch_order.h"
#include "launcher/ship/read_tree.h"
#include "runtime/base/environ.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::remote;

namespace {

constexpr std::chrono::seconds kDeadline{30};

std::string from_environment(const char* name) {
  return Environ::of_process().value_or(name, "");
}

/// Logins through tests/support/fake_ssh.py, to agents that are the real ones.
class Hosts final : public FanOutListener {
 public:
  explicit Hosts(const std::string& config) {
    place_.write("config.json", config);
    Environ environment = Environ::of_process();
    environment.set("FAKE_SSH", place_.path().string());
    settings_.ssh = {from_environment("PYTHON"), "-IS", from_environment("FAKE_SSH_PROGRAM")};
    settings_.program = settings_.own_program = from_environment("FLEETRUN");
    settings_.environment = environment.entries();
    settings_.first_pause = std::chrono::milliseconds(1);
    settings_.longest_pause = std::chrono::milliseconds(20);
    settings_.hello_timeout = kDeadline;
  }

  void start(const std::vector<std::string>& names, const std::string& here = {}) {
    fan_out_ = make_fan_out(loop_, settings_, *this);
    std::vector<Destination> destinations;
    for (const std::string& name : names) {
      Destination one;
      one.number = static_cast<std::uint32_t>(destinations.size());
      one.host.name = name;
      one.here = name == here;
      destinations.push_back(one);
    }
    fan_out_->start(destinations);
  }

  /// Runs the loop until `enough()`; fails where that takes too long.
  void run_until(const std::function<bool()>& enough) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!enough()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop_.restart();
      loop_.run_one_for(std::chrono::seconds(1));
    }
  }
  void run_until_all_have_verdicts(std::size_t hosts) {
    run_until([&] { return joined.size() + refused.size() == hosts; });
  }
  void end() {
    fan_out_->close();
    run_until([&] { return fan_out_->alive() == 0; });
  }

  /// Logins by host.
  std::map<std::string, int> logins() const {
    std::ifstream file(place_.file("logins"));
    std::map<std::string, int> count;
    for (std::string line; std::getline(file, line);) ++count[split(line, '"').at(1)];
    return count;
  }
  std::string login_lines() const {
    std::ostringstream text;
    text << std::ifstream(place_.file("logins")).rdbuf();
    return text.str();
  }
  std::filesystem::path home(const std::string& host) const { return place_.path() / host; }
  void touch(const std::string& name) { place_.write(name, ""); }

  void on_joined(std::uint32_t host, const Hello& hello) override { joined[host] = hello; }
  void on_refused(std::uint32_t host, const LoginFailure& failure, int count) override {
    refused[host] = failure;
    tries[host] = count;
  }
  void on_message(std::uint32_t host, Message message) override {
    messages[host].push_back(std::move(message));
  }
  void on_gone(std::uint32_t host, const std::string& why) override { gone[host] = why; }

  FanOut& fan_out() { return *fan_out_; }

  std::map<std::uint32_t, Hello> joined;
  std::map<std::uint32_t, LoginFailure> refused;
  std::map<std::uint32_t, int> tries;
  std::map<std::uint32_t, std::vector<Message>> messages;
  std::map<std::uint32_t, std::string> gone;
  FanOutSettings settings_;

 private:
  tests::TempDir place_;
  boost::asio::io_context loop_;
  std::unique_ptr<FanOut> fan_out_;
};

bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text, " lacks ", std::string(part));
  return found;
}

}  // namespace

TEST_CASE("agents start on all hosts, behind the noise of login scripts, and end with their channels") {
  Hosts hosts(R"({"noise": "Welcome!\nLast login: never"})");
  hosts.start({"h1", "h2", "here"}, "here");
  hosts.run_until_all_have_verdicts(3);
  CHECK(hosts.refused.empty());
  REQUIRE(hosts.joined.size() == 3);
  CHECK(hosts.joined[0].version == FLEETRUN_VERSION);
  CHECK(hosts.joined[0].connection == "127.0.0.1 50000 127.0.0.1 22");
  CHECK(hosts.logins() == std::map<std::string, int>{{"h1", 1}, {"h2", 1}});
  CHECK(has(hosts.login_lines(), R"("-o", "BatchMode=yes")"));
  CHECK(has(hosts.login_lines(), R"("--", "h1", ")" + hosts.settings_.program + R"( agent --stdin")"));
  hosts.end();
  CHECK(hosts.gone.size() == 3);
}

TEST_CASE("every host that cannot be used has its reason") {
  Hosts hosts(
      R"({"hosts": {"ok": "ok", "unknown": "unknown", "refused": "refused", "timeout": "timeout", "key": "host_key",
    "denied": "denied", "password": "password", "absent": "absent", "closed": "closed", "no_route": "no_route"}})");
  hosts.start(
      {"ok", "unknown", "refused", "timeout", "key", "denied", "password", "absent", "closed", "no_route"});
  hosts.run_until_all_have_verdicts(10);
  CHECK(hosts.joined.size() == 1);
  const char* reasons[] = {"",
                           "its name is not known",
                           "nothing listens at its ssh port",
                           "it does not answer",
                           "its host key is not known",
                           "ssh is not let in",
                           "ssh is not let in",
                           "there is no /",
                           "the command ended with 1: This account is currently not available.",
                           "there is no route to it"};
  for (std::uint32_t i = 1; i < 10; ++i) {
    CHECK(has(hosts.refused[i].reason, reasons[i]));
    CHECK(hosts.tries[i] == 1);
  }
  hosts.end();
}

TEST_CASE("a login that hangs, and a login script that takes the input, are given up in time") {
  Hosts hosts(R"({"hosts": {"hangs": "hang", "swallows": "swallow"}})");
  hosts.settings_.hello_timeout = std::chrono::milliseconds(300);
  hosts.start({"hangs", "swallows"});
  hosts.run_until_all_have_verdicts(2);
  CHECK(has(hosts.refused[0].reason, "no word from fleetrun there within 0.3 s of the login"));
  CHECK(has(hosts.refused[1].reason, "no word from fleetrun there within 0.3 s of the login"));
  CHECK(has(hosts.refused[1].hint, "does its shell wait for input"));
  CHECK(hosts.fan_out().alive() == 0);
}

TEST_CASE("a busy server is tried again, and every host starts once") {
  Hosts hosts(R"({"refuse": 0.5, "seed": 3})");
  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) names.push_back("n" + std::to_string(i));
  hosts.start(names);
  hosts.run_until_all_have_verdicts(names.size());
  CHECK(hosts.refused.empty());
  CHECK(hosts.joined.size() == names.size());
  int logins = 0;
  for (const auto& [name, count] : hosts.logins()) {
    CHECK(count <= 2);
    logins += count;
  }
  CHECK(logins > 24);
  CHECK(hosts.fan_out().alive() == names.size());
  hosts.end();
}

TEST_CASE("a server that always hangs up is given up sooner than one that says that it is busy") {
  Hosts hosts(R"({"hosts": {"*": "hung_up"}})");
  hosts.start({"h1"});
  hosts.run_until_all_have_verdicts(1);
  CHECK(hosts.tries[0] == 5);
  CHECK(has(hosts.refused[0].reason, "sshd there hung up before it said who it is"));
  CHECK(has(hosts.refused[0].hint, "MaxStartups"));
  Hosts busy(R"({"hosts": {"*": "busy"}})");
  busy.start({"h1"});
  busy.run_until_all_have_verdicts(1);
  CHECK(busy.tries[0] == 12);
  CHECK(has(busy.refused[0].reason, "sshd there is busy (ssh: Exceeded MaxStartups)"));
}

TEST_CASE("where one host was let in after its server had hung up, servers that hang up count as busy") {
  Hosts hosts(R"({"hosts": {"always": "hung_up", "*": "hung_up_once"}})");
  hosts.start({"always", "once"});
  hosts.run_until_all_have_verdicts(2);
  CHECK(hosts.joined.count(1) == 1);
  CHECK(hosts.tries[0] == 12);
  hosts.end();
}

TEST_CASE("another version is refused, and both are named") {
  Hosts hosts("{}");
  tests::TempDir directory;
  // Hello of version 9.9.9: protocol 1, three strings.
  const std::string hello = encode(Addressed{0, Hello{kProtocol, "9.9.9", "", "old"}});
  directory.write("hello", std::string(kMarker) + hello);
  const std::string program =
      directory.write("fleetrun", "#!/bin/sh\ncat " + directory.file("hello") + "\nexec cat > /dev/null\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  hosts.settings_.program = program;
  hosts.start({"old"});
  hosts.run_until_all_have_verdicts(1);
  CHECK(hosts.refused[0].reason == "fleetrun there is 9.9.9, and " FLEETRUN_VERSION " here");
}

TEST_CASE("a command that is not there refuses its hosts") {
  Hosts hosts("{}");
  hosts.settings_.ssh = {"/nonexistent/ssh"};
  hosts.start({"h1", "h2"});
  hosts.run_until_all_have_verdicts(2);
  CHECK(has(hosts.refused[1].reason, "/nonexistent/ssh cannot be started: No such file or directory"));
}

TEST_CASE("an order that cannot be carried out is answered with what is wrong there") {
  Hosts hosts("{}");
  hosts.start({"h1"});
  hosts.run_until_all_have_verdicts(1);
  LaunchOrder order;
  order.version = FLEETRUN_VERSION;
  order.cwd = "/nonexistent/directory";
  hosts.fan_out().send(0, Order{encode(order)});
  hosts.run_until([&] { return !hosts.messages[0].empty(); });
  const auto& ended = std::get<Ended>(hosts.messages[0].front());
  CHECK(ended.status == 125);
  CHECK(has(ended.screen, "fleetrun: error: directory /nonexistent/directory: No such file or directory"));
  CHECK(has(ended.screen, "--chdir"));
  hosts.fan_out().send(0, Bye{});
  hosts.end();
}

TEST_CASE("a connection that breaks is told, and the agent behind it ends") {
  Hosts hosts(R"({"hosts": {"h1": "drop"}})");
  hosts.start({"h1"});
  hosts.run_until_all_have_verdicts(1);
  hosts.touch("drop-h1");
  hosts.run_until([&] { return hosts.gone.contains(0); });
  CHECK(has(hosts.gone[0], "137"));
}

TEST_CASE("beyond so many hosts, agents start those of others and pass on what is said") {
  Hosts hosts(R"({"nested": true, "refuse": 0.3, "seed": 5})");
  hosts.settings_.tree_above = 4;
  hosts.settings_.slice = 3;
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back("n" + std::to_string(i));
  hosts.start(names);
  hosts.run_until_all_have_verdicts(names.size());
  CHECK(hosts.refused.empty());
  REQUIRE(hosts.joined.size() == names.size());
  CHECK(hosts.fan_out().via(5) == 4);
  CHECK(!hosts.fan_out().via(4));
  CHECK(hosts.fan_out().alive() == 3);
  LaunchOrder order;
  order.version = FLEETRUN_VERSION;
  order.cwd = "/nonexistent";
  for (std::uint32_t i = 0; i < 10; ++i) {
    order.cwd = "/nonexistent/" + std::to_string(i);
    hosts.fan_out().send(i, Order{encode(order)});
  }
  hosts.run_until([&] { return hosts.messages.size() == 10; });
  for (std::uint32_t i = 0; i < 10; ++i)
    CHECK(has(std::get<Ended>(hosts.messages[i].front()).screen, "/nonexistent/" + std::to_string(i) + ":"));
  hosts.end();
}

TEST_CASE("hosts that one that is down should have started are logged in from here") {
  // n0, n4 and n8 would start others, and n4 is down.
  Hosts hosts(R"({"nested": true, "hosts": {"n4": "refused"}})");
  hosts.settings_.tree_above = 4;
  hosts.settings_.slice = 3;
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) names.push_back("n" + std::to_string(i));
  hosts.start(names);
  hosts.run_until_all_have_verdicts(names.size());
  CHECK(hosts.refused.size() == 1);
  CHECK(hosts.joined.size() == 8);
  CHECK(!hosts.fan_out().via(5));
  CHECK(hosts.fan_out().via(1) == 0);
  hosts.end();
}

TEST_CASE("what is reached through a host whose connection breaks is gone with it") {
  Hosts hosts(R"({"nested": true, "hosts": {"n0": "drop"}})");
  hosts.settings_.tree_above = 2;
  hosts.settings_.slice = 2;
  hosts.start({"n0", "n1", "n2"});
  hosts.run_until_all_have_verdicts(3);
  hosts.touch("drop-n0");
  hosts.run_until([&] { return hosts.gone.size() == 3; });
  CHECK(hosts.gone[2] == "it was reached through n0, whose agent is gone");
}

TEST_CASE("where hosts have no keys for each other, every host is logged in from here") {
  Hosts hosts("{}");
  hosts.settings_.tree_above = 2;
  hosts.settings_.slice = 2;
  hosts.start({"n0", "n1", "n2", "n3"});
  hosts.run_until_all_have_verdicts(4);
  CHECK(hosts.joined.size() == 4);
  CHECK(!hosts.fan_out().via(1));
  CHECK(hosts.logins() == std::map<std::string, int>{{"n0", 1}, {"n1", 1}, {"n2", 1}, {"n3", 1}});
  hosts.end();
}

TEST_CASE(
    "files travel on from a host to those that it starts, and a host that they cannot come to is named") {
  tests::TempDir here;
  std::filesystem::create_directory(here.path() / "job");
  here.write("job/train.py", "print(1)\n");
  here.write("job/rows", std::string(3 << 20, 'r'));
  auto cargo = std::make_shared<ship::Cargo>();
  cargo->launcher = from_environment("FLEETRUN");
  cargo->root = "~/ship";
  cargo->list.prefix = "from/me@head";
  for (const char* part : {"from", "from/me@head"}) {
    cargo->list.items.push_back({ship::Kind::directory, part, 0700, 0, 0, 0, ""});
    cargo->sources.push_back("/");
  }
  add_tree(*cargo, here.file("job"), {});
  Hosts hosts(R"({"homes": true, "nested": true, "noise": "Welcome!\n"})");
  hosts.settings_.cargo = cargo;
  hosts.settings_.tree_above = 2;
  hosts.settings_.slice = 2;
  std::filesystem::create_directories(hosts.home("h3"));
  std::ofstream(hosts.home("h3") / "ship") << "not a directory";
  hosts.start({"h0", "h1", "h2", "h3", "h4", "h5", "h6"});
  hosts.run_until_all_have_verdicts(7);
  CHECK(hosts.joined.size() == 6);
  REQUIRE(hosts.refused.contains(3));
  CHECK(hosts.refused[3].reason.starts_with("fleetrun cannot be put there: mkdir: "));
  for (const char* name : {"h0", "h1", "h2", "h4", "h5", "h6"}) {
    const auto place = hosts.home(name) / "ship/from/me@head" / here.file("job").substr(1);
    CHECK(std::filesystem::file_size(place / "rows") == 3 << 20);
    CHECK(std::filesystem::file_size(place / "train.py") == 9);
  }
  CHECK(hosts.fan_out().via(1) == 0);
  hosts.end();
}
