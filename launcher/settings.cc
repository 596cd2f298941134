#include "launcher/settings.h"

#include <cassert>

namespace fleetrun::launcher {
namespace {

constexpr auto kPaddle = From::paddle, kTorchrun = From::torchrun, kOurs = From::fleetrun;
constexpr auto kNoTuner = "fleetrun has no tuner";
constexpr auto kNoHeter = "trainers on different kinds of machines (heter) are not supported";
constexpr auto kNoCoordinator = "federated coordinators are not supported";
constexpr auto kNoElasticServer =
    "an elastic job needs several hosts, and a job is not on more than one host yet";

// clang-format off
constexpr Setting kSettings[] = {
  {"server_num", "", "PADDLE_SERVER_NUM", "None", "N", Group::processes,
   "parameter servers to start on this host", kPaddle},
  {"trainer_num", "worker_num", "PADDLE_TRAINER_NUM", "None", "N", Group::processes,
   "trainers to start beside the servers", kPaddle},
  {"servers", "", "PADDLE_SERVERS_ENDPOINTS", "", "HOST:PORT,…", Group::processes,
   "where each server listens; instead of --server_num", kPaddle},
  {"trainers", "workers", "PADDLE_TRAINERS_ENDPOINTS", "", "HOST:PORT,…", Group::processes,
   "where each trainer listens; instead of --trainer_num", kPaddle},
  {"nproc_per_node", "", "PADDLE_NPROC_PER_NODE PET_NPROC_PER_NODE", "None", "N|auto|gpu|cpu", Group::processes,
   "trainers of a collective job; default: one per device, or 1", kPaddle},
  {"devices", "gpus npus xpus", "PADDLE_DEVICES", "None", "0,1,…", Group::processes,
   "devices of a collective job, one trainer each; default: all visible ones", kPaddle},
  {"run_mode", "", "PADDLE_RUN_MODE", "None", "MODE", Group::processes,
   "collective, ps or rpc; default: ps where servers or their trainers are asked for", kPaddle},

  {"host", "local_addr", "POD_IP PET_LOCAL_ADDR", "None", "ADDRESS", Group::hosts,
   "address of this host in the endpoints; default: 127.0.0.1, since the job is on one host", kPaddle},
  {"start_port", "", "PADDLE_START_PORT FLAGS_START_PORT FLAGS_FIXED_PORT", "6070", "PORT", Group::hosts,
   "first of consecutive ports for the processes; default: free ports are found", kPaddle},
  {"port_range", "", "PORT_RANGE", "None", "FIRST:LAST", Group::hosts,
   "range that free ports are taken from; default: outside of the one that the kernel gives to connections"},
  {"with_gloo", "", "PADDLE_WITH_GLOO", "1", "0|1|2", Group::hosts,
   "Gloo among nobody (0), the trainers (1) or all (2) of a ps job", kPaddle},
  {"gloo_port", "http_port", "PADDLE_GLOO_PORT", "6767", "PORT", Group::hosts,
   "port of Gloo's store when --servers and --trainers are given", kPaddle},
  {"nnodes", "", "PADDLE_NNODES PET_NNODES", "1", "N", Group::hosts, "number of hosts; only 1 so far", kPaddle},
  {"master", "", "PADDLE_MASTER", "None", "ADDRESS", Group::hosts, "where hosts meet; not needed on one host", kPaddle},
  {"rank", "node_rank", "PADDLE_RANK PET_NODE_RANK", "-1", "N", Group::hosts,
   "rank of this host; not needed on one host", kPaddle},
  {"ips", "cluster_node_ips", "PADDLE_IPS", "None", "ADDRESS,…", Group::hosts,
   "addresses of all hosts; only this one so far", kPaddle},
  {"master_addr", "", "PET_MASTER_ADDR", "None", "ADDRESS", Group::hosts,
   "where trainer 0 of a collective job opens its store; default: this host's address", kTorchrun},
  {"master_port", "", "PET_MASTER_PORT", "None", "PORT", Group::hosts,
   "the store's port; default: a free port is found", kTorchrun},

  {"python", "", "", "None", "PATH", Group::run,
   "interpreter of a .py; default: the active virtual environment's, one beside fleetrun, or python3"},
  {"module", "-m", "PET_MODULE", "False", "", Group::run,
   "SCRIPT is the name of a Python module, run as by python -m", kTorchrun, Kind::flag, "True"},
  {"no_python", "", "PET_NO_PYTHON", "False", "", Group::run,
   "execute SCRIPT directly, even a .py", kTorchrun, Kind::flag, "True"},
  {"run_path", "", "PET_RUN_PATH", "False", "", Group::run,
   "run SCRIPT with Python, whatever its name ends in", kTorchrun, Kind::flag, "True"},
  {"compat", "", "", "None", "paddle", Group::run,
   "paddle: a script that imports paddle gets fleetrun's package instead"},
  {"role", "", "PET_ROLE", "default", "NAME", Group::run,
   "ROLE_NAME of the trainers of a collective job", kTorchrun},
  {"bind", "", "", "auto", "auto|none|core|numa", Group::run,
   "bind processes to cores or memory nodes; auto: to nodes where the machine has several"},
  {"stdin", "", "", "None", "RANK|none", Group::run,
   "trainer that gets fleetrun's standard input; default: the only process of a job, else none"},
  {"dry_run", "", "", "None", "text|json|sh", Group::run,
   "print what would be started, and start nothing", kOurs, Kind::optional_value, "text"},
  {"detach", "", "", "False", "", Group::run,
   "return once the job runs; fleetrun status, attach, logs and stop find it again", kOurs, Kind::flag, "True"},

  {"max_restart", "max_restarts", "PADDLE_MAX_RESTART PET_MAX_RESTARTS", "3", "N", Group::restart,
   "start a failed job again up to N times; without it (and an elastic level) a failure ends the job", kPaddle},
  {"restart", "", "", "None", "ROLE=WHAT,…", Group::restart,
   "who is started again when a process of the role fails: group, process or never; default: server=process, others group"},
  {"restart_budget", "", "", "None", "CAUSE=N,…", Group::restart,
   "restarts by cause, beside --max_restart: crash, oom, preemption, hang"},
  {"restart_backoff", "", "", "1", "SECONDS", Group::restart,
   "wait before the second restart in a row, which doubles up to a minute; a random part of it is waited"},
  {"healthy_after", "", "", "600", "SECONDS", Group::restart,
   "a run that lasted this long forgets the restarts before it"},
  {"elastic_level", "", "PADDLE_ELASTIC_LEVEL", "-1", "N", Group::restart,
   "0 or more turns --max_restart on", kPaddle},
  {"elastic_timeout", "", "PADDLE_ELASTIC_TIMEOUT", "30", "SECONDS", Group::restart,
   "accepted; elastic jobs need several hosts", kPaddle},

  {"grace", "shutdown_timeout", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30", "SECONDS|ROLE=SECONDS,…", Group::watch,
   "time between asking a process to stop (SIGTERM) and making it (SIGKILL)"},
  {"timeout", "", "", "None", "SECONDS", Group::watch, "end the job after this long, with exit status 124"},
  {"ready_timeout", "", "", "30", "SECONDS", Group::watch, "trainers wait this long for the servers to listen"},
  {"hang_timeout", "", "", "0", "SECONDS", Group::watch,
   "a process without a sign of life for so long has failed; 0: nobody looks"},
  {"hang_by", "", "", "None", "SIGN,…", Group::watch,
   "signs of life, of heartbeat, log and cpu; default: heartbeat where there was one, else log and cpu together"},
  {"signal_map", "", "", "None", "SIGNAL=WHAT,…", Group::watch,
   "what a signal to fleetrun does: forward, stop, ignore, or the signal to send instead; for example USR1=forward"},
  {"containment", "", "", "auto", "auto|pidns|cgroup2|subreaper", Group::watch,
   "how the processes are kept from outliving fleetrun; auto: the strongest means that is there"},
  {"require_containment", "", "", "None", "LEVEL", Group::watch,
   "refuse to start below this level; without a value: pidns", kOurs, Kind::optional_value, "pidns"},
  {"metrics", "", "", "None", "ADDRESS", Group::watch,
   "serve Prometheus text at PORT, HOST:PORT or the path of a socket"},
  {"inject", "", "", "None", "SPEC", Group::watch,
   "fail on purpose, for example 'kill rank=1 at=2s; slow-start rank=0 by=500ms'"},
  {"inject_seed", "", "", "None", "N", Group::watch, "makes what --inject draws the same again"},

  {"log_dir", "", "PADDLE_LOG_DIR PET_LOG_DIR", "log", "DIR", Group::logs, "directory of the logs", kPaddle},
  {"log_overwrite", "", "PADDLE_LOG_OVERWRITE", "False", "BOOL", Group::logs,
   "no effect: each attempt has logs of its own", kPaddle},
  {"log_level", "", "PADDLE_LOG_LEVEL", "INFO", "LEVEL", Group::logs,
   "of the LAUNCH lines: DEBUG, INFO, WARNING, ERROR or CRITICAL", kPaddle},
  {"job_id", "", "PADDLE_JOB_ID", "default", "NAME", Group::logs,
   "name of the job: 1 to 64 letters, digits, '.', '_' or '-'", kPaddle},
  {"show", "", "", "first", "WHICH", Group::logs,
   "whose output is shown here: first, all, fail, none, ranks of trainers (0,3 or 0-3), or roles (server)"},
  {"color", "", "", "auto", "auto|always|never", Group::logs, "colours of the prefixes of shown lines"},
  {"log_through", "", "", "False", "", Group::logs,
   "put a writer between each process and its log, which keeps to --log_cap", kOurs, Kind::flag, "True"},
  {"log_cap", "", "", "None", "SIZE", Group::logs, "size at which a log is rotated, for example 64M; needs --log_through"},
  {"log_keep", "", "", "5", "N", Group::logs, "rotated logs kept for each process"},
  {"tee", "-t", "PET_TEE", "0", "STREAMS", Group::logs,
   "streams to show beside the log: 3 shows all trainers, 0:3,2:1 shows trainers 0 and 2", kTorchrun},
  {"redirects", "-r", "PET_REDIRECTS", "0", "STREAMS", Group::logs,
   "streams that go to the log alone: 3 shows none; every stream is in the log in any case", kTorchrun},
  {"local_ranks_filter", "", "PET_LOCAL_RANKS_FILTER", "", "RANK,…", Group::logs, "trainers to show, as --show", kTorchrun},

  {"auto_cluster_config", "", "PADDLE_AUTO_CLUSTER", "0", "BOOL", Group::accepted,
   "passed on as PADDLE_AUTO_CLUSTER", kPaddle},
  {"enable_gpu_log", "", "", "True", "BOOL", Group::accepted, "no effect", kPaddle},
  {"legacy", "", "", "False", "BOOL", Group::accepted, "no effect: there is one launcher", kPaddle},
  {"sort_ip", "", "PADDLE_SORT_IP", "False", "BOOL", Group::accepted, "no effect on one host", kPaddle},
  {"backend", "", "", "auto", "NAME", Group::accepted,
   "no effect: trainers with devices choose theirs, those without use gloo", kTorchrun},
  {"standalone", "", "PET_STANDALONE", "False", "", Group::accepted,
   "no effect: a job on one host always is", kTorchrun, Kind::flag, "True"},
  {"rdzv_backend", "", "PET_RDZV_BACKEND", "static", "NAME", Group::accepted,
   "no effect on one host: static or c10d; etcd's are refused", kTorchrun},
  {"rdzv_endpoint", "", "PET_RDZV_ENDPOINT", "", "HOST:PORT", Group::accepted,
   "no effect on one host, where nobody has to be met", kTorchrun},
  {"rdzv_id", "", "PET_RDZV_ID", "None", "NAME", Group::accepted,
   "passed on as TORCHELASTIC_RUN_ID; default: the job's id", kTorchrun},
  {"rdzv_conf", "", "PET_RDZV_CONF", "", "NAME=VALUE,…", Group::accepted, "no effect on one host", kTorchrun},
  {"monitor_interval", "", "PET_MONITOR_INTERVAL", "0.1", "SECONDS", Group::accepted,
   "no effect: deaths are seen when they happen", kTorchrun},
  {"start_method", "", "PET_START_METHOD", "spawn", "NAME", Group::accepted, "no effect", kTorchrun},
  {"signals_to_handle", "", "PET_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "SIGNAL,…", Group::accepted,
   "passed on as TORCHELASTIC_SIGNALS_TO_HANDLE; --signal_map says what signals do", kTorchrun},
  {"numa_binding", "", "PET_NUMA_BINDING", "None", "node|socket|exclusive|core-complex", Group::accepted,
   "node and socket are --bind=numa, the others --bind=core", kTorchrun},
  {"log_line_prefix_template", "", "PET_LOG_LINE_PREFIX_TEMPLATE", "None", "TEXT", Group::accepted,
   "no effect: shown lines begin with role and rank", kTorchrun},
  {"duplicate_stdout_filters", "", "PET_DUPLICATE_STDOUT_FILTERS", "", "TEXT,…", Group::accepted, "no effect", kTorchrun},
  {"duplicate_stderr_filters", "", "PET_DUPLICATE_STDERR_FILTERS", "", "TEXT,…", Group::accepted, "no effect", kTorchrun},
  {"event_log_handler", "", "PET_EVENT_LOG_HANDLER", "null", "NAME", Group::accepted,
   "no effect: events are in events.jsonl", kTorchrun},
  {"logs_specs", "", "PET_LOGS_SPECS", "None", "NAME", Group::accepted,
   "refused", kTorchrun, Kind::refused, "plug-ins of torchrun are not run"},
  {"virtual_local_rank", "", "PET_VIRTUAL_LOCAL_RANK", "None", "", Group::accepted,
   "refused", kTorchrun, Kind::refused, "each process finds its device by LOCAL_RANK"},
  {"auto_parallel_config", "", "PADDLE_AUTO_PARALLEL_CONFIG", "None", "FILE", Group::accepted,
   "refused: there is no tuner", kPaddle, Kind::refused, kNoTuner},
  {"auto_tuner_json", "", "", "None", "FILE", Group::accepted,
   "refused: there is no tuner", kPaddle, Kind::refused, kNoTuner},
  {"heter_workers", "heter_worker_num heter_devices heter_worker_device", "", "None", "…", Group::accepted,
   "refused: all trainers are alike", kTorchrun, Kind::refused, kNoHeter},
  {"coordinators", "coordinator_num", "", "None", "…", Group::accepted,
   "refused: there is no federated learning", kTorchrun, Kind::refused, kNoCoordinator},
  {"elastic_server", "np scale force elastic_pre_hook", "", "None", "…", Group::accepted,
   "refused: elastic jobs need several hosts", kTorchrun, Kind::refused, kNoElasticServer},
};
// clang-format on

}  // namespace

std::span<const Setting> settings() noexcept {
  return kSettings;
}

const Setting& setting(std::string_view key) noexcept {
  for (const Setting& row : kSettings) {
    if (row.key == key) return row;
  }
  assert(!"a setting that is not in the table");
  return kSettings[0];
}

}  // namespace fleetrun::launcher
