"""A pytest plug-in that puts `fleetrun torchrun` behind torch.distributed.run and torch.distributed.launch.

With it PyTorch's own tests of its launcher run unmodified: `pytest -p torchrun_shim FILE`, with this folder
in PYTHONPATH and fleetrun in PATH, or named by FLEETRUN. Exceptions are those that PyTorch's functions raise:
ChildFailedError where a process failed, SystemExit for a wrong command line, ValueError for what is refused.
"""

import os
import subprocess
import sys
import time

import torch.distributed.launch
import torch.distributed.run
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

USAGE = 2
# As launch.py of that version hands it on.
LOCAL_RANK = "--local_rank" if torch.__version__.startswith("1.") else "--local-rank"


def visible_devices():
    """The GPUs that PyTorch sees, which its tests replace."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return ",".join(map(str, range(count)))


def fleetrun_torchrun(words):
    """Runs the job, hands on what it prints, and raises as torch.distributed.run does."""
    environment = {"CUDA_VISIBLE_DEVICES": visible_devices(), "PYTHON_EXEC": sys.executable, **os.environ}
    done = subprocess.run([os.environ.get("FLEETRUN", "fleetrun"), "torchrun", *words], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    if done.returncode == USAGE:
        raise SystemExit(USAGE)
    if done.returncode != 0 and "ChildFailedError" in done.stderr:
        failure = ProcessFailure(local_rank=0, pid=-1, exitcode=1, error_file="")
        failure.timestamp = int(time.time())
        raise ChildFailedError("fleetrun", {0: failure})
    if done.returncode != 0:
        raise ValueError(done.stderr)


def main(args=None):
    fleetrun_torchrun(sys.argv[1:] if args is None else args)


def run(args):
    """What other launchers call, with values of their own in the place of a command line's."""
    words = []
    for action in torch.distributed.run.get_args_parser()._actions:
        value = getattr(args, action.dest, action.default)
        if action.option_strings and value != action.default:
            words.append(action.option_strings[0] + ("" if action.nargs == 0 else f"={value}"))
    fleetrun_torchrun([*words, args.training_script, *args.training_script_args])


def launch(args=None):
    """Without --use-env the script gets its local rank as its first argument."""
    words = list(sys.argv[1:] if args is None else args)
    parser = torch.distributed.run.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true")
    parsed = parser.parse_args(words)
    script = len(words) - len(parsed.training_script_args)
    if not parsed.use_env:
        words.insert(script, LOCAL_RANK + "=${local_rank}")
    fleetrun_torchrun(words)


torch.distributed.run.main = main
torch.distributed.run.run = run
torch.distributed.launch.main = launch
