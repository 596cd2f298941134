#include "launcher/config/read_job_file.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

constexpr char kToml[] = R"(max_restart = 2
log-dir = "out"
grace = {server = 5, trainer = "500ms"}
show = ["server", 0]

[[roles]]
name = "server"
kind = "server"
count = 2
command = ["./serve", "--fast", 3]
stop_signal = "INT"

[[roles]]
name = "worker"
kind = "trainer"
script = "train.py"
args = ["--lr", 0.5]
devices = [0, "GPU-1"]
restart = "group"
grace = 1.5
after = ["server"]
environment = {A = "x y", B = 7}
cwd = "work"

[[roles]]
name = "watcher"
command = ["tail"]
serves = true
ready = {log = "^go$"}
)";

constexpr char kJson[] = R"({"max_restart": 2, "log-dir": "out", "grace": {"server": 5, "trainer": "500ms"},
 "show": ["server", 0],
 "roles": [
  {"name": "server", "kind": "server", "count": 2, "command": ["./serve", "--fast", 3], "stop_signal": "INT"},
  {"name": "worker", "kind": "trainer", "script": "train.py", "args": ["--lr", 0.5], "devices": [0, "GPU-1"],
   "restart": "group", "grace": 1.5, "after": ["server"], "environment": {"A": "x y", "B": 7}, "cwd": "work"},
  {"name": "watcher", "command": ["tail"], "serves": true, "ready": {"log": "^go$"}}]})";

Error error_of(const std::string& text, const std::string& name) {
  try {
    parse_job_file(text, name);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::usage, "no error");
}

std::string what(const std::string& text, const std::string& name = "job.json") {
  return error_of(text, name).what();
}

std::string role(const std::string& fields) {
  return R"({"roles": [{"name": "a", )" + fields + "}]}";
}

}  // namespace

TEST_CASE("a job file says the same in TOML and in JSON") {
  for (const bool toml : {true, false}) {
    const JobFile file = toml ? parse_job_file(kToml, "job.toml") : parse_job_file(kJson, "job.json");
    CHECK(file.settings.at("max_restart").text == "2");
    CHECK(file.settings.at("log_dir").text == "out");
    CHECK(file.settings.at("log_dir").where ==
          (toml ? "log-dir (job.toml:2)" : "log-dir (job.json: log-dir)"));
    CHECK(file.settings.at("grace").text == "server=5,trainer=500ms");
    CHECK(file.settings.at("show").text == "server,0");
    REQUIRE(file.roles.size() == 3);
    const JobFileRole& server = file.roles[0];
    CHECK(server.kind == RoleKind::server);
    CHECK(server.count == 2);
    CHECK(server.is_command);
    CHECK(server.script == "./serve");
    CHECK(server.args == std::vector<std::string>{"--fast", "3"});
    CHECK(server.stop_signal == SIGINT);
    CHECK_FALSE(server.ready);
    const JobFileRole& worker = file.roles[1];
    CHECK(worker.kind == RoleKind::trainer);
    CHECK_FALSE(worker.count);
    CHECK_FALSE(worker.is_command);
    CHECK(worker.args == std::vector<std::string>{"--lr", "0.5"});
    CHECK(worker.devices == std::vector<std::string>{"0", "GPU-1"});
    CHECK(worker.restart == RestartScope::group);
    CHECK(worker.grace == 1500ms);
    CHECK(worker.after == std::vector<std::string>{"server"});
    CHECK(worker.environment.at("A") == "x y");
    CHECK(worker.environment.at("B") == "7");
    CHECK(worker.cwd == "work");
    CHECK(worker.where == (toml ? "job.toml:13" : "job.json: roles[1]"));
    CHECK(file.roles[2].serves == true);
    CHECK(file.roles[2].ready == Readiness{Readiness::Kind::log_line, "^go$"});
  }
}

