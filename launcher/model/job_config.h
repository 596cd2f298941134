// What the user wants, checked and typed. launcher/config/make_job_config reads it
// from the command line and the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/model/binding.h"
#include "launcher/model/hang_rules.h"
#include "launcher/model/injection.h"
#include "launcher/model/job_file.h"
#include "launcher/model/restart_policy.h"
#include "launcher/model/torchrun.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/identity.h"

namespace fleetrun::launcher {

/// What was written on the command line, by setting key. Nothing in it has been checked yet.
struct Options {
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, std::string, std::less<>> spelled;  // the flag as the user wrote it: "--gpus"
  std::optional<std::string> script;
  std::vector<std::string> script_args;
  std::vector<std::string> notes;  // abbreviations that were understood
  std::optional<JobFile> file;     // that was given instead of a script
};

enum class Source { standard, environment, flag };
enum class DryRun { no, text, json, sh };
enum class LogLevel { debug, info, warning, error, critical };
enum class Containment { automatic, subreaper, cgroup2, pidns };  // each holds what the one before it does
enum class Color { automatic, always, never };
enum class TrainersBy { number, automatic, gpu, cpu };  // --nproc_per_node N|auto|gpu|cpu

/// A value that a role may have of its own.
template <class Value>
struct ByRole {
  Value all{};
  std::map<std::string, Value, std::less<>> roles;

  const Value& of(std::string_view role) const {
    const auto own = roles.find(role);
    return own == roles.end() ? all : own->second;
  }
  bool operator==(const ByRole&) const = default;
};

/// Restarts that each cause may use up; unset: as many as max_restart.
struct RestartBudget {
  std::optional<int> crash, oom, preemption, hang;
  bool operator==(const RestartBudget&) const = default;
};

/// Whose output the terminal shows.
struct Show {
  enum class Kind { first, all, failed, none, chosen } kind = Kind::first;
  std::vector<int> trainers;       // chosen by rank
  std::vector<std::string> roles;  // chosen with all their processes
  bool operator==(const Show&) const = default;
};

/// Who gets fleetrun's standard input.
struct StandardInput {
  enum class Kind { lone, none, trainer } kind = Kind::lone;  // lone: the only process of the job
  int rank = 0;
  bool operator==(const StandardInput&) const = default;
};

/// How many hosts: --nnodes 4, 2:16, 2:16:2 (at least 2, at most 16, and always a multiple of 2).
struct NodeCount {
  int min = 1, max = 1, multiple = 1;
  bool operator==(const NodeCount&) const = default;
};

/// How the hosts of a job find each other (launcher/cluster).
struct Rendezvous {
  enum class Kind { none, master, etcd } kind = Kind::none;  // none: the job is on this host alone
  Endpoint master;   // of Kind::master: where the coordinator listens; port 0: it is yet to be chosen
  std::string etcd;  // of Kind::etcd: what follows etcd://
  bool may_coordinate = true;  // false: somebody else does, at `master`
  bool master_by_torchrun =
      false;  // --master_addr and --master_port: those are the store's, the coordinator's port is one more
  NodeCount nodes;
  bool elastic = false;  // goes on with fewer hosts, and takes in more: a range, or an elastic level
  int node_rank = -1;    // that this host wants; -1: any
  std::vector<std::string> addresses;  // of all hosts by rank, where the user named them all
  bool by_order = false;               // of a head elsewhere, that started this launcher
  std::string node_name;               // how people know this host; empty: by its own name
  std::chrono::milliseconds join_timeout{}, elastic_timeout{};
  std::optional<std::chrono::milliseconds> lost_after;  // nullopt: by what a loss means for the job
  std::optional<std::string> secret_file;
  std::string secret;  // 32 bytes, handed over by whoever started this launcher; empty: from a file
  bool insecure = false;
  bool operator==(const Rendezvous&) const = default;
};

/// Hosts on which the job is started from here, over ssh or srun (launcher/remote).
/// As written, not parsed yet.
struct HostList {
  std::optional<std::string> hosts, hostfile, include, exclude;
  bool slurm = false;  // they are those of the Slurm allocation that this is in (launcher/schedulers)
  std::vector<std::string> exported;  // variables that go along: NAME, NAME=VALUE, PREFIX*
  std::string chdir;                  // working directory there; empty: the same as here
  std::string path;                   // of fleetrun there; empty: the same as here
  std::string ssh = "ssh";            // the command, with its options, separated by blanks
  int window = 0;                     // logins under way at a time; 0: chosen by the number of hosts
  bool collect_logs = false;
  std::optional<std::string> ship;        // what travels to the hosts, beside fleetrun: words, and paths
  std::string ship_to;                    // where it lies there; empty: in the user's cache
  std::vector<std::string> ship_exclude;  // patterns of names that stay here
  bool ship_remove = false;               // when the job has ended
  bool node_file = false;                 // they are those of the file of another scheduler
  bool given() const noexcept { return hosts || hostfile || slurm || node_file; }
  bool operator==(const HostList&) const = default;
};

/// How the script is run.
enum class ScriptKind {
  by_name,  // a .py or .pyxes by Python, others directly
  module,   // -m: the name of a Python module
  python,   // by Python, whatever its name
  direct,   // directly, whatever its name
};

/// One line of the LAUNCH INFO listing.
struct ListedSetting {
  std::string key, value;
  Source source = Source::standard;
  bool operator==(const ListedSetting&) const = default;
};

struct JobConfig {
  Mode mode = Mode::collective;
  std::string job_id;
  std::string script;
  std::vector<std::string> script_args;
  std::optional<JobFile>
      file;  // given instead of a script; what it says of servers and trainers is below too
  ScriptKind script_kind = ScriptKind::by_name;

