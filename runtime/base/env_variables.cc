#include "runtime/base/env_variables.h"

namespace fleetrun {

// clang-format off
std::span<const EnvVariable> other_variables() noexcept {
  using enum EnvSection;
  static constexpr EnvVariable all[] = {
    {"FLEETRUN_SECRET_FILE", every,
     "the file with this run's secret, mode 0600, in parameter-server and collective jobs",
     "Servers and trainers authenticate to each other with it before anything else. Processes that are "
     "started by hand may be given a file of their own, the same on both sides; without the variable they "
     "use the secret of their user, which is made at first use."},
    {"FLEETRUN_INSECURE", every, "1: the processes of a job do not authenticate to each other (--insecure)",
     "They warn about it, and a process with this does not talk to one without.", true},
    {"FLEETRUN_HEARTBEAT_FD", every, "a descriptor for signs of life and values (--hang_timeout, --metrics)",
     "The line `step 120` says that the process has reached that step, `step 120 0.35` also how many "
     "seconds of its own work it took, any other bytes that it lives. Writing never blocks and never raises "
     "SIGPIPE; what does not fit is dropped (EAGAIN). Present with --hang_timeout, with restarts, and where "
     "--inject waits for a step. The Python package writes there: `fleetrun.heartbeat(step, seconds)`, and "
     "by itself in each batch.", true},
    {"FLEETRUN_READY_FD", every, "a descriptor of a role that is ready by it: a line written there says so",
     "See fleetrun-jobfile(5).", true},
    {"FLEETRUN_LISTEN", every,
     "descriptors of the sockets by which fleetrun holds the ports of this process",
     "The process listens beside them, so that nobody else takes the port meanwhile.", true},
    {"FLEETRUN_WORLD_FD", every,
     "a descriptor of a job of several hosts, a pipe that does not block: who takes part",
     "There is one line of JSON for each generation of the membership, and the last one counts: epoch (the "
     "number of the generation), attempt, run, hash, in_place, node, node_rank, nodes, and trainers and "
     "servers with rank, endpoint, node and id. The Python package reads it: `fleetrun.elastic.world()`.",
     true},
    {"FLEETRUN_MEMBER_FD", collective,
     "with --on_failure=replace: a socket on which a process hears who takes whose place",
     "See fleetrun-recovery(7). The Python package reads it.", true},
    {"FLEETRUN_STANDBY", collective,
     "1: the process has no rank yet, and stands by to take the place of one (--on_failure=replace)",
     "The variables that tell a rank are not set until it has one.", true},
    {"FLEETRUN_SERVER_FIGURES", every,
     "of parameter servers: the file that a server replaces once a second with its metrics",
     "One line of JSON, for `fleetrun top`, `fleetrun status` and --metrics. The Python package writes it "
     "by itself.", true},
    {"FLEETRUN_FAILED_BATCH", every,
     "of trainers: the file for the batch that a trainer could not train on",
     "`fleetrun report` packs it and `fleetrun replay` runs it again. The Python package writes it by "
     "itself: a line of text that ends an epoch, or a step of a program that fails, with what it was fed "
     "and the parameters that it reads. What is larger than 32 MiB is not kept."},
    {"FLEETRUN_COMPAT", every, "`paddle` under --compat=paddle"},
    {"FLEETRUN_PIPE", every, "of the processes of a dataset's pipe command: which command they belong to",
     "Those that have left its process group are found by it when the command ends."},
    {"PADDLE_AUTO_PARALLEL_CONFIG PADDLE_AUTO_PARALLEL_STAGE", collective,
     "value of --auto_parallel_config, and `run`, where the flag is given"},
    {"GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME", collective,
     "the network interface that has this host's address, in jobs of several hosts, unless they are set "
     "already",
     "Gloo and NCCL listen there and nowhere else."},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", torchrun, "1, unless it is set already, as torchrun does"},
    {"PADDLE_BACKUP_ENV_PATH", paddle, "a JSON file with the lists that are too long for the environment",
     "Lists of endpoints longer than PADDLE_ENV_LIMIT_LEN are there instead of in their variables.", true},

    {"OMP_NUM_THREADS", modules, "cores per process, unless it is set already"},
    {"CPU_NUM", modules, "1, unless it is set already: the number of replicas of a program in one process",
     "It counts in fleetrun's (CompiledProgram.with_data_parallel, fluid.ParallelExecutor) and in Paddle's."},
    {"CUDA_VISIBLE_DEVICES", modules,
     "the devices of the trainers of this host, where --gpus names others than the first that are visible",
     "Of devices that were cut by name or by the job file it shows the process its own alone. Otherwise it "
     "is as inherited. Either way LOCAL_RANK, and FLAGS_selected_gpus, count in the list that it shows. "
     "XPU_VISIBLE_DEVICES and ASCEND_RT_VISIBLE_DEVICES are the same for --xpus and --npus."},
    {"PADDLE_XCCL_BACKEND FLAGS_selected_npus", collective,
     "the plug-in of Paddle's whose devices the trainers have, and which of them are this one's",
     "With --npus, or where PADDLE_XCCL_BACKEND is inherited; PADDLE_DISTRI_BACKEND is then `xccl`. Devices "
     "of another plug-in are in FLAGS_selected_NAMEs."},
    {"PATH", modules, "led by a directory in which `python` and `python3` are the interpreter of the job"},
    {"PYTHONPATH", modules, "led by the alias package under --compat=paddle"},

    {"FLEETRUN_BAD_LINE", runtime,
     "how datasets handle malformed lines unless their script says so itself (--bad_line)"},
    {"FLEETRUN_EMPTY_DATASET", runtime,
     "allow: an epoch over a dataset without an example is a warning; default: refuse, an error",
     "In a job of several trainers it is a warning in any case: one of them may have no files."},
    {"FLEETRUN_PASSES_OFF", runtime,
     "passes that train_from_dataset does not apply to a program, separated by commas",
     "For debugging: dead_code, linear_act, linear_sgd, batch_norm_act, lookup_concat, memory, or all. "
     "Results are the same with and without; linear_sgd, which updates parameters within the product that "
     "makes their gradient, may change the last bit of an update."},
    {"FLEETRUN_TRACE", runtime,
     "a folder for timelines of what readers, trainer threads, servers and operators do",
     "Each epoch of train_from_dataset and infer_from_dataset writes trainer-RANK.pass-N.json there, each "
     "program that Executor.run trains trainer-RANK.steps-N.json, and each parameter server "
     "server-RANK.run-N.json. Perfetto and chrome://tracing open them; fleetrun-trace(1) sets the variable "
     "for a job, joins these files, and says more."},
    {"FLEETRUN_EVENTS", runtime,
     "a folder to which train_from_dataset appends what it fetches, as trainer-RANK.jsonl",
     "There is a line of JSON every print_period batches and at the end of an epoch: time, batch, batches, "
     "examples, values (means over these batches of the first thread). `fleetrun plot` draws them."},
    {"FLAGS_check_nan_inf", runtime,
     "1: training stops at the first operator that makes NaN or an infinity",
     "The error names the operator, its variable and the batch. It holds for train_from_dataset, and for "
     "Executor.run where it is not collective and not on replicas. It is slower, and for finding where a "
     "loss went wrong. Without it training goes on."},
    {"FLAGS_nccl_nrings PADDLE_PG_TIMEOUT", runtime,
     "what ParallelEnv().nrings and pg_timeout (milliseconds) say; without further effect"},
    {"PADDLE_PSERVERS", runtime,
     "hosts of the servers, all at PADDLE_PORT, where PADDLE_PSERVERS_IP_PORT_LIST is not set",
     "Clusters of Paddle 1.5 say it so."},
    {"PADDLE_PSERVER_ID", runtime,
     "of GeneralRoleMaker: which of PADDLE_PSERVERS_IP_PORT_LIST a server is that has no POD_IP and "
     "PADDLE_PORT"},
    {"PADDLE_CURRENT_IP PADDLE_PSERVER_ENDPOINTS PADDLE_PSERVER_IPS PADDLE_PSERVER_PORT", runtime,
     "what scripts of before Fleet read: the own address, and those of the servers",
     "Nobody needs to set them: in a job with servers `import paddle` makes them of the others, with "
     "PADDLE_TRAINING_ROLE and PADDLE_TRAINERS, once --compat=paddle is given. The last two are there only "
     "where all servers have the same port."},
    {"FLAGS_fuse_parameter_memory_size FLAGS_fuse_parameter_groups_size", runtime,
     "size of the buckets in which collective trainers reduce gradients: MiB, and number of gradients",
     "0 MiB means one bucket, below 0 one for each layer. Default: `fuse_grad_size_in_MB` of the strategy "
     "(32), and no limit on the number."},
    {"FLEETRUN_COLLECTIVE", runtime, "how ranks reach each other: auto (the default), shm or gloo",
     "`auto` is shared memory within a host and TCP between hosts, `gloo` TCP everywhere. See "
     "fleetrun-collective(7)."},
    {"FLEETRUN_COLLECTIVE_TIMEOUT", runtime,
     "seconds that a collective call waits for the other ranks; default: 1800"},
    {"FLEETRUN_MEET_TIMEOUT", runtime, "seconds that a rank waits for the others to come; default: 300"},
    {"FLEETRUN_SENTINEL", runtime,
     "what data parallel training of PyTorch modules compares between ranks at the end of each step: "
     "rotating (the default), every or off (--sentinel)",
     "rotating compares a part of the parameters, all within some steps, whose number rank 0 prints; every "
     "compares all of them."},
    {"FLEETRUN_TORCH_GLOO", runtime,
     "1: groups of PyTorch's backend gloo are made by backend \"fleetrun\"; default: 0",
     "For programs that know no other name, on CPUs, with PyTorch 2.15 or newer: `import torch` does it "
     "where fleetrun is installed from a wheel, else `import fleetrun.distributed.torch_backend`."},
    {"FLEETRUN_READER_PROCESSES", runtime,
     "number of processes that share the work of a pipe command; default: 1",
     "It is for pipe commands made with the package's MultiSlotDataGenerator: run_from_stdin() without an "
     "argument. The text and its order are the same."},
    {"FLEETRUN_PS_CACHE", runtime,
     "how many steps old a row may be that a trainer uses again instead of pulling it; default: 0",
     "The trainer keeps the rows of hot keys in 256 MiB of its memory. 0 is for none; only for asynchronous "
     "modes."},
    {"FLEETRUN_PS_GRADIENTS FLEETRUN_PS_ROWS", runtime,
     "how gradients travel to parameter servers, and rows from them: float32 (the default), fp16, bf16 or "
     "int8",
     "What shortening cuts off a gradient is kept and added to the next one of the same parameter."},
    {"FLEETRUN_PS_DEADLINE", runtime, "seconds that a pull or a push may take; default: 0, without limit",
     "The trainer then fails with the name of the server that has not answered. A server whose process is "
     "stopped, or whose host does not answer, is gone after 15 seconds in any case. At most 1,024 requests "
     "and, except in sync mode, 256 MiB are under way from a trainer to a server; further ones wait."},
    {"FLEETRUN_PS_WAIT_WARNING", runtime,
     "seconds after which trainers that all wait for each other say who waits in which call; default: 60",
     "One of them makes other calls than the others, and none goes on. 0: never. `fleetrun ps stat` shows "
     "who waits at any time."},
    {"FLEETRUN_PS_TRANSPORT", runtime,
     "how trainers and parameter servers reach each other: auto (the default), shm, unix or tcp",
     "`auto` is shared memory where a trainer runs on the server's host as the server's user, else a unix "
     "socket on the server's host, else TCP. The others let a trainer use that way alone; a server with "
     "`tcp` offers no other, and with `unix` no shared memory."},
    {"FLEETRUN_PS_MEMORY", runtime,
     "memory for rows that may leave memory, on one server: bytes, or with K, M, G or T",
     "It is shared by all such tables. Default: a quarter of the host's memory, or of the control group's "
     "when that is less."},
    {"FLEETRUN_PS_DISK", runtime,
     "directory for the rows beyond FLEETRUN_PS_MEMORY, best on a local SSD; default: /var/tmp"},
    {"FLEETRUN_PS_MEMORY_LIMIT", runtime,
     "memory that a parameter server may use before it refuses new rows: bytes, or with K, M, G or T",
     "Rows that are there are pulled and pushed beyond it. 0 is no limit. Default: 95 % of what its "
     "container may have (cgroups of version 1 or 2)."},
    {"FLEETRUN_PS_CHECKPOINT FLEETRUN_PS_CHECKPOINT_FOUND FLEETRUN_PS_CHECKPOINT_INTERVAL "
     "FLEETRUN_PS_LOG_SYNC FLEETRUN_PS_REPLICAS", runtime,
     "values of --ps_checkpoint, --ps_checkpoint_found, --ps_checkpoint_interval, --ps_log_sync and "
     "--ps_replicas",
     "The directory is absolute, and also set where --max_restart alone makes servers keep their state. A "
     "server and its trainers that are started by hand read them too."},
    {"FLEETRUN_PS_STANDBY", runtime,
     "the endpoints at which a parameter server serves for others whose hosts are lost"},
    {"FLEETRUN_PS_PROCESSES", runtime,
     "the file that says how many processes serve the servers, where they move (--server_num=2:5)",
     "fleetrun writes it, and server processes read it while they run."},
    {"FLEETRUN_PS_UPLOAD_CMD FLEETRUN_PS_DOWNLOAD_CMD", runtime,
     "values of --ps_upload_cmd and --ps_download_cmd"},
    {"FLEETRUN_PS_RUN", runtime, "tells this run of the job, and its restarts as a whole, from others",
     "A server continues with the state that it has kept in the same run, and with another run's as "
     "FLEETRUN_PS_CHECKPOINT_FOUND says."},
    {"FLEETRUN_PS_SERVED", runtime,
     "the FLEETRUN_PS_RUN in which an earlier process of this server has served",
     "A server that is started again with it, and finds nothing of what that process kept, does not start: "
     "empty tables would take the place of those that were lost."},
    {"FLEETRUN_PS_RECOVER", runtime,
     "seconds for which trainers wait for a server that is gone, and servers for a trainer whose connection "
     "has ended",
     "Default: 120 where FLEETRUN_PS_CHECKPOINT is set, else 0."},
    {"HADOOP_HOME", runtime, "where `bin/hadoop` is, by which datasets read files of a remote file system"},
    {"FLEETRUN_FAILPOINT", runtime, "for tests: delays at named places, as NAME=DURATION"},

    {"VIRTUAL_ENV", launcher, "the environment whose interpreter runs a .py"},
    {"PYTHON_EXEC TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE TMPDIR", launcher,
     "of `fleetrun torchrun`: the interpreter, what stands before lines of --tee, and where logs go without "
     "--log-dir"},
    {"HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL XPU_VISIBLE_DEVICES "
     "XPULINK_VISIBLE_DEVICES", launcher,
     "like CUDA_VISIBLE_DEVICES, which comes first: which devices there are, and by what names"},
    {"PADDLE_ENV_LIMIT_LEN", launcher,
     "bytes above which a list of endpoints goes to a file; default: 48000"},
    {"DISTRIBUTED_TRAINER_ENDPOINTS", launcher,
     "endpoints of more than one host, in place of --ips; PADDLE_TRAINER_ENDPOINTS is read in the same way"},
    {"FLEETRUN_RUN_DIR", launcher, "where running jobs are registered, for `fleetrun status` and its likes",
     "Default: a directory of the user's below XDG_RUNTIME_DIR or /tmp."},
    {"XDG_RUNTIME_DIR XDG_CONFIG_HOME HOME", launcher,
     "where the default directories of running jobs and of the secret are"},
    {"BROWSER DISPLAY WAYLAND_DISPLAY WSL_DISTRO_NAME", launcher,
     "what opens the page of `fleetrun ui --open`, or that a desktop is there"},
    {"NO_COLOR TERM", launcher,
     "no colours under --color=auto where NO_COLOR is not empty or TERM is `dumb`"},
    {"SSH_CONNECTION", launcher,
     "the address at which this host was reached, on hosts that fleetrun itself logs in to"},
    {"USER", launcher, "part of the name of the folder that --ship makes on other hosts"},
    {"LC_ALL LC_MESSAGES LANG LANGUAGE LC_CTYPE", launcher,
     "which language help and errors are in, as for other programs: Chinese where they say zh, else English",
     "The locale need not be installed. LANGUAGE comes first, except in the locales C and C.UTF-8. "
     "Events and JSON are English everywhere."},
    {"PWD HOSTNAME PYTHONHOME LD_PRELOAD DEBUGINFOD_URLS", launcher,
     "name the directory and the host, and are settled for the tools that read stacks"},

    {"SLURM_JOB_ID SLURM_JOBID SLURM_STEP_ID SLURM_STEPID", schedulers,
     "there is an allocation of Slurm, or a step of one"},
    {"SLURM_JOB_NODELIST SLURM_NODELIST SLURM_STEP_NODELIST SLURMD_NODENAME SLURM_NODEID "
     "SLURM_LAUNCH_NODE_IPADDR", schedulers,
     "its hosts, and which of them this is"},
    {"SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_STEP_NUM_NODES SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE "
     "SLURM_TASKS_PER_NODE SLURM_STEP_TASKS_PER_NODE SLURM_STEP_NUM_TASKS", schedulers,
     "how many hosts and tasks it has"},
    {"SLURM_HET_SIZE", schedulers, "how many components a heterogeneous job has"},
    {"SLURM_JOB_GPUS SLURM_STEP_GPUS SLURM_GPUS_ON_NODE", schedulers, "its devices on this host"},
    {"PBS_NODEFILE OAR_NODEFILE LSB_DJOB_HOSTFILE PE_HOSTFILE", schedulers,
     "the file in which PBS, OAR, LSF or Grid Engine lists the hosts of a job: they are reached over ssh"},
    {"LSB_MCPU_HOSTS LSB_HOSTS", schedulers, "the hosts of a job of LSF where there is no such file"},
    {"PBS_JOBID OAR_JOB_ID LSB_JOBID JOB_ID", schedulers, "what such a job is called"},
    {"PRTE_MCA_prte_default_hostfile OMPI_MCA_orte_default_hostfile I_MPI_HYDRA_HOST_FILE HYDRA_HOST_FILE",
     schedulers, "the host file of Open MPI, Intel MPI or MPICH: read as --hostfile"},
    {"OMPI_COMM_WORLD_SIZE PMI_SIZE HOROVOD_SIZE PBS_NODENUM", schedulers,
     "mpirun, horovodrun or pbsdsh starts fleetrun several times: "
     "each would start the job on all of these hosts"},
    {"KUBERNETES_SERVICE_HOST", schedulers, "this is a pod of Kubernetes"},
    {"JOB_COMPLETION_INDEX JOB_INDEX JOBSET_NAME REPLICATED_JOB_NAME REPLICATED_JOB_REPLICAS", schedulers,
     "which pod of an indexed job, or of a JobSet, this is"},
    {"VC_TASK_INDEX", schedulers,
     "which pod of a task of Volcano this is; VC_TASK_HOSTS and VC_TASK_NUM name its pods"},
    {"PADDLE_TRAINERS", schedulers, "hosts of the pods of a PaddleJob, in place of --ips"},
    {"PADDLE_ELASTIC_SERVER PADDLE_ELASTIC_NP PADDLE_ELASTIC_JOB_ID", schedulers,
     "of an elastic PaddleJob: its etcd, its number of pods or MIN:MAX, and its id",
     "They stand for --master=etcd://HOST:PORT, --nnodes and --job_id."},

    {"TINI_SUBREAPER", init, "set: orphans come to it although it is not pid 1"},
    {"TINI_KILL_PROCESS_GROUP", init, "set: signals go to the command's process group"},
    {"TINI_VERBOSITY", init, "how much it logs"},
    {"DUMB_INIT_SETSID", init, "0: the command stays in the session"},
    {"DUMB_INIT_DEBUG", init, "1: it logs more"},

    {"FLEETRUN_EVENT", events, "what has happened: start, failure, restart or end"},
    {"FLEETRUN_EVENT_JOB FLEETRUN_EVENT_LOG_DIR", events, "name of the job, directory of its logs"},
    {"FLEETRUN_EVENT_PROCESS FLEETRUN_EVENT_HOST", events, "the process and the host that it is about"},
    {"FLEETRUN_EVENT_CAUSE FLEETRUN_EVENT_WHY", events, "why: in a word (crash, oom, preemption, hang, "
     "not_started; of the end failed, stopped, timed_out, refused), and in a sentence"},
    {"FLEETRUN_EVENT_ATTEMPT FLEETRUN_EVENT_BACKOFF_MS FLEETRUN_EVENT_EXIT_STATUS", events,
     "the attempt that failed or begins, the time until it does, the exit status",
     "What is not known is not set. The same is a line of JSON on its standard input."},

    {"PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST "
     "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST", cleared,
     "of jobs on different kinds of machines", "", true},
    {"PADDLE_COORDINATOR_ENDPOINTS", cleared, "of federated jobs", "", true},
    {"PADDLE_LOCAL_DEVICE_IDS PADDLE_WORLD_DEVICE_IDS PADDLE_TRAINING_ROLE", cleared,
     "of Paddle's own launchers", "", true},
    {"TORCHELASTIC_ERROR_FILE", cleared,
     "of torchrun; `fleetrun torchrun` names a file for PyTorch's @record there, error.json", "", true},
  };
  return all;
}
// clang-format on

std::span<const EnvSectionTitle> env_section_titles() noexcept {
  using enum EnvSection;
  static constexpr EnvSectionTitle all[] = {
      {every, "Every process"},
      {paddle, "Paddle's jobs of several kinds"},
      {collective, "Collective jobs, as Paddle's scripts read them"},
      {torchrun, "Collective jobs, as torchrun's scripts read them"},
      {tensorflow, "Collective jobs, as TensorFlow's scripts read them"},
      {ps, "Parameter-server jobs"},
      {rpc, "rpc jobs"},
      {modules, "Threads, devices and modules"},
      {runtime, "What users tell the processes of a job"},
      {launcher, "What fleetrun itself reads"},
      {schedulers, "What fleetrun reads of Slurm and Kubernetes"},
      {init, "What fleetrun-init reads in place of tini and dumb-init"},
      {events, "What the command of --on_event is told"},
      {cleared, "What no process inherits"},
  };
  return all;
}

}  // namespace fleetrun
