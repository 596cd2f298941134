#include "launcher/config/make_job_config.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Options options(std::map<std::string, std::string, std::less<>> values) {
  Options result;
  result.values = std::move(values);
  result.script = "train.py";
  return result;
}

std::string refusal(const Options& wanted, const Environ& environ = {}) {
  try {
    make_job_config(wanted, environ);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string listed(const JobConfig& config, const std::string& key) {
  for (const ListedSetting& setting : config.listing) {
    if (setting.key == key) return setting.value;
  }
  return "not listed";
}

}  // namespace

TEST_CASE("sentinel is one of three words, from the flag or the environment") {
  CHECK_FALSE(make_job_config(options({}), {}).sentinel);
  CHECK(make_job_config(options({{"sentinel", "every"}}), {}).sentinel == "every");
  CHECK(make_job_config(options({}), {{"FLEETRUN_SENTINEL", "off"}}).sentinel == "off");
  CHECK(refusal(options({{"sentinel", "never"}})).find("--sentinel is 'never'") != std::string::npos);
}

TEST_CASE("the page listens at a port of this host alone, or where it is told to") {
  CHECK_FALSE(make_job_config(options({}), {}).ui);
  CHECK(make_job_config(options({{"ui", "0"}}), {}).ui == Endpoint{"127.0.0.1", 0});
  CHECK(make_job_config(options({{"ui", "8080"}}), {}).ui == Endpoint{"127.0.0.1", 8080});
  CHECK(make_job_config(options({{"ui", "10.0.0.1:8080"}}), {}).ui == Endpoint{"10.0.0.1", 8080});
  CHECK(make_job_config(options({{"ui", "[::1]:0"}}), {}).ui == Endpoint{"::1", 0});
  for (const char* text : {"", "x", "-1", "65536", "10.0.0.1", ":8080", "10.0.0.1:", "::1:80"}) {
    CAPTURE(text);
    CHECK(refusal(options({{"ui", text}})) != "accepted");
  }
  CHECK(refusal(options({{"ui", "here"}})).find("--ui is 'here': a port or ADDRESS:PORT is needed") == 0);
}

TEST_CASE("bad_line is fail or skip:N, from the flag or the environment") {
  CHECK_FALSE(make_job_config(options({}), {}).bad_line);
  CHECK(make_job_config(options({{"bad_line", "skip:12"}}), {}).bad_line == "skip:12");
  CHECK(make_job_config(options({{"bad_line", "fail"}}), {}).bad_line == "fail");
  CHECK(make_job_config(options({}), {{"FLEETRUN_BAD_LINE", "skip:3"}}).bad_line == "skip:3");
  for (const char* text : {"", "skip", "skip:0", "skip:-1", "skip:x", "drop"}) {
    CAPTURE(text);
    const std::string what = refusal(options({{"bad_line", text}}));
    CHECK(what.find("--bad_line") != std::string::npos);
    CHECK(what.find("fail or skip:N with N above 0 is wanted") != std::string::npos);
  }
}

TEST_CASE("the login of an etcd is not listed") {
  const JobConfig config =
      make_job_config(options({{"nnodes", "2"}, {"master", "etcd://root:hidden@h"}}), {});
  CHECK(listed(config, "master") == "etcd://h");
  CHECK(config.rendezvous.etcd == "root:hidden@h");
}

TEST_CASE("with nothing but a script it is a collective job with Paddle's defaults") {
  const JobConfig config = make_job_config(options({}), {});
  CHECK(config.mode == Mode::collective);
  CHECK(config.job_id == "default");
  CHECK(config.log_dir == "log");
  CHECK(config.host == "127.0.0.1");
  CHECK_FALSE(config.start_port);
  CHECK(config.ready_timeout == std::chrono::seconds(30));
  CHECK(config.grace.of("trainer") == std::chrono::seconds(30));
  CHECK(config.script_kind == ScriptKind::by_name);
  CHECK(config.show == Show());
  CHECK_FALSE(config.max_restart);
  CHECK(config.notes.empty());
  CHECK(listed(config, "run_mode") == "collective");
  CHECK(listed(config, "server_num") == "None");
  CHECK(listed(config, "servers") == "");
  const auto paddles = std::count_if(settings().begin(), settings().end(),
                                     [](const Setting& row) { return row.from == From::paddle; });
  CHECK(config.listing.size() == static_cast<std::size_t>(paddles) + 2);
}

TEST_CASE("servers or trainers make it a ps job, whatever run_mode says, with a note") {
  for (const char* key : {"server_num", "trainer_num"}) {
    const JobConfig config = make_job_config(options({{key, "2"}}), {});
    CHECK(config.mode == Mode::ps);
    CHECK(listed(config, "run_mode") == "ps");
  }
  CHECK(make_job_config(options({{"servers", "127.0.0.1:1"}}), {}).mode == Mode::ps);
  CHECK(make_job_config(options({{"run_mode", "ps"}}), {}).mode == Mode::ps);
  const JobConfig config = make_job_config(options({{"run_mode", "collective"}, {"server_num", "1"}}), {});
  CHECK(config.mode == Mode::ps);
  CHECK(config.notes ==
        std::vector<std::string>{"run_mode is ps, not collective, because --server_num is given"});
  CHECK(config.server_num == 1);
}

TEST_CASE("servers may move between as many processes as there are servers, on one host") {
  const JobConfig config = make_job_config(options({{"server_num", "2:5"}}), {});
  CHECK(config.mode == Mode::ps);
  CHECK(config.server_num == 2);
  CHECK(config.most_servers == 5);
  CHECK(config.max_restart == 3);
  CHECK(config.restart.at("trainer") == RestartScope::nobody);
  CHECK_FALSE(make_job_config(options({{"server_num", "2"}}), {}).most_servers);
  const auto says = [](std::map<std::string, std::string, std::less<>> values) {
    return refusal(options(std::move(values)));
  };
  CHECK(says({{"server_num", "5:2"}}) ==
        "--server_num is '5:2': the second number is the most there may be, and the first the number at the "
        "start");
  CHECK(says({{"server_num", "0:2"}}) == "--server_num is '0': a whole number from 1 to 64 is needed");
  CHECK(says({{"server_num", "2:"}}) == "--server_num is '': a whole number from 2 to 64 is needed");
  CHECK(make_job_config(options({{"server_num", "2:5"}, {"ps_replicas", "1"}}), {}).ps_replicas == 1);
  CHECK(says({{"server_num", "2:5"}, {"nnodes", "2"}, {"master", "10.0.0.1:6768"}}) ==
        "--server_num is '2:5': the job is on several hosts, and servers move between the processes of one");
}

TEST_CASE("a flag wins over the environment, and says so where the two disagree") {
  const Environ environ = {{"PADDLE_SERVER_NUM", "3"}, {"PADDLE_JOB_ID", "ctr"}, {"PADDLE_LOG_DIR", ""}};
  const JobConfig config = make_job_config(options({{"server_num", "2"}, {"job_id", "ctr"}}), environ);
  CHECK(config.server_num == 2);
  CHECK(config.log_dir == "log");
  CHECK(config.notes ==
        std::vector<std::string>{"--server_num 2 is used, not PADDLE_SERVER_NUM=3 from the environment"});
  CHECK(make_job_config(options({}), environ).server_num == 3);
}

TEST_CASE("a job that a process of a job starts is one of its own") {
  const Environ environ = {
      {"FLEETRUN_POD", "pod"},       {"FLEETRUN_ROLE", "trainer"}, {"FLEETRUN_RANK", "3"},
      {"FLEETRUN_LOG_DIR", "/logs"}, {"PADDLE_LOG_DIR", "/logs"},  {"PADDLE_MASTER", "10.0.0.1:6768"},
      {"PADDLE_NNODES", "2"},        {"POD_IP", "10.0.0.2"},       {"PADDLE_NPROC_PER_NODE", "4"}};
  const JobConfig config = make_job_config(options({}), environ);
  CHECK(config.log_dir == "/logs/trainer.3");
  CHECK(config.rendezvous.kind == Rendezvous::Kind::none);
  CHECK(config.host == "10.0.0.2");
  CHECK(config.nproc_per_node == 4);
  CHECK(config.notes == std::vector<std::string>{"a process of another job starts this one: PADDLE_NNODES, "
                                                 "PADDLE_MASTER are of that job, and set nothing here; give "
                                                 "flags"});
  const JobConfig chosen = make_job_config(options({{"log_dir", "mine"}}), environ);
  CHECK(chosen.log_dir == "mine");
  CHECK(chosen.notes == config.notes);
}

TEST_CASE("a mapping of ranks has no effect, and says so") {
  for (const char* name : {"rank_mapping_path", "cluster_topo_path"}) {
    CHECK(make_job_config(options({{name, "ranks.json"}}), {}).notes ==
          std::vector<std::string>{"--" + std::string(name) +
                                   " has no effect: ranks follow --rank and the order of the hosts"});
  }
}

TEST_CASE("--tls has no effect, and says so") {
  const JobConfig config = make_job_config(options({{"tls", "True"}}), {});
  CHECK(config.notes ==
        std::vector<std::string>{"--tls has no effect: what crosses hosts is encrypted without it"});
  CHECK(make_job_config(options({{"tls", "False"}}), {}).notes.empty());
}

TEST_CASE("POD_IP counts only when it looks like an address, as with Paddle") {
  CHECK(make_job_config(options({}), {{"POD_IP", "10.1.2.3"}}).host == "10.1.2.3");
  CHECK(make_job_config(options({}), {{"POD_IP", "pod"}}).host == "127.0.0.1");
}

TEST_CASE("a list of hosts where one address belongs is met with --hosts") {
  for (const char* flag : {"host", "master_addr"}) {
    CHECK(refusal(options({{flag, "h1,h2"}})) ==
          "--" + std::string(flag) + " is 'h1,h2': the address of one host is needed");
  }
  try {
    make_job_config(options({{"host", "h1:2,h2:2"}}), {});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.hint() == "--hosts takes a list of hosts");
  }
}

