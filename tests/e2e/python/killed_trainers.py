"""Jobs of two trainers, the second of which kills itself at given places and is started again alone."""

import subprocess
import sys

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

# Of a script, up to init_worker(). Trainer 1 kills itself when its first thread has printed a batch: PLAN has
# the [pass, batch] where it does so, in one life after the other. `now` is the pass that the script is in.
LIFE = """
rank, now = fleet.worker_index(), 0
lives = len([name for name in os.listdir() if name.startswith(f"life-{rank}-")])
open(f"life-{rank}-{lives}", "w").close()


class Dying:
    def __init__(self, to):
        self.to = to

    def write(self, text):
        self.to.write(text)
        at = PLAN[lives] if rank == 1 and lives < len(PLAN) else None
        if at and at[0] == now and f"batch: [{at[1]}]" in text:
            self.to.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def flush(self):
        self.to.flush()


sys.stdout = Dying(sys.stdout)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
"""


def run(directory, script, servers, plan, arguments, *flags, lives=None, restarts=10):
    """What the job said, its logs among it. `arguments` are the script's; `lives` are those of trainer 1, one
    more than the plan has deaths where it is not said."""
    (directory / "train.py").write_text(script)
    command = [find_fleetrun(), f"--server_num={servers}", "--trainer_num=2", f"--python={sys.executable}",
               f"--max_restart={restarts}", "--restart_backoff=0", "--log_dir=logs", *flags, "train.py",
               *arguments]
    with open(directory / "said", "wb") as said:
        done = subprocess.run(command, cwd=directory, env=environment(), stdin=subprocess.DEVNULL,
                              stdout=said, stderr=said, timeout=LIMIT)
    logs = "".join(log.read_text(errors="replace") for log in sorted(directory.glob("logs/*log.*")))
    text = (directory / "said").read_text(errors="replace") + logs
    assert done.returncode == 0, text
    assert len(list(directory.glob("life-1-*"))) == (lives or len(plan) + 1), text
    return text
