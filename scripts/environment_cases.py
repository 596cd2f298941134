"""What scripts/compare-environments runs, and which differences are intended."""

# Flags by case; {0}, {1} … are free ports of 127.0.0.1.
CASES = {
    "collective": ("paddle33", ["--nproc_per_node=2"]),
    "collective-ips": ("paddle33", ["--ips=127.0.0.1", "--start_port={0}", "--nproc_per_node=2"]),
    "collective-devices": ("paddle33", ["--devices=0,1"]),
    "ps-numbers": ("paddle33", ["--server_num=2", "--trainer_num=2"]),
    "ps-lists": ("paddle33", ["--servers=127.0.0.1:{0},127.0.0.1:{1}",
                              "--trainers=127.0.0.1:{2},127.0.0.1:{3}"]),
    "ps-legacy": ("paddle33", ["--server_num=1", "--worker_num=2"]),
    "rpc": ("paddle33", ["--run_mode=rpc", "--master=127.0.0.1:{0}", "--nproc_per_node=2"]),
    "torchrun": ("torch", ["--standalone", "--nproc-per-node=2", "--max-restarts=2", "--role=learner"]),
    "torchrun-static": ("torch", ["--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1",
                                  "--master-port={0}"]),
}
SHELL_CASES = {"collective-devices": {"CUDA_VISIBLE_DEVICES": "0,1"}}
# (case pattern, variable pattern, what differs, why). What: only-peer, only-ours, value.
INTENDED = [
    ("*", "FLEETRUN_*", "only-ours", "fleetrun's own"),
    ("*", "CPU_NUM", "only-ours",
     "one replica of a program for each trainer, unless the user says otherwise"),
    ("*", "PATH", "value", "`python` in a pipe command is the script's own interpreter"),
    ("*", "OMP_NUM_THREADS", "value", "the cores of a process, where the user has not said"),
    ("*", "CUSTOM_DEVICE_ROOT", "only-peer", "a side effect of importing paddle in the launcher"),
    ("*", "PADDLE_BACKUP_ENV_PATH", "only-peer",
     "the whole environment is not written to disk: secrets are in it"),
    *[("collective*", name, "only-ours", "torchrun's, in the same job") for name in
      ("RANK", "WORLD_SIZE", "LOCAL_*", "GROUP_*", "ROLE_*", "MASTER_*", "TORCH*")],
    *[("torchrun*", name, "only-ours", "Paddle's, in the same job") for name in ("PADDLE_*", "POD_NAME")],
    ("torchrun*", "TORCHELASTIC_USE_AGENT_STORE", "value",
     "trainer 0 opens the store itself, and not the launcher"),
    ("torchrun*", "TORCHELASTIC_ERROR_FILE", "only-peer", "fleetrun reads the traceback from the log"),
    ("torchrun*", "TORCHELASTIC_RUN_ID", "value", "the job's id, where torchrun draws one or says none"),
    ("ps-legacy", "PADDLE_WITH_GLOO", "value", "there is one launcher: as with --trainer_num"),
    ("ps-legacy", "PADDLE_COORDINATOR_ENDPOINTS", "only-peer", "there are no coordinators"),
    *[("ps-legacy", name, "only-peer", "the old launcher gives device 0 to trainers on the CPU as well")
      for name in ("FLAGS_selected_*", "*_VISIBLE_DEVICES")],
    *[("ps-legacy", name, "only-ours", "as with --trainer_num")
      for name in ("POD_NAME", "PADDLE_LOG_DIR", "PADDLE_ROLE", "PADDLE_NNODES")],
]