TEST_CASE("errors are of the kind of where the value came from, and name it as the user wrote it") {
  Options wrong = options({{"trainer_num", "x"}});
  wrong.spelled["trainer_num"] = "--worker-num";
  CHECK(refusal(wrong) == "--worker-num is 'x': a whole number from 1 to 4096 is needed");
  try {
    make_job_config(options({}), {{"PADDLE_GLOO_PORT", "0"}});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) == "PADDLE_GLOO_PORT is '0': a whole number from 1 to 65535 is needed");
  }
}

TEST_CASE("where hosts meet, and how many") {
  const auto rendezvous = [](const Options& given, const Environ& environ = {}) {
    return make_job_config(given, environ).rendezvous;
  };
  using Kind = Rendezvous::Kind;
  CHECK(rendezvous(options({})).kind == Kind::none);
  CHECK(rendezvous(options({{"nnodes", "1"}, {"rank", "0"}, {"master", "http://10.0.0.1:8000"}})).kind ==
        Kind::none);

  const Rendezvous two =
      rendezvous(options({{"nnodes", "2"}, {"master", "http://10.0.0.1:8000"}, {"rank", "1"}}));
  CHECK(two.kind == Kind::master);
  CHECK(two.master == Endpoint{"10.0.0.1", 8000});
  CHECK(two.nodes == NodeCount{2, 2, 1});
  CHECK(two.node_rank == 1);
  CHECK(!two.elastic);
  const Rendezvous range = rendezvous(options({{"nnodes", "2:16:2"}, {"master", "etcd://h:2379"}}));
  CHECK(range.kind == Kind::etcd);
  CHECK(range.etcd == "h:2379");
  CHECK(range.nodes == NodeCount{2, 16, 2});
  CHECK(range.elastic);

  const Rendezvous c10d =
      rendezvous(options({{"nnodes", "2"}, {"rdzv_backend", "c10d"}, {"rdzv_endpoint", "[::1]:29500"}}));
  CHECK(c10d.master == Endpoint{"::1", 29500});
  CHECK(rendezvous(options({{"nnodes", "2"}, {"rdzv_endpoint", "host-1"}})).master ==
        Endpoint{"host-1", 29400});
  const Rendezvous fixed =
      rendezvous(options({{"nnodes", "2"}, {"master_addr", "10.0.0.1"}, {"master_port", "1234"}}));
  CHECK(fixed.master_by_torchrun);
  CHECK(fixed.master == Endpoint{"10.0.0.1", 1235});

  const Rendezvous ips = rendezvous(options({{"ips", "10.0.0.1,10.0.0.2"}}));
  CHECK(ips.master == Endpoint{"10.0.0.1", 6768});
  CHECK(ips.nodes == NodeCount{2, 2, 1});
  const Rendezvous inherited =
      rendezvous(options({}), {{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:1,10.0.0.2:1,10.0.0.2:2"}});
  CHECK(inherited.master == Endpoint{"10.0.0.1", 1});
  CHECK(inherited.nodes == NodeCount{2, 2, 1});
  CHECK(rendezvous(options({}), {{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:1,10.0.0.1:2"}}).kind == Kind::none);
}

TEST_CASE("files travel to a list of hosts, and say so where there is none") {
  const JobConfig config =
      make_job_config(options({{"hosts", "a"}, {"ship", "script"}, {"ship_exclude", "data,*.ckpt"}}), {});
  CHECK(config.host_list.ship == "script");
  CHECK(config.host_list.collect_logs);
  CHECK(config.host_list.ship_exclude == std::vector<std::string>{"data", "*.ckpt"});
  CHECK_FALSE(make_job_config(options({{"hosts", "a"}, {"ship", "script"}, {"collect_logs", "False"}}), {})
                  .host_list.collect_logs);
  CHECK_FALSE(make_job_config(options({{"hosts", "a"}}), {}).host_list.ship);
  CHECK(refusal(options({{"ship", "script"}})) ==
        "--ship is 'script': there is no list of hosts that it could apply to");
  CHECK(refusal(options({{"hosts", "a"}, {"ship_to", "/x"}})) == "--ship_to is '/x': nothing travels");
  CHECK(refusal(options({{"hosts", "a"}, {"ship_remove", "True"}})) ==
        "--ship_remove is 'True': nothing travels");
  CHECK(refusal(options({{"hosts", "a"}, {"ship", "script"}, {"chdir", "/x"}})) ==
        "--chdir is '/x': --ship says where fleetrun and the files lie on the hosts");
}

TEST_CASE("what does not fit about hosts is refused by name") {
  for (const char* wrong : {"2:1", "0", "1:2:3", "1:", ":2", "-1:2", "4/", "65537", "1:2:3:4"})
    CHECK(refusal(options({{"nnodes", wrong}})).starts_with("--nnodes is '"));
  CHECK(refusal(options({{"nnodes", "2"}, {"master", "etcd://h/v3"}})) ==
        "'etcd://h/v3' is not the address of an etcd: it has a path");
  CHECK(refusal(options({{"nnodes", "3:3:2"}})) == "--nnodes is '3:3:2': no multiple of 2 is in the range");
  CHECK(refusal(options({{"nnodes", "2"}, {"rank", "2"}})) == "--rank is '2': the job has 2 hosts");
  CHECK(refusal(options({{"ips", "10.0.0.1,10.0.0.2"}, {"nnodes", "3"}})) ==
        "--ips is '10.0.0.1,10.0.0.2': these are 2 hosts, and --nnodes is '3'");
  CHECK(refusal(options({{"hosts", "a"}, {"hostfile", "b"}})) == "--hostfile is 'b': --hosts is given too");
  CHECK(refusal(options({{"include", "a"}})) ==
        "--include is 'a': there is no list of hosts that it could apply to");
  CHECK(refusal(options({{"insecure", "True"}, {"secret_file", "s"}})) ==
        "--secret_file is 's': --insecure is given too, and nothing is proven then");
}

TEST_CASE("who fails is replaced in collective jobs of one host") {
  const auto replace = [](std::map<std::string, std::string, std::less<>> more) {
    more["on_failure"] = "replace";
    return options(std::move(more));
  };
  CHECK_FALSE(make_job_config(options({}), {}).replaces_failed);
  CHECK(make_job_config(replace({}), {}).replaces_failed);
  CHECK(make_job_config(replace({}), {}).spares == 1);
  CHECK(make_job_config(replace({{"spares", "0"}}), {}).spares == 0);
  CHECK(make_job_config(replace({{"spares", "3"}}), {}).spares == 3);
  CHECK(refusal(options({{"on_failure", "x"}})).starts_with("--on_failure is 'x': "));
  CHECK(refusal(options({{"spares", "2"}})) ==
        "--spares is '2': nobody takes the place of a trainer that fails");
  CHECK(refusal(replace({{"server_num", "1"}})) ==
        "--on_failure is 'replace': a ps job has no trainers that can be replaced");
  const std::string hosts =
      "--on_failure is 'replace': the job is on several hosts, and processes take each other's places on one";
  CHECK(refusal(replace({{"nnodes", "2"}, {"master", "10.0.0.1:7000"}})) == hosts);
  CHECK(refusal(replace({{"hosts", "a,b"}})) == hosts);
  CHECK(refusal(replace({{"restart", "trainer=group"}})) ==
        "--restart is 'trainer=group': --on_failure=replace says who is started again");
}

TEST_CASE("every setting is in the table once, and every default is accepted") {
  std::vector<std::string> names, variables;
  const auto add = [](std::vector<std::string>& seen, const std::string& name) {
    CAPTURE(name);
    CHECK(std::find(seen.begin(), seen.end(), name) == seen.end());
    seen.push_back(name);
  };
  for (const Setting& row : settings()) {
    add(names, std::string(row.key));
    for (const std::string& alias : split(row.aliases, ' ')) add(names, alias);
    for (const std::string& variable : split(row.variables, ' ')) add(variables, variable);
    CHECK_FALSE(row.help.empty());
    CHECK((row.kind == Kind::value) == row.implied.empty());
    CHECK((row.kind == Kind::flag) == (row.initial == "False" && row.value.empty()));
    if (row.initial != "None" && !row.initial.empty()) {
      CAPTURE(row.key);
      CHECK(refusal(options({{std::string(row.key), std::string(row.initial)}})) == "accepted");
    }
  }
}

TEST_CASE("what fleetrun cannot do is refused by its flag or variable, before anything else") {
  Options wanted = options({{"heter_workers", "127.0.0.1:1"}});
  wanted.spelled["heter_workers"] = "--heter_worker_num";
  wanted.script.reset();
  CHECK(refusal(wanted) ==
        "--heter_worker_num is '127.0.0.1:1': trainers on different kinds of machines (heter) are not "
        "supported");
  CHECK(refusal(options({{"auto_tuner_json", "x"}})) == "--auto_tuner_json is 'x': fleetrun has no tuner");
}

TEST_CASE("the file of Paddle's tuner is handed to the script, and nothing is tuned") {
  const JobConfig config = make_job_config(options({{"auto_parallel_config", "plan.json"}}), {});
  CHECK(config.auto_parallel == "plan.json");
  CHECK(join(config.notes, "|") ==
        "--auto_parallel_config: fleetrun has no tuner, so the script runs with plan.json as it is");
}

TEST_CASE("flags of a collective job contradict those of a ps job where their numbers differ") {
  CHECK(refusal(options({{"server_num", "1"}, {"nproc_per_node", "4"}})) ==
        "--nproc_per_node is '4': --trainer_num, which is 1, says how many trainers there are in a ps job, "
        "which --server_num makes it");
  CHECK(refusal(options({{"server_num", "1"}, {"trainer_num", "2"}, {"nproc_per_node", "auto"}})) ==
        "--nproc_per_node is 'auto': --trainer_num, which is 2, says how many trainers there are in a ps "
        "job, which --server_num makes it");
  CHECK(refusal(options({{"servers", "a:1"}, {"trainers", "a:2,b:2,c:2"}, {"nproc_per_node", "2"}})) ==
        "--nproc_per_node is '2': --trainers says how many trainers there are in a ps job, which --servers "
        "makes it");
  Options gpus = options({{"server_num", "1"}, {"devices", "0,1"}});
  gpus.spelled["devices"] = "--gpus";
  CHECK(refusal(gpus) ==
        "--gpus is '0,1': devices are for the trainers of collective jobs; all are visible in a ps job, "
        "which --server_num makes it");
  CHECK(refusal(options({{"server_num", "1"}, {"nproc_per_node", "1"}})) == "accepted");
  CHECK(refusal(options({{"trainer_num", "2"}, {"nproc_per_node", "2"}})) == "accepted");
  CHECK(refusal(options({{"servers", "a:1"}, {"trainers", "a:2,a:3,b:2,b:3"}, {"nproc_per_node", "2"}})) ==
        "accepted");
}

TEST_CASE("variables that were meant for a collective job are not used in a ps job, which is said") {
  const Environ variables = {{"PADDLE_NPROC_PER_NODE", "4"}, {"PADDLE_DEVICES", "0,1"}};
  const JobConfig config = make_job_config(options({{"server_num", "1"}}), variables);
  CHECK(join(config.notes, "|") ==
        "PADDLE_NPROC_PER_NODE=4 is not used: --trainer_num, which is 1, says how many trainers there are in "
        "a ps job, which --server_num makes it|"
        "PADDLE_DEVICES=0,1 is not used: devices are for the trainers of collective jobs; all are visible in "
        "a ps job, which --server_num makes it");
}

TEST_CASE("a job gives up early only where it is asked to") {
  CHECK(restart_rules(make_job_config(options({{"max_restart", "9"}}), {})).same_failures == 0);
  CHECK(restart_rules(make_job_config(options({{"same_failure_limit", "3"}}), {})).same_failures == 3);
  CHECK(refusal(options({{"same_failure_limit", "1"}})) ==
        "--same_failure_limit is '1': one failure is not the same as another");
}

TEST_CASE("a variable of torchrun's counts where none of Paddle's is set, and a flag before both") {
  CHECK(make_job_config(options({}), {{"PET_NPROC_PER_NODE", "3"}}).nproc_per_node == 3);
  CHECK(refusal(options({{"nproc_per_node", "abc"}})) ==
        "--nproc_per_node is 'abc': a whole number from 1, auto, cpu or gpu is needed");
  const Environ both = {{"PET_NPROC_PER_NODE", "3"}, {"PADDLE_NPROC_PER_NODE", "2"}};
  CHECK(make_job_config(options({}), both).nproc_per_node == 2);
  CHECK(make_job_config(options({{"nproc_per_node", "4"}}), both).nproc_per_node == 4);
  CHECK(make_job_config(options({{"nproc_per_node", "auto"}}), {}).trainers_by == TrainersBy::automatic);
  CHECK(make_job_config(options({}), {{"PET_NPROC_PER_NODE", "gpu"}}).trainers_by == TrainersBy::gpu);
  CHECK(make_job_config(options({}), {{"PET_STANDALONE", "1"}, {"PET_NO_PYTHON", "1"}}).script_kind ==
        ScriptKind::direct);
}

TEST_CASE("nothing is restarted unless the user asks for it, in one of the ways there are") {
  const auto restarts = [](std::map<std::string, std::string, std::less<>> values) {
    return make_job_config(options(std::move(values)), {}).max_restart;
  };
  CHECK_FALSE(restarts({}));
  CHECK_FALSE(restarts({{"elastic_level", "-1"}, {"restart", "trainer=never"}}));
  CHECK(restarts({{"max_restart", "0"}}) == 0);
  CHECK(restarts({{"max_restart", "5"}}) == 5);
  CHECK(restarts({{"elastic_level", "0"}}) == 3);
  CHECK(restarts({{"restart", "trainer=group"}}) == 3);
  CHECK(restarts({{"restart_budget", "oom=1"}}) == 3);
  CHECK(make_job_config(options({}), {{"PET_MAX_RESTARTS", "2"}}).max_restart == 2);
  CHECK(restarts({{"server_num", "2"}, {"ps_replicas", "1"}}) == 3);
  CHECK(make_job_config(options({{"server_num", "2"}, {"ps_replicas", "1"}}), {}).ps_replicas == 1);
  CHECK(refusal(options({{"server_num", "2"}, {"ps_replicas", "2"}})).find("--ps_replicas is '2'") == 0);
}

TEST_CASE("restarts are chosen by role and limited by cause") {
  const JobConfig config = make_job_config(options({{"server_num", "1"},
                                                    {"restart", "server=process,trainer=never"},
                                                    {"restart_budget", "oom=0,hang=2"},
                                                    {"restart_backoff", "0.5"}}),
                                           {});
  CHECK(config.restart.at("server") == RestartScope::process);
  CHECK(config.restart.at("trainer") == RestartScope::nobody);
  CHECK(config.restart_budget == RestartBudget{std::nullopt, 0, std::nullopt, 2});
  const RestartRules rules = restart_rules(config);
  CHECK(rules.budgets == std::array{3, 0, 3, 2, 0});
  CHECK(rules.backoff == std::chrono::milliseconds(500));
  CHECK_FALSE(restart_rules(make_job_config(options({}), {})).any());
  CHECK(restart_scope(config, "server", RestartScope::group) == RestartScope::process);
  CHECK(restart_scope(config, "reader", RestartScope::group) == RestartScope::group);
  CHECK(refusal(options({{"restart", "server=process"}})) ==
        "--restart is 'server=process': the job has no role 'server'");
  CHECK(refusal(options({{"restart", "trainer=always"}})) ==
        "--restart is 'always': there is no such choice");
  CHECK(refusal(options({{"restart", "trainer"}})) == "--restart is 'trainer': 'trainer' is not NAME=VALUE");
  CHECK(refusal(options({{"restart", "trainer=group,trainer=never"}})) ==
        "--restart is 'trainer=group,trainer=never': trainer is in the list twice");
  CHECK(refusal(options({{"restart_budget", "bug=1"}})) ==
        "--restart_budget is 'bug': there is no such choice");
}

TEST_CASE("grace may differ by role, and roles of a job file have any name") {
  const auto grace =
      make_job_config(options({{"server_num", "1"}, {"grace", "server=60,trainer=0.5"}}), {}).grace;
  CHECK(grace.of("server") == std::chrono::seconds(60));
  CHECK(grace.of("trainer") == std::chrono::milliseconds(500));
  CHECK(grace.of("other") == std::chrono::seconds(30));
  Options file = options({{"grace", "reader=5"}});
  CHECK(refusal(file) == "--grace is 'reader=5': the job has no role 'reader'");
  file.script = "job.toml";
  file.file = JobFile();
  CHECK(make_job_config(file, {}).grace.of("reader") == std::chrono::seconds(5));
  CHECK(refusal(options({{"timeout", "0"}})) == "--timeout is '0': a time above 0 is needed");
}

TEST_CASE("what is shown is chosen in our words or in torchrun's") {
  const auto show = [](std::map<std::string, std::string, std::less<>> values) {
    return make_job_config(options(std::move(values)), {}).show;
  };
  using Kind = launcher::Show::Kind;
  CHECK(show({{"show", "all"}}) == Show{Kind::all, {}, {}});
  CHECK(show({{"show", "fail"}}) == Show{Kind::failed, {}, {}});
  CHECK(show({{"show", "0,3-5"}}) == Show{Kind::chosen, {0, 3, 4, 5}, {}});
  CHECK(show({{"show", "server,1"}, {"server_num", "1"}}) == Show{Kind::chosen, {1}, {"server"}});
  CHECK(show({{"tee", "3"}}) == Show{Kind::all, {}, {}});
  CHECK(show({{"tee", "0:3,2:1,3:0"}}) == Show{Kind::chosen, {0, 2}, {}});
  CHECK(show({{"redirects", "3"}}) == Show{Kind::none, {}, {}});
  CHECK(show({{"redirects", "3"}, {"tee", "1"}}) == Show{Kind::all, {}, {}});
  CHECK(show({{"local_ranks_filter", "0,1"}}) == Show{Kind::chosen, {0, 1}, {}});
  CHECK(refusal(options({{"show", "server"}})) == "--show is 'server': the job has no role 'server'");
  CHECK(refusal(options({{"show", "3-1"}})) == "--show is '3-1': '3-1' is not a rank");
  CHECK(refusal(options({{"tee", "4"}})) == "--tee is '4': a number of streams is needed");
  CHECK(refusal(options({{"tee", "0:3,1"}})) == "--tee is '0:3,1': a rank is needed for every part");
}

TEST_CASE("sizes, signs of life, signals, containment and standard input are typed") {
  const JobConfig config = make_job_config(options({{"log_cap", "64M"},
                                                    {"log_through", "True"},
                                                    {"signal_map", "USR1=forward,USR2=TERM"},
                                                    {"require_containment", "pidns"},
                                                    {"numa_binding", "node"},
                                                    {"stdin", "2"}}),
                                           {});
  CHECK(config.log_cap == 64u << 20);
  CHECK(config.signal_map ==
        std::vector<std::pair<std::string, std::string>>{{"USR1", "forward"}, {"USR2", "TERM"}});
  CHECK(config.require_containment == Containment::pidns);
  CHECK(config.bind == Bind::numa);
  CHECK(config.standard_input == StandardInput{StandardInput::Kind::trainer, 2});
  for (const char* size : {"", "M", "0", "-1M", "64X", "1.5M", "64MB", "99999999999G"}) {
    CAPTURE(size);
    CHECK(refusal(options({{"log_cap", size}, {"log_through", "1"}})) ==
          "--log_cap is '" + std::string(size) + "': a size is needed");
  }
  CHECK(refusal(options({{"log_cap", "1M"}})) == "--log_cap is '1M': only a log with a writer can be capped");
  CHECK(refusal(options({{"module", "True"}, {"no_python", "True"}})) ==
        "--no_python is 'True': a module needs Python");
  CHECK(refusal(options({{"detach", "True"}, {"stdin", "0"}})) ==
        "--stdin is '0': a detached job has no standard input");
  CHECK(make_job_config(options({{"pty", "True"}}), {}).pty);
  CHECK(refusal(options({{"detach", "True"}, {"pty", "True"}})) ==
        "--pty is 'True': a detached job has no terminal");
  CHECK(refusal(options({{"stdin", "none"}, {"pty", "True"}})) ==
        "--pty is 'True': --stdin=none leaves nobody for it");
}

TEST_CASE("hangs are looked for when a timeout says so, by the signs that are asked for") {
  CHECK(make_job_config(options({}), {}).hang == HangRules{});
  CHECK(make_job_config(options({{"hang_timeout", "2.5"}, {"hang_by", "log,cpu"}}), {}).hang ==
        HangRules{std::chrono::milliseconds(2500), {.heartbeat = false, .log = true, .cpu = true}});
  CHECK(refusal(options({{"hang_timeout", "soon"}})) ==
        "--hang_timeout is 'soon': a number of seconds is needed");
  CHECK(refusal(options({{"hang_timeout", "5"}, {"hang_by", "logs"}})) ==
        "--hang_by is 'logs': a list of heartbeat, log and cpu is needed");
  CHECK(refusal(options({{"hang_by", "log"}})) == "--hang_by is 'log': the hang watch is off");
}

TEST_CASE("failures on purpose are read with the other flags") {
  const JobConfig config =
      make_job_config(options({{"inject", "kill rank=1 at=2s"}, {"inject_seed", "7"}}), {});
  CHECK(config.inject == parse_injections("kill rank=1 at=2s"));
  CHECK(config.inject_seed == 7);
  CHECK(refusal(options({{"inject", "kil rank=1"}})) == "--inject 'kil rank=1': there is no action 'kil'");
  CHECK(refusal(options({{"inject_seed", "-1"}})) ==
        "--inject_seed is '-1': a whole number from 0 to 9223372036854775807 is needed");
}
