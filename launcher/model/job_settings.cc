#include "launcher/model/job_settings.h"

#include <algorithm>
#include <cassert>

#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr auto kPaddle = From::paddle, kTorchrun = From::torchrun, kOurs = From::fleetrun;
constexpr auto kNoTuner = "fleetrun has no tuner";
constexpr auto kNoHeter = "trainers on different kinds of machines (heter) are not supported";
constexpr auto kNoCoordinator = "federated coordinators are not supported";
constexpr auto kNoElasticServer =
    "write --nnodes=MIN:MAX for an elastic job, --master=etcd://HOST:PORT for its etcd, and "
    "--nproc_per_node=N for N processes on this host";

// clang-format off
constexpr Setting kSettings[] = {
  {"server_num", "", "PADDLE_SERVER_NUM", "None", "N", Group::processes, kPaddle, Kind::value,
   "parameter servers to start on this host; default: 1 in a ps job",
   "It makes the job a `ps` job. With 2:5 there are 5 servers, which 2 processes serve at first, and "
   "`fleetrun ps resize` has any number up to 5 serve them while the job trains (fleetrun-ps(7))."},
  {"trainer_num", "worker_num", "PADDLE_TRAINER_NUM", "None", "N", Group::processes, kPaddle, Kind::value,
   "trainers to start beside the servers; default: 1",
   "It makes the job a `ps` job."},
  {"servers", "", "PADDLE_SERVERS_ENDPOINTS", "", "HOST:PORT,…", Group::processes, kPaddle, Kind::value,
   "where each server listens; instead of --server_num"},
  {"trainers", "workers", "PADDLE_TRAINERS_ENDPOINTS", "", "HOST:PORT,…",
   Group::processes, kPaddle, Kind::value,
   "where each trainer listens; instead of --trainer_num"},
  {"nproc_per_node", "", "PADDLE_NPROC_PER_NODE PET_NPROC_PER_NODE", "None", "N|auto|gpu|cpu",
   Group::processes, kPaddle, Kind::value,
   "trainers of a collective job; default: one per device, or 1",
   "`gpu` is one per device, `cpu` one per core, and `auto` one per device or, where there are none, one "
   "per core."},
  {"devices", "gpus npus xpus selected_gpus", "PADDLE_DEVICES", "None", "0,1,…",
   Group::processes, kPaddle, Kind::value,
   "devices of a collective job, one trainer each, named as CUDA_VISIBLE_DEVICES does; default: all "
   "visible ones",
   "Without it, devices that another job of this user holds on this host are passed over, and a job for "
   "which too few are left is refused; that variable, where it shows as many as there are trainers, counts "
   "as naming them. Named devices are shared, with a warning."},
  {"run_mode", "", "PADDLE_RUN_MODE", "None", "MODE", Group::processes, kPaddle, Kind::value,
   "kind of the job: collective, ps or rpc; default: ps where servers or their trainers are asked for"},

  {"host", "local_addr node_ip", "POD_IP PET_LOCAL_ADDR", "None", "ADDRESS",
   Group::hosts, kPaddle, Kind::value,
   "address of this host in the endpoints; default: 127.0.0.1, or the one that faces the other hosts",
   "So nothing of a job on one host is open to the network."},
  {"start_port", "started_port", "PADDLE_START_PORT FLAGS_START_PORT FLAGS_FIXED_PORT", "6070", "PORT",
   Group::hosts, kPaddle, Kind::value,
   "first of consecutive ports for the processes; without it free ports are found",
   "Free ports are held until the process that needs them is started. With --ips the default counts; on one "
   "host a port in use is passed over."},
  {"port_range", "", "PORT_RANGE", "None", "FIRST:LAST", Group::hosts, kOurs, Kind::value,
   "range that free ports are taken from; default: outside of the one that the kernel gives to connections"},
  {"with_gloo", "", "PADDLE_WITH_GLOO", "1", "0|1|2", Group::hosts, kPaddle, Kind::value,
   "who joins Gloo in a ps job: nobody (0), the trainers (1) or all (2)"},
  {"gloo_port", "http_port", "PADDLE_GLOO_PORT", "6767", "PORT", Group::hosts, kPaddle, Kind::value,
   "port of Gloo's store when --servers and --trainers are given"},
  {"nnodes", "", "PADDLE_NNODES PET_NNODES", "1", "N|MIN:MAX|MIN:MAX:MULTIPLE",
   Group::hosts, kPaddle, Kind::value,
   "number of hosts; a range makes the job elastic"},
  {"master", "", "PADDLE_MASTER", "None", "HOST:PORT|etcd://HOST:PORT", Group::hosts, kPaddle, Kind::value,
   "where the hosts meet, the same on each; the host with this address coordinates",
   "`etcd://` names an etcd v3 instead."},
  {"rank", "node_rank", "PADDLE_RANK PET_NODE_RANK", "-1", "N", Group::hosts, kPaddle, Kind::value,
   "rank of this host among the hosts; -1: any that is free"},
  {"ips", "cluster_node_ips", "PADDLE_IPS", "None", "ADDRESS,…", Group::hosts, kPaddle, Kind::value,
   "addresses of all hosts, the same command being run on each; the first one coordinates",
   "The hosts meet at port 6768 unless --master says otherwise."},
  {"hosts", "host_list", "FLEETRUN_HOSTS", "None", "HOST[:SLOTS],…", Group::hosts, kOurs, Kind::value,
   "start the job on these hosts over ssh, from here; SLOTS: trainers there"},
  {"hostfile", "machinefile", "FLEETRUN_HOSTFILE", "None", "FILE", Group::hosts, kOurs, Kind::value,
   "the list of hosts in a file: one HOST [slots=N] a line"},
  {"include", "", "", "None", "HOST[:DEVICE,…]@…", Group::hosts, kOurs, Kind::value,
   "only these hosts of the list, and devices of them"},
  {"exclude", "", "", "None", "HOST[:DEVICE,…]@…", Group::hosts, kOurs, Kind::value,
   "not these hosts of the list, or devices of them"},
  {"export", "", "", "None", "NAME[=VALUE],…", Group::hosts, kOurs, Kind::value,
   "variables that the hosts get from here; PREFIX* names several"},
  {"chdir", "", "", "None", "DIR", Group::hosts, kOurs, Kind::value,
   "working directory on the hosts; default: the same as here"},
  {"path", "", "", "None", "FILE", Group::hosts, kOurs, Kind::value,
   "path of fleetrun on the hosts; default: the same as here"},
  {"ship", "", "", "None", "script|venv|PATH,…", Group::hosts, kOurs, Kind::optional_value,
   "send fleetrun and the script's folder to the hosts, which need only sshd; PATH: files or folders more",
   "Only what a host lacks is sent, and stays there for the next time. With `venv` the virtual environment "
   "travels too, with its interpreter. Logs are brought back unless --collect_logs=False is given.",
   "script"},
  {"ship_to", "", "", "None", "DIR", Group::hosts, kOurs, Kind::value,
   "where it lies on the hosts; default: $XDG_CACHE_HOME/fleetrun/ship or ~/.cache/fleetrun/ship"},
  {"ship_exclude", "", "", "None", "PATTERN,…", Group::hosts, kOurs, Kind::value,
   "names below what --ship sends that stay here"},
  {"ship_remove", "", "", "False", "", Group::hosts, kOurs, Kind::flag,
   "remove from the hosts what --ship sent when the job has ended",
   "", "True"},
  {"ssh", "", "FLEETRUN_SSH", "ssh", "COMMAND", Group::hosts, kOurs, Kind::value,
   "the ssh command and its options"},
  {"ssh_window", "", "", "0", "N", Group::hosts, kOurs, Kind::value,
   "logins under way at a time; 0: 8, and a tree beyond 64 hosts"},
  {"collect_logs", "", "", "False", "", Group::hosts, kOurs, Kind::flag,
   "bring the logs of all hosts to LOG_DIR here when the job has ended",
   "", "True"},
  {"join_timeout", "", "", "600", "SECONDS", Group::hosts, kOurs, Kind::value,
   "hosts wait this long for each other at the start"},
  {"lost_after", "", "", "None", "SECONDS", Group::hosts, kOurs, Kind::value,
   "silence after which a host is lost; default: 3 where the job goes on or starts again without it, else "
   "JOIN_TIMEOUT",
   "A host that is silent for 3 seconds stands still, and goes on when it is heard within SECONDS."},
  {"secret_file", "", "FLEETRUN_SECRET_FILE", "None", "FILE", Group::hosts, kOurs, Kind::value,
   "secret that authenticates the hosts to each other; default: one in your configuration directory, made "
   "at first use",
   "The default is the file `secret` in $XDG_CONFIG_HOME/fleetrun."},
  {"insecure", "", "", "False", "", Group::hosts, kOurs, Kind::flag,
   "disable authentication and encryption",
   "", "True"},
  {"master_addr", "", "PET_MASTER_ADDR", "None", "ADDRESS", Group::hosts, kTorchrun, Kind::value,
   "host of the store that trainer 0 of a collective job opens; default: this host's address",
   "In a job of several hosts without --master the hosts meet there too, one port above the store's."},
  {"master_port", "", "PET_MASTER_PORT", "None", "PORT", Group::hosts, kTorchrun, Kind::value,
   "port of that store; default: a free port is found"},

  {"python", "", "", "None", "PATH", Group::run, kOurs, Kind::value,
   "interpreter of a .py; default: the active virtual environment's, one beside fleetrun, or python3",
   "A program beside it comes before those on PATH: --python=/venv/bin/python deepspeed. A fleetrun in "
   "/usr/bin, /usr/local/bin or /bin takes the python3 of PATH, which conda sets."},
  {"module", "-m", "PET_MODULE", "False", "", Group::run, kTorchrun, Kind::flag,
   "SCRIPT is the name of a Python module, run as by python -m",
   "", "True"},
  {"no_python", "", "PET_NO_PYTHON", "False", "", Group::run, kTorchrun, Kind::flag,
   "execute SCRIPT directly, even a .py",
   "", "True"},
  {"run_path", "", "PET_RUN_PATH", "False", "", Group::run, kTorchrun, Kind::flag,
   "run SCRIPT with Python, whatever its name ends in",
   "", "True"},
  {"compat", "", "", "None", "paddle", Group::run, kOurs, Kind::value,
   "paddle: a script that imports paddle gets fleetrun's alias package instead"},
  {"bad_line", "", "FLEETRUN_BAD_LINE", "None", "fail|skip:N", Group::run, kOurs, Kind::value,
   "how malformed lines of a dataset are handled: end the epoch, or skip up to N of them per epoch; "
   "default: fail",
   "`fail` gives an error that names file, line, column and slot. `skip:N` counts in each trainer, reports "
   "on standard error how many such lines there were and where the first ones are, and fails at one more. "
   "A script's own `bad_line` wins."},
  {"sentinel", "", "FLEETRUN_SENTINEL", "rotating", "rotating|every|off", Group::run, kOurs, Kind::value,
   "what ranks compare of the parameters of a PyTorch module after each step of data parallel training",
   "`rotating` compares a part, all within some steps, whose number rank 0 prints; `every` all of them in "
   "each step. Ranks that have drifted apart end with an error that names rank, tensor and step."},
  {"role", "", "PET_ROLE", "default", "NAME", Group::run, kTorchrun, Kind::value,
   "ROLE_NAME of the trainers of a collective job"},
  {"bind", "", "", "auto", "auto|none|core|numa", Group::run, kOurs, Kind::value,
   "bind processes to cores or memory nodes; auto: to nodes where the machine has several",
   "`numa` gives each process all cores of one memory node and its memory, `core` gives each as many cores "
   "as every other, and a process with a device goes near to it; `auto` means `numa` where the machine has "
   "several memory nodes and the job several processes, and `none` elsewhere. Only CPUs that this host "
   "allows (affinity mask, cpuset) are used, without those that another job has for itself by `core`. The "
   "binding is listed at the start and by --dry_run. Unless OMP_NUM_THREADS is set, it is the number of "
   "cores per process, at least 1; CPU_NUM is 1."},
  {"stdin", "", "", "None", "RANK|none", Group::run, kOurs, Kind::value,
   "trainer that gets fleetrun's standard input; default: the only process of a job, else none"},
  {"pty", "", "", "False", "", Group::run, kOurs, Kind::flag,
   "give the process with standard input a terminal of its own, for pdb, curses and progress bars",
   "It is that process's standard input, output and error, of the size of fleetrun's, which has to be on "
   "a terminal itself. Keys go to the process as they are typed: each Ctrl-C is its SIGINT and ends the "
   "job only where it ends the process, Ctrl-D is its end of file, Ctrl-Z stops both. fleetrun stop or "
   "SIGTERM ends the job. The log file has the output too.", "True"},
  {"dry_run", "", "", "None", "text|json|sh", Group::run, kOurs, Kind::optional_value,
   "print what would be started, and start nothing",
   "", "text"},
  {"detach", "", "", "False", "", Group::run, kOurs, Kind::flag,
   "return once the job runs; fleetrun status, attach, logs and stop find it again",
   "", "True"},

  {"max_restart", "max_restarts", "PADDLE_MAX_RESTART PET_MAX_RESTARTS", "3", "N",
   Group::restart, kPaddle, Kind::value,
   "start a failed job again up to N times; counts only when it is given or restarts are asked for "
   "otherwise",
   "Restarts are also asked for by --restart, --restart_budget, --ps_checkpoint or an elastic level; then "
   "the default counts."},
  {"restart", "", "", "None", "ROLE=WHAT,…", Group::restart, kOurs, Kind::value,
   "who is started again when a process of the role fails: group, process or never; default: process in a ps "
   "job, otherwise group",
   "In a ps job the servers keep the model, and with mode sync the place of each trainer in the data: "
   "whoever dies is started again alone. Servers of another runtime may not let a single trainer come back; "
   "`--restart=trainer=group` starts all trainers again."},
  {"on_failure", "", "", "restart", "restart|replace", Group::restart, kOurs, Kind::value,
   "what the failure of a trainer of a collective job means: the job ends or starts again (--max_restart), "
   "or another process takes the trainer's place",
   "With `replace` the other trainers go on in their processes, with what they have in memory, and take the "
   "step that was cut again; see fleetrun-recovery(7). For scripts with `fleetrun.torch.recoverable`, on one "
   "host. Where nobody can take the place, `restart` counts."},
  {"spares", "", "", "None", "N", Group::restart, kOurs, Kind::value,
   "processes that stand by for --on_failure=replace, up to where the script joins the others; default: 1",
   "One that takes a place is followed by another. With 0 a trainer that fails is started again to take its "
   "own place, which lasts as long as a start of the script."},
  {"restart_budget", "", "", "None", "CAUSE=N,…", Group::restart, kOurs, Kind::value,
   "restarts by cause, beside --max_restart: crash, oom, preemption, hang"},
  {"restart_backoff", "", "", "1", "SECONDS", Group::restart, kOurs, Kind::value,
   "wait before the second restart in a row; it doubles up to a minute, and a random part of it is waited"},
  {"healthy_after", "", "", "600", "SECONDS", Group::restart, kOurs, Kind::value,
   "a run this long resets the restart counters"},
  {"same_failure_limit", "", "", "0", "N", Group::restart, kOurs, Kind::value,
   "give up, whatever restarts are left, at the Nth failure in a row that is the same; 0: never",
   "The same: of the same process, with the same cause, and no process has got to a later step in between. "
   "It counts only in jobs whose processes say how far they are (`fleetrun.heartbeat(step)`, or lines "
   "`step N` to FLEETRUN_HEARTBEAT_FD), because others cannot be told from jobs that make progress."},
  {"ps_checkpoint", "", "FLEETRUN_PS_CHECKPOINT", "None", "DIR", Group::restart, kOurs, Kind::value,
   "servers keep their state in DIR, and one that dies is started again with it; default with "
   "--max_restart: in LOG_DIR",
   "The state is a log of every push that a server has acknowledged, and a checkpoint now and then, on the "
   "server's own host. A server that dies is started again alone, as often as --max_restart says; trainers "
   "wait for it and continue too. No acknowledged push is lost, and none is applied twice. With "
   "--max_restart and without this flag, DIR is .ps-POD below the directory of the logs."},
  {"ps_checkpoint_found", "", "FLEETRUN_PS_CHECKPOINT_FOUND", "refuse", "refuse|resume|require|replace",
   Group::restart, kOurs, Kind::value,
   "what servers do with a checkpoint that an earlier run left in DIR: refuse, resume or replace it; require "
   "one, and resume",
   "`refuse`: the job ends at once with an error. `resume`: the servers continue with the tables of that "
   "run, with every acknowledged push; where nothing was left, they start empty, with a warning. `require`: "
   "as `resume`, but where nothing was left the job ends with an error. The script starts at its "
   "beginning and finds its tables filled. Tables, mode and number of servers must be the same. `replace`: "
   "they remove it. When --max_restart starts the whole job again, the checkpoint of its earlier attempt "
   "is removed too, except with `resume` and `require`."},
  {"ps_checkpoint_interval", "", "FLEETRUN_PS_CHECKPOINT_INTERVAL", "60", "SECONDS",
   Group::restart, kOurs, Kind::value,
   "how often servers shorten their logs by a checkpoint",
   "They also do so whenever a log has reached 256 MiB."},
  {"ps_log_sync", "", "FLEETRUN_PS_LOG_SYNC", "process", "process|power", Group::restart, kOurs, Kind::value,
   "which failures an acknowledged push survives: the end of the server's process, or also a power failure "
   "of its host",
   "With `power` each answer waits until the disk has the push."},
  {"ps_replicas", "", "FLEETRUN_PS_REPLICAS", "0", "0|1", Group::restart, kOurs, Kind::value,
   "standbys of each server, on another server, of another host where there are several: one that dies takes "
   "its tables back from there, also where its disk is gone",
   "A push is acknowledged once the standby has it, too. Asks for restarts as --ps_checkpoint does. Takes "
   "the memory of each table twice, and two servers or more; not for tables with rows on disk."},
  {"ps_upload_cmd", "", "FLEETRUN_PS_UPLOAD_CMD", "None", "COMMAND", Group::restart, kOurs, Kind::value,
   "how servers save tables to a place like s3://bucket/model: COMMAND gets a file's name there as its last "
   "argument, and the file on its standard input",
   "bash runs it, for each file, on the server's host. For s3 it may be `aws s3 cp -`, for HDFS "
   "`hadoop fs -put -f -`. The manifest is copied last, so a save that broke off is never taken for one."},
  {"ps_download_cmd", "", "FLEETRUN_PS_DOWNLOAD_CMD", "None", "COMMAND", Group::restart, kOurs, Kind::value,
   "how servers load tables from there: COMMAND gets a file's name as its last argument and prints the file",
   "`hadoop fs -cat` is one for HDFS."},
  {"elastic_level", "", "PADDLE_ELASTIC_LEVEL", "-1", "N", Group::restart, kPaddle, Kind::value,
   "0 or more turns --max_restart on; 1 or more makes a job of several hosts elastic"},
  {"elastic_timeout", "", "PADDLE_ELASTIC_TIMEOUT", "30", "SECONDS", Group::restart, kPaddle, Kind::value,
   "how long an elastic job waits for a host in place of one that is lost"},

  {"grace", "shutdown_timeout", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30", "SECONDS|ROLE=SECONDS,…",
   Group::watch, kOurs, Kind::value,
   "time between SIGTERM and SIGKILL for a process that is to stop"},
  {"timeout", "", "", "None", "SECONDS", Group::watch, kOurs, Kind::value,
   "end the job after this long, with exit status 124"},
  {"ready_timeout", "", "", "30", "SECONDS", Group::watch, kOurs, Kind::value,
   "trainers wait this long for the servers to listen, then start with a warning"},
  {"hang_timeout", "", "", "0", "SECONDS", Group::watch, kOurs, Kind::value,
   "a process without a sign of life for this long has failed; 0: off",
   "Then the stacks of all processes are shown (identical stacks are grouped), the process is killed, and "
   "the restart policy decides; without a restart left the exit status is 137, and `verdict.json` says "
   "that it hung. The culprit is the process that was stopped by a signal, whose stack differs from its "
   "peers, that is behind in steps, or that was silent first. Frames of Python 3.8 to 3.14 are read from "
   "outside, by py-spy where it is in PATH, and those of other programs by gdb where that is (with a "
   "ptrace_scope of 1 and up the system allows that to root only), else system calls "
   "are shown; those of all threads go to `stacks.txt`, beside the logs of the attempt. A process is not "
   "judged while a debugger is attached, and pauses of fleetrun itself do not count."},
  {"hang_by", "", "", "None", "SIGN,…", Group::watch, kOurs, Kind::value,
   "signs of life that count, of heartbeat, log and cpu; default: heartbeat for a process that has sent "
   "one, else log and cpu",
   "`log` means that it grows, `cpu` is processor time of the process and its descendants; one sign is "
   "enough. A process sends heartbeats by writing lines such as `beat` or `step 120` to the descriptor "
   "FLEETRUN_HEARTBEAT_FD, or by `fleetrun.heartbeat(step)` in Python."},
  {"signal_map", "", "", "None", "SIGNAL=WHAT,…", Group::watch, kOurs, Kind::value,
   "what a signal to fleetrun does: forward, stop, drain (stop, with exit status 75), ignore, or the "
   "signal to send instead",
   "For example USR1=forward."},
  {"containment", "", "", "auto", "auto|pidns|cgroup2|subreaper", Group::watch, kOurs, Kind::value,
   "how processes are kept from outliving fleetrun; auto: cgroup2 where one can be written, else subreaper",
   "`pidns` holds even when fleetrun and fleetrun-init are killed at once, and changes the pids that "
   "processes see."},
  {"require_containment", "", "", "None", "LEVEL", Group::watch, kOurs, Kind::optional_value,
   "refuse to start below this level; without a value: pidns",
   "", "pidns"},
  {"metrics", "", "", "None", "ADDRESS", Group::watch, kOurs, Kind::value,
   "serve Prometheus text at PORT, HOST:PORT or the path of a socket",
   "Beside processes and servers it has what trainers say of themselves: fleetrun_training_step and "
   "fleetrun_training_value{role,rank,name}. train_from_dataset says batch, examples_per_second and the "
   "variables of fetch_list every print_period batches. Other programs write a line such as `step 120 "
   "loss=0.41 auc=0.73` to the descriptor FLEETRUN_HEARTBEAT_FD, or call `fleetrun.heartbeat(120, "
   "loss=0.41)`. What a process has said goes with it."},
  {"ui", "", "", "None", "PORT|ADDRESS:PORT", Group::watch, kOurs, Kind::optional_value,
   "serve a page for browsers while the job runs, and print its address; default: a free port of 127.0.0.1",
   "It is the page of `fleetrun ui`, with this job alone. The token in its address is a password: who has it "
   "can end the job. The page ends with the job; where a browser has it open, fleetrun waits up to 2 seconds "
   "for it to have fetched the verdict, and what it shows stays. `fleetrun ui` shows the job afterwards. "
   "From another machine, with --ui=8080: ssh -L 8080:127.0.0.1:8080 HOST. A detached job says the address "
   "in launch.log. In a job of several hosts each host serves a page of its own processes; over a list of "
   "hosts the addresses are printed here.", "0"},
  {"on_event", "", "", "None", "COMMAND", Group::watch, kOurs, Kind::value,
   "run COMMAND by bash when the job starts, a process fails, is restarted, and when the job ends",
   "It reads a line of JSON (schema, event, job, log_dir, process, host, cause, why, attempt, backoff_ms, "
   "exit_status; what is not known is left out), and finds the same in FLEETRUN_EVENT (`start`, `failure`, "
   "`restart`, `end`), FLEETRUN_EVENT_JOB, FLEETRUN_EVENT_WHY and so on, beside the environment of fleetrun. "
   "Commands run one after another and never hold the job up: after 10 seconds one is killed, with what it "
   "has started in its session; at the end fleetrun waits 10 seconds for those that are left. What fails is "
   "one warning. In a job of several hosts the launcher that coordinates them runs it, so each thing is told "
   "once; that a process was started again alone is told by the launcher of its host, not over a list of "
   "hosts."},
  {"inject", "", "", "None", "SPEC", Group::watch, kOurs, Kind::value,
   "fail on purpose, for example 'kill rank=1 at=2s; slow-start rank=0 by=500ms'",
   "Failures are separated by ';': a signal by its name, or `slow-start`, then `rank=`N|any|all, "
   "`role=`NAME, `at=`started|2s|1s..5s|step:120, `attempt=`N|any, `chance=`0.5, and `by=`500ms for "
   "slow-start. `launcher kill at=2s` and `init kill at=2s` are about fleetrun and fleetrun-init "
   "themselves."},
  {"inject_seed", "", "", "None", "N", Group::watch, kOurs, Kind::value,
   "seed for --inject; a random one is chosen and logged otherwise"},

  {"log_dir", "", "PADDLE_LOG_DIR PET_LOG_DIR", "log", "DIR", Group::logs, kPaddle, Kind::value,
   "directory of the logs"},
  {"log_overwrite", "", "PADDLE_LOG_OVERWRITE", "False", "BOOL", Group::logs, kPaddle, Kind::value,
   "no effect: each attempt has logs of its own"},
  {"log_level", "", "PADDLE_LOG_LEVEL", "INFO", "LEVEL", Group::logs, kPaddle, Kind::value,
   "of the LAUNCH lines: DEBUG, INFO, WARNING, ERROR or CRITICAL",
   "Jobs that are started with --compat=paddle, or with flags of Paddle's documents (--server_num, "
   "--trainer_num, --servers, --trainers, --devices, --run_mode), first list all their settings, as Paddle's "
   "launcher does. Others list them at DEBUG."},
  {"job_id", "", "PADDLE_JOB_ID", "default", "NAME", Group::logs, kPaddle, Kind::value,
   "name of the job: 1 to 64 letters, digits, '.', '_' or '-'"},
  {"show", "", "", "first", "first|all|fail|none|RANK,…", Group::logs, kOurs, Kind::value,
   "whose output is shown here: first, all, fail, none, ranks of trainers (0,3 or 0-3), or roles (server)",
   "Of `first` the bytes are shown as they are; otherwise whole lines, after the name of the process. "
   "`fail` shows the last lines of a process when it fails. A progress bar is one line, and is repainted "
   "on a terminal, where control characters other than tabs and colours are made visible."},
  {"color", "", "", "auto", "auto|always|never", Group::logs, kOurs, Kind::value,
   "colours of the names before shown lines; auto: on a terminal",
   "NO_COLOR, or TERM=dumb, turns them off."},
  {"log_through", "", "", "False", "", Group::logs, kOurs, Kind::flag,
   "put a writer between each process and its log, which keeps to --log_cap",
   "", "True"},
  {"log_cap", "", "", "None", "SIZE", Group::logs, kOurs, Kind::value,
   "size at which a log is rotated, for example 64M; needs --log_through"},
  {"log_keep", "", "", "5", "N", Group::logs, kOurs, Kind::value,
   "rotated logs kept for each process"},
  {"tee", "-t", "PET_TEE", "0", "STREAMS", Group::logs, kTorchrun, Kind::value,
   "streams to show beside the log: 3 shows all trainers, 0:3,2:1 shows trainers 0 and 2"},
  {"redirects", "-r", "PET_REDIRECTS", "0", "STREAMS", Group::logs, kTorchrun, Kind::value,
   "streams that go to the log alone: 3 shows none; every stream is in the log in any case"},
  {"local_ranks_filter", "", "PET_LOCAL_RANKS_FILTER", "", "RANK,…", Group::logs, kTorchrun, Kind::value,
   "trainers to show, as --show"},

  {"auto_cluster_config", "", "PADDLE_AUTO_CLUSTER", "0", "BOOL", Group::accepted, kPaddle, Kind::value,
   "passed on as PADDLE_AUTO_CLUSTER"},
  {"enable_gpu_log", "", "", "True", "BOOL", Group::accepted, kPaddle, Kind::value,
   "no effect"},
  {"legacy", "", "", "False", "BOOL", Group::accepted, kPaddle, Kind::value,
   "no effect: there is one launcher"},
  {"sort_ip", "", "PADDLE_SORT_IP", "False", "BOOL", Group::accepted, kPaddle, Kind::value,
   "no effect: --rank says which rank a host has"},
  {"enable_auto_mapping", "", "", "False", "BOOL", Group::accepted, kTorchrun, Kind::value,
   "no effect: ranks follow --rank and the order of the hosts"},
  {"rank_mapping_path", "rank_mapping_file", "", "None", "FILE", Group::accepted, kTorchrun, Kind::value,
   "no effect, as --enable_auto_mapping"},
  {"cluster_topo_path", "cluster_topo_file", "", "None", "FILE", Group::accepted, kTorchrun, Kind::value,
   "no effect, as --enable_auto_mapping"},
  {"tls", "", "", "False", "", Group::accepted, kOurs, Kind::flag,
   "no effect: all that crosses hosts is encrypted without it",
   "", "True"},
  {"backend", "", "", "auto", "NAME", Group::accepted, kTorchrun, Kind::value,
   "no effect: trainers with devices choose theirs, those without use gloo"},
  {"standalone", "", "PET_STANDALONE", "False", "", Group::accepted, kTorchrun, Kind::flag,
   "no effect: a job on one host needs nobody else",
   "", "True"},
  {"rdzv_backend", "", "PET_RDZV_BACKEND", "static", "NAME", Group::accepted, kTorchrun, Kind::value,
   "static or c10d: the host of the endpoint coordinates; etcd-v2, etcd: an etcd v3 there"},
  {"rdzv_endpoint", "", "PET_RDZV_ENDPOINT", "", "HOST:PORT", Group::accepted, kTorchrun, Kind::value,
   "where the hosts meet, as --master",
   "No effect on one host, unless --rdzv_backend names an etcd."},
  {"rdzv_id", "", "PET_RDZV_ID", "None", "NAME", Group::accepted, kTorchrun, Kind::value,
   "the job's id, passed on as TORCHELASTIC_RUN_ID; default: --job_id"},
  {"rdzv_conf", "", "PET_RDZV_CONF", "", "NAME=VALUE,…", Group::accepted, kTorchrun, Kind::value,
   "no effect: --join_timeout and --elastic_timeout set the waiting times"},
  {"monitor_interval", "", "PET_MONITOR_INTERVAL", "0.1", "SECONDS", Group::accepted, kTorchrun, Kind::value,
   "no effect: deaths are seen when they happen"},
  {"start_method", "", "PET_START_METHOD", "spawn", "NAME", Group::accepted, kTorchrun, Kind::value,
   "no effect"},
  {"signals_to_handle", "", "PET_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "SIGNAL,…",
   Group::accepted, kTorchrun, Kind::value,
   "passed on as TORCHELASTIC_SIGNALS_TO_HANDLE; --signal_map says what signals do"},
  {"numa_binding", "", "PET_NUMA_BINDING", "None", "node|socket|exclusive|core-complex",
   Group::accepted, kTorchrun, Kind::value,
   "node and socket are --bind=numa, the others --bind=core"},
  {"log_line_prefix_template", "", "PET_LOG_LINE_PREFIX_TEMPLATE", "None", "TEXT",
   Group::accepted, kTorchrun, Kind::value,
   "no effect: shown lines begin with role and rank"},
  {"duplicate_stdout_filters", "", "PET_DUPLICATE_STDOUT_FILTERS", "", "TEXT,…",
   Group::accepted, kTorchrun, Kind::value,
   "no effect"},
  {"duplicate_stderr_filters", "", "PET_DUPLICATE_STDERR_FILTERS", "", "TEXT,…",
   Group::accepted, kTorchrun, Kind::value,
   "no effect"},
  {"event_log_handler", "", "PET_EVENT_LOG_HANDLER", "null", "NAME", Group::accepted, kTorchrun, Kind::value,
   "no effect: events are in events.jsonl"},
  {"logs_specs", "", "PET_LOGS_SPECS", "None", "NAME", Group::accepted, kTorchrun, Kind::refused,
   "refused",
   "", "plug-ins of torchrun are not run"},
  {"virtual_local_rank", "", "PET_VIRTUAL_LOCAL_RANK", "None", "", Group::accepted, kTorchrun, Kind::refused,
   "refused",
   "", "each process finds its device by LOCAL_RANK"},
  {"auto_parallel_config", "", "PADDLE_AUTO_PARALLEL_CONFIG", "None", "FILE",
   Group::accepted, kPaddle, Kind::value,
   "passed on as PADDLE_AUTO_PARALLEL_CONFIG; the script runs, and nothing is tuned before"},
  {"use_paddlecloud", "", "", "False", "", Group::accepted, kTorchrun, Kind::flag,
   "no effect: PADDLE_TRAINERS and POD_IP of a Paddle cloud are found without it", "", "True"},
  {"print_config", "", "", "None", "BOOL", Group::accepted, kTorchrun, Kind::value,
   "no effect"},
  {"auto_tuner_json", "", "", "None", "FILE", Group::accepted, kPaddle, Kind::refused,
   "refused: there is no tuner",
   "", kNoTuner},
  {"heter_workers", "heter_worker_num heter_devices heter_worker_device", "", "None", "…",
   Group::accepted, kTorchrun, Kind::refused,
   "refused: all trainers are alike",
   "", kNoHeter},
  {"coordinators", "coordinator_num", "", "None", "…", Group::accepted, kTorchrun, Kind::refused,
   "refused: there is no federated learning",
   "", kNoCoordinator},
  {"elastic_server", "np scale force elastic_pre_hook", "", "None", "…",
   Group::accepted, kTorchrun, Kind::refused,
   "refused: --nnodes=MIN:MAX makes a job elastic, --master=etcd://HOST:PORT names its etcd",
   "", kNoElasticServer},
};
// clang-format on

}  // namespace

