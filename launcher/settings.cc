#include "launcher/settings.h"

#include <cassert>

namespace fleetrun::launcher {
namespace {

// clang-format off
constexpr Setting kSettings[] = {
  {"server_num", "", "PADDLE_SERVER_NUM", "None", "N", Group::processes,
   "parameter servers to start on this host", false},
  {"trainer_num", "worker_num", "PADDLE_TRAINER_NUM", "None", "N", Group::processes,
   "trainers to start beside the servers", false},
  {"servers", "", "PADDLE_SERVERS_ENDPOINTS", "", "HOST:PORT,…", Group::processes,
   "where each server listens; instead of --server_num", false},
  {"trainers", "workers", "PADDLE_TRAINERS_ENDPOINTS", "", "HOST:PORT,…", Group::processes,
   "where each trainer listens; instead of --trainer_num", false},
  {"nproc_per_node", "", "PADDLE_NPROC_PER_NODE", "None", "N", Group::processes,
   "trainers of a collective job; default: one per device, or 1", false},
  {"devices", "gpus npus xpus", "PADDLE_DEVICES", "None", "0,1,…", Group::processes,
   "devices of a collective job, one trainer each; default: all visible ones", false},
  {"run_mode", "", "PADDLE_RUN_MODE", "None", "MODE", Group::processes,
   "collective or ps; default: ps where servers or their trainers are asked for", false},

  {"host", "", "POD_IP", "None", "ADDRESS", Group::hosts,
   "address of this host in the endpoints; default: 127.0.0.1, since the job is on one host", false},
  {"start_port", "", "PADDLE_START_PORT", "6070", "PORT", Group::hosts,
   "first of consecutive ports for the processes; default: free ports are found", false},
  {"with_gloo", "", "PADDLE_WITH_GLOO", "1", "0|1|2", Group::hosts,
   "Gloo among nobody (0), the trainers (1) or all (2) of a ps job", false},
  {"gloo_port", "", "PADDLE_GLOO_PORT", "6767", "PORT", Group::hosts,
   "port of Gloo's store when --servers and --trainers are given", false},
  {"nnodes", "", "PADDLE_NNODES", "1", "N", Group::hosts, "number of hosts; only 1 so far", false},
  {"master", "", "PADDLE_MASTER", "None", "ADDRESS", Group::hosts, "where hosts meet; not needed on one host", false},
  {"rank", "", "PADDLE_RANK", "-1", "N", Group::hosts, "rank of this host; not needed on one host", false},
  {"ips", "", "PADDLE_IPS", "None", "ADDRESS,…", Group::hosts, "addresses of all hosts; only this one so far", false},

  {"log_dir", "", "PADDLE_LOG_DIR", "log", "DIR", Group::logs, "directory of the logs", false},
  {"log_overwrite", "", "PADDLE_LOG_OVERWRITE", "False", "BOOL", Group::logs,
   "no effect: each attempt has logs of its own", false},
  {"log_level", "", "PADDLE_LOG_LEVEL", "INFO", "LEVEL", Group::logs,
   "of the LAUNCH lines: DEBUG, INFO, WARNING, ERROR or CRITICAL", false},
  {"job_id", "", "PADDLE_JOB_ID", "default", "NAME", Group::logs,
   "name of the job: 1 to 64 letters, digits, '.', '_' or '-'", false},

  {"python", "", "", "None", "PATH", Group::run,
   "interpreter of a .py; default: the active virtual environment's, one beside fleetrun, or python3", true},
  {"compat", "", "", "None", "paddle", Group::run,
   "paddle: a script that imports paddle gets fleetrun's package instead", true},
  {"ready_timeout", "", "", "30", "SECONDS", Group::run,
   "trainers wait this long for the servers to listen", true},
  {"grace", "", "", "30", "SECONDS", Group::run,
   "time between asking a process to stop (SIGTERM) and making it (SIGKILL)", true},
  {"hang_timeout", "", "", "0", "SECONDS", Group::run,
   "a process without a sign of life for so long has failed; 0: nobody looks", true},
  {"hang_by", "", "", "None", "SIGN,…", Group::run,
   "signs of life, of heartbeat, log and cpu; default: heartbeat where there was one, else log and cpu together", true},
  {"inject", "", "", "None", "SPEC", Group::run,
   "fail on purpose, for example 'kill rank=1 at=2s; slow-start rank=0 by=500ms'", true},
  {"inject_seed", "", "", "None", "N", Group::run,
   "makes what --inject draws the same again", true},
  {"dry_run", "", "", "None", "text|json|sh", Group::run,
   "print what would be started, and start nothing", true},

  {"max_restart", "", "PADDLE_MAX_RESTART", "3", "N", Group::restart, "restarts of a failed job; not on one host yet", false},
  {"elastic_level", "", "PADDLE_ELASTIC_LEVEL", "-1", "N", Group::restart, "accepted; elastic jobs need several hosts", false},
  {"elastic_timeout", "", "PADDLE_ELASTIC_TIMEOUT", "30", "SECONDS", Group::restart,
   "accepted; elastic jobs need several hosts", false},

  {"auto_cluster_config", "", "PADDLE_AUTO_CLUSTER", "0", "BOOL", Group::accepted, "passed on as PADDLE_AUTO_CLUSTER", false},
  {"enable_gpu_log", "", "", "True", "BOOL", Group::accepted, "no effect", false},
  {"legacy", "", "", "False", "BOOL", Group::accepted, "no effect: there is one launcher", false},
  {"sort_ip", "", "PADDLE_SORT_IP", "False", "BOOL", Group::accepted, "no effect on one host", false},
  {"auto_parallel_config", "", "PADDLE_AUTO_PARALLEL_CONFIG", "None", "FILE", Group::accepted, "refused: there is no tuner", false},
  {"auto_tuner_json", "", "", "None", "FILE", Group::accepted, "refused: there is no tuner", false},
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