  std::optional<int> server_num, trainer_num, nproc_per_node;
  std::optional<int> most_servers;  // --server_num=N:MOST: the processes that serve them may become so many
  TrainersBy trainers_by = TrainersBy::number;
  std::vector<Endpoint> servers, trainers;  // as the user wrote them; empty: chosen by the planner
  std::optional<std::vector<std::string>> devices;
  std::string device_flag;  // by which they were named: "gpus", "npus", "xpus"; empty: of any kind

  Rendezvous rendezvous;
  HostList host_list;
  std::string host = "127.0.0.1";
  bool host_chosen = false;                 // by the user; else it is the one that faces the other hosts
  std::optional<std::uint16_t> start_port;  // where --start_port or --ips is given
  bool start_port_chosen = false;           // by the user; else one that is in use is passed over on one host
  std::optional<std::pair<int, int>> port_range;
  std::string master_addr;  // of a collective job's store; empty: `host`
  std::optional<std::uint16_t> master_port;
  std::string with_gloo;
  std::uint16_t gloo_port = 0;
  bool gloo_port_chosen = false;
  std::string auto_cluster;
  std::string auto_parallel;          // the file of --auto_parallel_config
  std::size_t longest_list = 48'000;  // PADDLE_ENV_LIMIT_LEN: bytes of a list of endpoints in the environment
  std::string role_name, run_id, signals_to_handle;  // passed on, as torchrun does

  std::string log_dir;
  bool log_overwrite = false;
  LogLevel log_level = LogLevel::info;
  bool log_through = false;
  std::optional<std::uint64_t> log_cap;  // bytes
  int log_keep = 0;
  Show show;
  Color color = Color::automatic;

  std::optional<std::string> python;
  bool compat_paddle = false;
  std::optional<std::string> bad_line;  // "fail" or "skip:N", as datasets read it
  std::optional<std::string> sentinel;  // "rotating", "every" or "off", as data parallel training reads it
  std::optional<std::string> trace;     // where the processes write their timelines (fleetrun trace)
  Bind bind = Bind::automatic;
  StandardInput standard_input;
  bool pty = false;  // who has standard input gets a terminal of its own
  bool detach = false;
  DryRun dry_run = DryRun::no;

  std::chrono::milliseconds ready_timeout{};
  ByRole<std::chrono::milliseconds> grace;
  std::optional<std::chrono::milliseconds> timeout;
  HangRules hang;
  std::vector<std::pair<std::string, std::string>> signal_map;  // "USR1" and "forward", as written
  Containment containment = Containment::automatic;
  std::optional<Containment> require_containment;
  std::optional<std::string> metrics;
  std::optional<Endpoint> ui;  // where the page listens; port 0: any
  std::string on_event;        // empty: none
  std::vector<Injection> inject;
  std::optional<std::uint64_t> inject_seed;  // nullopt: not chosen

  std::optional<int> max_restart;                            // unset: nothing is ever restarted
  std::map<std::string, RestartScope, std::less<>> restart;  // by role, where the user said so
  RestartBudget restart_budget;
  std::chrono::milliseconds restart_backoff{}, healthy_after{};
  bool replaces_failed = false;              // --on_failure=replace
  int spares = 0;                            // that stand by from the start, where it is so
  int same_failure_limit = 0;                // 0: as many as the budgets allow
  std::optional<std::string> ps_checkpoint;  // as written
  std::string ps_checkpoint_found;
  std::chrono::milliseconds ps_checkpoint_interval{};
  std::string ps_log_sync;
  int ps_replicas = 0;
  std::string ps_upload_cmd, ps_download_cmd;  // empty: none

  std::optional<TorchrunSettings> torchrun;  // of `fleetrun torchrun`

  std::vector<ListedSetting>
      listing;  // Paddle's keys, then the others that were given, each in alphabetical order
  std::vector<std::string> notes;  // what was understood differently from what was asked
};

std::string_view to_string(LogLevel level) noexcept;
std::string_view to_string(Containment level) noexcept;

/// Who is started again when a process of `role` fails: the user's choice, or `standard`.
RestartScope restart_scope(const JobConfig& config, std::string_view role, RestartScope standard);

/// How often, by kind of failure: the budget where the user gave one, else max_restart. What could not be
/// started is never started again.
RestartRules restart_rules(const JobConfig& config);

/// Whether somebody asks how far the processes are: for hangs, progress between restarts, injections.
bool watches_steps(const JobConfig& config);

}  // namespace fleetrun::launcher