std::span<const Setting> settings() noexcept {
  return kSettings;
}

std::span<const Setting> other_flags() noexcept {
  static constexpr Setting all[] = {
      {"help", "-h", "", "False", "", Group::others, kOurs, Kind::flag, "show the flags", "", "True"},
      {"version", "", "", "False", "", Group::others, kOurs, Kind::flag, "show the version", "", "True"},
      {"completion", "", "", "None", "bash|zsh|fish", Group::others, kOurs, Kind::value,
       "print the script by which a shell completes the command line",
       "The installed ones are found by themselves."},
      {"job_schema", "", "", "False", "", Group::others, kOurs, Kind::flag,
       "print the JSON schema of job files, for editors", "", "True"},
  };
  return all;
}

std::span<const GroupTitle> group_titles() noexcept {
  static constexpr GroupTitle all[] = {
      {Group::processes, "what to start"},
      {Group::hosts, "where"},
      {Group::logs, "logs and names"},
      {Group::run, "how to run"},
      {Group::restart, "restart and elasticity"},
      {Group::watch, "watching and ending"},
      {Group::accepted, "accepted for those who come from Paddle's launcher or torchrun"},
      {Group::others, "others"},
  };
  return all;
}

std::vector<std::string> spellings(const Setting& row) {
  std::vector<std::string> flags = {"--" + std::string(row.key)};
  for (const std::string& alias : split(row.aliases, ' '))
    flags.push_back(alias.starts_with('-') ? alias : "--" + alias);
  return flags;
}

std::string shown_default(const Setting& row) {
  return row.kind == Kind::flag || row.initial == "None" ? std::string() : std::string(row.initial);
}

std::vector<std::string> choices_of(std::string_view value) {
  std::vector<std::string> choices = split(value, '|');
  std::erase_if(choices, [](const std::string& choice) {
    return !std::all_of(choice.begin(), choice.end(),
                        [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  });
  return choices;
}

const Setting& setting(std::string_view key) noexcept {
  for (const Setting& row : kSettings) {
    if (row.key == key) return row;
  }
  assert(!"a setting that is not in the table");
  return kSettings[0];
}

}  // namespace fleetrun::launcher
