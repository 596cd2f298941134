#include "launcher/config/torchrun_options.h"

#include <doctest/doctest.h>

#include "launcher/config/make_job_config.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

using Words = std::vector<std::string>;

TorchrunCommand command(Words words, const Environ& environ = {}) {
  words.push_back("train.py");
  return read_torchrun_command(words, environ);
}

JobConfig config(Words words, const Environ& environ = {}) {
  return make_job_config(command(std::move(words), environ).options, {});
}

std::string usage(const Words& words) {
  try {
    read_torchrun_command(words, {});
  } catch (const TorchrunUsage& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const Words& words, const Environ& environ = {}) {
  try {
    command(words, environ);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("torchrun's defaults: one process, no restarts, a run that is called none, nothing shown by us") {
  const TorchrunCommand plain = command({});
  CHECK(plain.run_id == "none");
  CHECK(plain.settings.prefix == "[${role_name}${local_rank}]:");
  const JobConfig job = config({});
  CHECK(job.nproc_per_node == 1);
  CHECK(job.max_restart == 0);
  CHECK(job.role_name == "default");
  CHECK(job.script_kind == ScriptKind::python);
  CHECK(job.rendezvous.kind == Rendezvous::Kind::none);
}

TEST_CASE("flags are written with dashes or underscores, abbreviated, and the last one counts") {
  CHECK(config({"--nproc-per-node=2"}).nproc_per_node == 2);
  CHECK(config({"--nproc_per_node", "3"}).nproc_per_node == 3);
  CHECK(config({"--nproc=4", "--nproc_per-node=5"}).nproc_per_node == 5);
  CHECK(config({"--max-restarts=2", "--role", "w"}).role_name == "w");
  CHECK(usage({"--n=2", "train.py"}) ==
        "ambiguous option: --n could match --nnodes, --nproc-per-node, --no-python, --node-rank, "
        "--numa-binding");
  CHECK(usage({"--gpus=2", "train.py"}) == "unrecognized arguments: --gpus");
}

TEST_CASE("what follows the script is the script's") {
  const TorchrunCommand job = read_torchrun_command({"-m", "pkg.train", "--tee", "3", "-m"}, {});
  CHECK(job.options.script == "pkg.train");
  CHECK(job.options.script_args == Words{"--tee", "3", "-m"});
  CHECK(make_job_config(job.options, {}).script_kind == ScriptKind::module);
  CHECK(config({"--no-python"}).script_kind == ScriptKind::direct);
  CHECK(config({"--no-python", "--run-path"}).script_kind == ScriptKind::python);
  const auto arguments = [](const Words& words) {
    return read_torchrun_command(words, {}).options.script_args;
  };
  CHECK(arguments({"train.py", "--", "-m", "--"}) == Words{"-m", "--"});
  CHECK(arguments({"train.py", "-m", "--", "a"}) == Words{"-m", "--", "a"});
  CHECK(arguments({"--", "train.py", "--", "-m"}) == Words{"--", "-m"});
  CHECK(arguments({"train.py", "--"}).empty());
}

TEST_CASE("variables PET_ are defaults, and no others count") {
  const Environ environ = {{"PET_NPROC_PER_NODE", "4"},
                           {"PET_NO_PYTHON", "1"},
                           {"PET_MODULE", "0"},
                           {"PADDLE_NPROC_PER_NODE", "7"}};
  CHECK(config({}, environ).nproc_per_node == 4);
  CHECK(config({}, environ).script_kind == ScriptKind::direct);
  CHECK(config({"--nproc-per-node=2"}, environ).nproc_per_node == 2);
}

TEST_CASE("streams are chosen for all or by local rank") {
  const TorchrunSettings all = command({"-r3", "-t", "1", "--local-ranks-filter=0,2"}).settings;
  CHECK(all.redirects.of(5) == Streams{true, true});
  CHECK(all.tee.of(0) == Streams{true, false});
  CHECK(all.shown == std::set<int>{0, 2});
  const TorchrunSettings some = command({"--redirects=0:3,1:2"}).settings;
  CHECK(some.redirects.of(0) == Streams{true, true});
  CHECK(some.redirects.of(1) == Streams{false, true});
  CHECK(some.redirects.of(2) == Streams{});
  CHECK(refusal({"--tee=4"}) == "4 does not match: <^[0123]$> or <^(\\d:[0123],)*(\\d:[0123])$>");
  CHECK(refusal({"--local-ranks-filter=a"}) ==
        "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2");
}

TEST_CASE("the template of the prefix is a flag's, or a variable's") {
  const Environ environ = {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${rank}>"}};
  CHECK(command({}, environ).settings.prefix == "<${rank}>");
  CHECK(command({"--log-line-prefix-template=$rank"}, environ).settings.prefix == "$rank");
}

TEST_CASE("what torchrun refuses is refused, a wrong command line and wrong values apart") {
  CHECK(usage({}) == "the following arguments are required: training_script, training_script_args");
  CHECK(usage({"--max-restarts=x", "a"}) == "argument --max-restarts/--max_restarts: invalid int value: 'x'");
  CHECK(usage({"--monitor-interval=x", "a"}) ==
        "argument --monitor-interval/--monitor_interval: invalid float value: 'x'");
  CHECK(usage({"--start-method=thread", "a"}) ==
        "argument --start-method/--start_method: invalid choice: 'thread' (choose from 'spawn', 'fork', "
        "'forkserver')");
  CHECK(usage({"--role", "--tee=3", "a"}) == "argument --role: expected one argument");
  CHECK(usage({"--standalone=1", "a"}) == "argument --standalone: ignored explicit argument '1'");
  CHECK(usage({"--numa-binding=x", "a"}) ==
        "argument --numa-binding/--numa_binding: invalid choice: 'x' (choose from 'node', 'socket', "
        "'exclusive', 'core-complex')");
  CHECK(refusal({"--monitor-interval=-1"}) == "monitor_interval must be > 0");
  CHECK(refusal({"--nnodes=0"}) == "min_nodes must be > 0 and <= max_nodes, and --nnodes is '0'");
  CHECK(refusal({"--nnodes=x"}) == "min_nodes must be > 0 and <= max_nodes, and --nnodes is 'x'");
  CHECK(refusal({"--rdzv-conf=x"}) == "The rendezvous configuration option 'x' must have a value specified.");
  CHECK(refusal({"--max-restarts=-1"}) == "max_restarts must be >= 0");
  CHECK(refusal({"--nnodes=1:2:3"}) == "nnodes=1:2:3 is not in \"MIN:MAX\" format");
  CHECK(refusal({"--nproc-per-node=many"}) == "Unsupported nproc_per_node value: many");
  CHECK(refusal({"--module", "--no-python"}) ==
        "Don't use both the '--no-python' flag and the '--module' flag at the same time.");
  CHECK(refusal({"--standalone", "--nnodes=2"}) ==
        "--standalone is a job on this host alone, and --nnodes is 2");
  CHECK(refusal({"--standalone", "--nnodes=1:2"}) == "accepted");
  CHECK(refusal({"--logs-specs=default"}) == "accepted");
  CHECK(refusal({"--logs-specs=mine"}) == "Could not find entrypoint under 'torchrun.logs_specs[mine]' key");
}

TEST_CASE("where hosts meet: nowhere for one, at the master's address, at an endpoint") {
  const JobConfig fixed = config({"--master-addr=localhost", "--master-port=29601", "--rdzv-id=7"});
  CHECK(fixed.rendezvous.kind == Rendezvous::Kind::none);
  CHECK(fixed.master_addr == "localhost");
  CHECK(fixed.master_port == 29601);
  CHECK(command({"--rdzv-id=7", "--master-port=1"}).run_id == "7");
  CHECK(command({"--rdzv-id=7", "--standalone"}).run_id.empty());
  CHECK(command({"--rdzv-id=7"}).run_id == "7");
  const JobConfig two = config({"--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1"});
  CHECK(two.rendezvous.kind == Rendezvous::Kind::master);
  CHECK(two.rendezvous.node_rank == 1);
  CHECK(two.master_port == 29500);
  const JobConfig elastic = config({"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=h:29400",
                                    "--rdzv-conf='join_timeout=5,last_call_timeout=1,timeout=5'"});
  CHECK(elastic.rendezvous.elastic);
  CHECK(elastic.rendezvous.master == Endpoint{"h", 29400});
  CHECK(elastic.rendezvous.join_timeout == std::chrono::seconds(5));
  CHECK(command({"--rdzv-conf=last_call_timeout=1"}).settings.last_call == std::chrono::seconds(1));
  CHECK(command({}).settings.last_call == std::chrono::seconds(30));
  CHECK(config({"--nnodes=2", "--rdzv-backend=c10d"}).rendezvous.master == Endpoint{"localhost", 29400});
  CHECK(command({"--nnodes=2", "--rdzv-backend=c10d", "--master-addr=h1"}).options.notes ==
        std::vector<std::string>{
            "--master-addr is for a static rendezvous: these hosts meet at localhost, each "
            "alone; write --rdzv-endpoint=h1:PORT"});
  CHECK(config({"--rdzv-backend=c10d"}).rendezvous.kind == Rendezvous::Kind::none);
  const JobConfig any_port = config({"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"});
  CHECK(any_port.rendezvous.kind == Rendezvous::Kind::master);
  CHECK(any_port.rendezvous.master.port == 0);
  CHECK_THROWS_AS(config({"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=h1:0"}), Error);
  CHECK(refusal({"--rdzv-backend=etcd"}) == "--rdzv-backend=etcd needs an endpoint");
  for (const char* any_free : {"--master-port=0", "--rdzv-endpoint=localhost:0"})
    CHECK_FALSE(config({any_free}).master_port.has_value());
  CHECK_THROWS_WITH_AS(config({"--nnodes=2", "--master-port=0"}),
                       "--master_port is '0': a whole number from 1 to 65535 is needed", Error);
}

TEST_CASE("signals that end the job are handed on as they are, and the grace is torchrun's") {
  const JobConfig job = config({"--signals-to-handle=SIGTERM,SIGUSR1", "--shutdown-timeout=7"});
  CHECK(job.signal_map ==
        std::vector<std::pair<std::string, std::string>>{{"TERM", "stop:TERM"}, {"USR1", "stop:USR1"}});
  CHECK(job.signals_to_handle == "SIGTERM,SIGUSR1");
  CHECK(job.grace.all == std::chrono::seconds(7));
  CHECK(command({"--signals-to-handle=SIGFOO,SIGKILL,SIGINT"}).options.notes ==
        Words{"signal SIGFOO cannot be handled", "signal SIGKILL cannot be handled"});
  CHECK(config({}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}).grace.all == std::chrono::seconds(9));
}

}  // namespace fleetrun::launcher