TEST_CASE("a role is ready in one of several ways") {
  const auto ready = [](const std::string& text) {
    return *parse_job_file(role(R"("script": "x", "ready": )" + text), "job.json").roles[0].ready;
  };
  CHECK(ready(R"({"port": true})") == Readiness{Readiness::Kind::port, ""});
  CHECK(ready(R"({"port": 80})") == Readiness{Readiness::Kind::port, "127.0.0.1:80"});
  CHECK(ready(R"({"port": "[::1]:80"})") == Readiness{Readiness::Kind::port, "[::1]:80"});
  CHECK(ready(R"({"descriptor": true})") == Readiness{Readiness::Kind::descriptor, ""});
  CHECK(what(role(R"("script": "x", "ready": {}})")).find("this is not JSON") != std::string::npos);
  CHECK(what(role(R"("script": "x", "ready": {})")) ==
        "job.json: roles[0].ready: a role is ready in one way");
  CHECK(what(role(R"("script": "x", "ready": {"log": "("})")).find("'(' is not a regular expression") !=
        std::string::npos);
  CHECK(what(role(R"("script": "x", "ready": {"prot": true})")) ==
        "job.json: roles[0].ready.prot: unknown key 'prot' of ready");
  CHECK(error_of(role(R"("script": "x", "ready": {"prot": true})"), "job.json").hint() ==
        "did you mean port?");
}

TEST_CASE("unknown keys name the nearest one and their place") {
  Error error = error_of("log_dir = 'x'\n\n[[roles]]\nname = 'a'\nscript = 'x'\ncuont = 3\n", "my/job.toml");
  CHECK(std::string(error.what()) == "my/job.toml:6: unknown key 'cuont' of role 'a'");
  CHECK(error.hint() == "did you mean count?");
  error = error_of(R"({"max_restarst": 3, "roles": []})", "job.json");
  CHECK(std::string(error.what()) == "job.json: max_restarst: unknown key 'max_restarst'");
  CHECK(error.hint().starts_with("did you mean max_restart"));
}

TEST_CASE("what roles say has no place beside them") {
  CHECK(what(R"({"trainer_num": 3, "roles": []})") ==
        "job.json: trainer_num: trainer_num has no place here: the roles say that");
  CHECK(what(R"({"gpus": [0], "roles": []})") ==
        "job.json: gpus: gpus has no place here: the roles say that");
  CHECK(what(R"({"max_restart": 1, "max-restarts": 2, "roles": []})") ==
        "job.json: max-restarts: max_restart is there twice, under two names");
}

TEST_CASE("faults of the languages are told with their place") {
  CHECK(what("[[roles]]\nname = \n", "job.toml").starts_with("job.toml:2: this is not TOML: "));
  CHECK(what("{\n\"roles\": [,]}").starts_with("job.json: this is not JSON: line 2, column 11"));
  CHECK(what("").starts_with("job.json: this is not JSON: "));
  CHECK(what("{\"roles\": 6e666}").starts_with("job.json: this is not JSON: "));
  CHECK(what("[1]") == "job.json: an object is needed here");
  CHECK(what(R"({"roles": [], "roles": []})") == "job.json: the key 'roles' is there twice in one object");
  CHECK(what("when = 2024-01-01\n", "job.toml") == "job.toml:1: dates and times have no meaning here");
  CHECK(what(std::string(100'000, '[')).starts_with("job.json: "));
  CHECK(what("{\"a\": " + std::string(10'000, '[') + std::string(10'000, ']') + "}") ==
        "job.json: there are more than 32 levels");
  CHECK(what(std::string(100'000, '[') + "\n", "job.toml").ends_with("this is not TOML"));
  CHECK(what("{\"a\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}") ==
        "job.json: there are more than 32 levels");
}

TEST_CASE("a key of many tables, and a table of many keys, end soon") {
  std::string dots, keys = "{";
  for (int i = 0; i < 200'000; ++i) dots += "a.";
  for (int i = 0; i < 100'000; ++i) keys += "\"k" + std::to_string(i) + "\": 1, ";
  const std::string deep = dots + "a = 1\n";
  for (const std::string& text :
       {deep, "[" + dots + "a]\n", "x = {" + dots + "a = 1}\n",
        "x = " + std::string(3, '\'') + "\n" + std::string(3, '\'') + "\n" + deep, "x = \"\\\"#\"\n" + deep})
    CHECK(what(text, "job.toml") == "job.toml: there are more than 32 levels");
  CHECK(what(keys + "\"last\": 1}") == "job.json: one object has more than 1024 keys");
  std::string numbers = "x = [", words = "x = \"\"\"";
  for (int i = 0; i < 100; ++i) numbers += "1.5, ", words += "a.b 'c.d' \"e.f ";
  for (const std::string& text : {numbers + "]\n", words + "\"\"\"\n", "# " + dots + "\nx = 1\n"})
    CHECK(what(text, "job.toml").find("levels") == std::string::npos);
}

TEST_CASE("roles are checked") {
  CHECK(what(R"({"roles": []})") == "job.json: roles: there are no roles");
  CHECK(what("{}") == "job.json: there are no roles");
  CHECK(what(R"({"roles": 3})") == "job.json: roles: a list of roles is needed here");
  CHECK(what(R"({"roles": [{"script": "x"}]})") == "job.json: roles[0]: a role has no name");
  CHECK(what(R"({"roles": [{"name": "../x", "script": "x"}]})") ==
        "job.json: roles[0].name: the name of a role is '../x'");
  CHECK(what(R"({"roles": [{"name": "a"}]})") == "job.json: roles[0]: role 'a' has nothing to run");
  CHECK(what(role(R"("script": "x", "command": ["y"])")) ==
        "job.json: roles[0].script: role 'a' has a script and a command");
  CHECK(what(role(R"("command": [])")) == "job.json: roles[0].command: a command names a program");
  CHECK(what(role(R"("script": "x", "count": 0)")) ==
        "job.json: roles[0].count: a whole number from 1 to 4096 is needed here");
  CHECK(what(role(R"("script": "x", "count": "2")")) ==
        "job.json: roles[0].count: a whole number from 1 to 4096 is needed here");
  CHECK(what(role(R"("script": "x", "restart": "always")")) ==
        "job.json: roles[0].restart: there is no such choice: 'always'");
  CHECK(what(role(R"("script": "x", "stop_signal": "NOPE")")) ==
        "job.json: roles[0].stop_signal: there is no such signal: 'NOPE'");
  CHECK(what(role(R"("script": "x", "environment": {"A=B": "x"})")) ==
        "job.json: roles[0].environment.A=B: 'A=B' is not a name of a variable");
  CHECK(what(role(R"("script": "x", "environment": {"A": true})")) ==
        "job.json: roles[0].environment.A: a text is needed here");
  CHECK(what(R"({"roles": [{"name": "a", "script": "x"}, {"name": "a", "script": "x"}]})") ==
        "job.json: roles[1]: two roles are called 'a'");
  CHECK(what(R"({"roles": [{"name": "server", "script": "x"}]})") ==
        "job.json: roles[0]: role 'server' is not of kind server");
}

TEST_CASE("a job file is read from disk, and one that is not there is refused") {
  const tests::TempDir directory;
  CHECK(read_job_file(directory.write("job.toml", kToml)).roles.size() == 3);
  CHECK_THROWS_AS(read_job_file(directory.file("none.json")), Error);
  CHECK_THROWS_AS(read_job_file(directory.path()), Error);
  CHECK(is_job_file("a/job.toml"));
  CHECK_FALSE(is_job_file("train.py"));
}
