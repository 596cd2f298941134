"""fleetrun under a real Slurm: a controller and two nodes, each in namespaces of its own
(tests/support/slurm_rig.py)."""

import os
import re

import pytest

from fleetrun_job import find_fleetrun
from slurm_rig import SlurmRig, need_slurm, wait_for


@pytest.fixture(scope="module")
def slurm():
    need_slurm()
    with SlurmRig(nodes=2) as rig:
        yield rig


def test_the_rig_runs_tasks_on_both_nodes(slurm):
    done = slurm.run("srun", "-N2", "--ntasks-per-node=1", "--label", "hostname")
    assert (done.returncode, sorted(done.stdout.split("\n")[:-1])) == (0, ["0: n1", "1: n2"]), done.stderr



# A trainer that says who it is, and on SIGTERM "saves" and ends.
TRAINER = """#!/bin/bash
trap 'echo "$(hostname)" > saved.$PADDLE_TRAINER_ID; exit 0' TERM
echo "rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM on $(hostname)"
echo "$(hostname)" > up.$PADDLE_TRAINER_ID.$SLURM_RESTART_COUNT
while [ ! -e go ]; do sleep 0.02; done
exit ${STATUS:-0}
"""
IDENTITY = re.compile(r"rank (\d) of (\d) on (\w+)")


class Place:
    """A directory that all nodes see, with a trainer, and the jobs that run in it."""

    def __init__(self, slurm, directory):
        self.slurm, self.directory = slurm, directory
        path = directory / "train"
        path.write_text(TRAINER)
        path.chmod(0o755)
        task = directory / "task"
        task.write_text('#!/bin/bash\ntouch "task.$SLURM_ARRAY_TASK_ID"; exec ./train\n')
        task.chmod(0o755)
        self.environment = {"HOME": str(directory), "FLEETRUN_RUN_DIR": str(directory / "run"),
                            "PWD": str(directory)}
        self.jobs = []

    def run(self, *words, **environment):
        return self.slurm.run(*words, cwd=self.directory, environment={**self.environment, **environment})

    def submit(self, *words):
        done = self.run(find_fleetrun(), "slurm", "--submit", "--output=out", *words)
        assert done.returncode == 0, done.stderr
        self.jobs.append(done.stdout.split()[-1])
        return self.jobs[-1]

    def files(self, start):
        return sorted(path.name for path in self.directory.glob(start + ".*"))

    def wait_for(self, condition, what, seconds=20):
        try:
            return wait_for(condition, what, seconds)
        except AssertionError:
            raise AssertionError(f"in vain: {what}\n{self.said()}\n{self.slurm.daemon_logs()}") from None

    def wait_for_state(self, job, *states):
        self.wait_for(lambda: self.slurm.job(job)["JobState"] in states, f"job {job} in {states}")

    def said(self):
        path = self.directory / "out"
        return path.read_text() if path.exists() else ""

    def close(self):
        for job in self.jobs:
            self.slurm.run("scancel", job)
        self.slurm.wait_until_idle()


@pytest.fixture
def place(slurm, tmp_path):
    slurm.wait_until_idle()
    here = Place(slurm, tmp_path)
    yield here
    here.close()


def ranks(text):
    return sorted(IDENTITY.findall(text))


BOTH = [("0", "2", "n1"), ("1", "2", "n2")]


def test_in_a_batch_script_fleetrun_starts_an_agent_on_every_node(place):
    (place.directory / "go").touch()
    job = place.submit("--nodes=2", "--show=all", "./train")
    place.wait_for_state(job, "COMPLETED")
    assert ranks(place.said()) == BOTH
    assert "one agent on each of 2 hosts, through srun" in place.said()
    assert "Exit code 0" in place.said()


def test_from_salloc_on_a_host_that_is_none_of_the_nodes(place):
    (place.directory / "go").touch()
    done = place.run("salloc", "-N2", "--ntasks-per-node=2", find_fleetrun(), "--show=all", "./train")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == [("0", "4", "n1"), ("1", "4", "n1"), ("2", "4", "n2"), ("3", "4", "n2")]


def test_one_launcher_per_node_started_by_srun_meets_the_others(place):
    (place.directory / "go").touch()
    done = place.run("srun", "-N2", "--ntasks-per-node=1", find_fleetrun(), "--show=all", "./train")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == BOTH


def test_two_launchers_on_a_node_are_refused(place):
    done = place.run("srun", "-N2", "--ntasks-per-node=2", find_fleetrun(), "./train")
    assert done.returncode == 125
    assert done.stderr.count("srun started 2 launchers on n1, and one per host is needed") == 4
    assert "use srun --ntasks-per-node=1" in done.stderr
    assert place.files("up") == []


def test_a_step_on_one_node_is_a_job_of_one_host(place):
    (place.directory / "go").touch()
    done = place.run("srun", "-N1", "-n1", find_fleetrun(), "--nproc_per_node=2", "--show=all", "./train")
    assert done.returncode == 0, done.stderr
    assert sorted({size for _, size, _ in ranks(done.stdout)}) == ["2"]
    assert len({host for _, _, host in ranks(done.stdout)}) == 1


def test_a_step_on_part_of_an_allocation_is_a_job_of_that_part(place):
    (place.directory / "go").touch()
    done = place.run("salloc", "-N2", "srun", "-N1", "-n1", "-w", "n2", find_fleetrun(), "--show=all",
                     "./train")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == [("0", "1", "n2")]


def test_steps_without_a_shared_home_are_told_whose_secret_differs(place):
    own_home = "mkdir -p $HOME/$(hostname); HOME=$HOME/$(hostname) exec \"$0\" \"$@\""
    done = place.run("srun", "-N2", "--ntasks-per-node=1", "bash", "-c", own_home, find_fleetrun(),
                     "--join_timeout=3", "./train")
    assert (done.returncode, place.files("up")) == (125, [])
    assert "has another secret than this host" in done.stderr
    (place.directory / "go").touch()
    agents = place.run("salloc", "-N2", "bash", "-c", own_home, find_fleetrun(), "--show=all", "./train")
    assert agents.returncode == 0, agents.stderr  # these get a secret of the job
    assert ranks(agents.stdout) == BOTH


TORCHRUN_SCRIPT = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --output=out
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
srun torchrun --nnodes 2 --nproc_per_node 1 --rdzv_id $RANDOM --rdzv_backend c10d \\
  --rdzv_endpoint $head_node_ip:29500 train.py
"""


def test_a_script_that_starts_torchrun_by_srun_runs_as_it_is(place):
    (place.directory / "torchrun").symlink_to(find_fleetrun())
    (place.directory / "train.py").write_text(
        "import os, socket\n"
        "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], 'on', socket.gethostname())\n")
    (place.directory / "batch.sh").write_text(TORCHRUN_SCRIPT)
    path = f"{place.directory}:{os.environ['PATH']}"
    done = place.run("sbatch", "--wait", "batch.sh", PATH=path)
    assert done.returncode == 0, place.said()
    assert ranks(place.said()) == BOTH


def test_tasks_of_an_array_are_jobs_of_their_own(place):
    (place.directory / "go").touch()
    (place.directory / "batch.sh").write_text(
        "#!/bin/bash\n#SBATCH --array=0-1\n#SBATCH --nodes=2\n#SBATCH --output=out.%a\n"
        f"{find_fleetrun()} --show=all --log_dir=log.$SLURM_ARRAY_TASK_ID ./train\n")
    done = place.run("sbatch", "--wait", "batch.sh")
    assert done.returncode == 0, done.stderr
    for task in (0, 1):
        assert ranks((place.directory / f"out.{task}").read_text()) == BOTH


def test_launchers_of_all_components_of_a_heterogeneous_job_meet(place):
    (place.directory / "go").touch()
    done = place.run("salloc", "-N1", ":", "-N1", "srun", "--het-group=0,1", "--ntasks-per-node=1",
                     find_fleetrun(), "--show=all", "./train")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == BOTH


def test_one_launcher_for_a_heterogeneous_job_is_refused_with_what_works(place):
    done = place.run("salloc", "-N1", ":", "-N1", find_fleetrun(), "./train")
    assert (done.returncode, place.files("up")) == (125, [])
    assert "is heterogeneous: its 2 components have 2 hosts" in done.stderr
    assert "srun --het-group=0-1 --ntasks-per-node=1 fleetrun" in done.stderr


def test_a_step_of_one_component_says_that_there_are_others(place):
    (place.directory / "go").touch()
    done = place.run("salloc", "-N1", ":", "-N1", "srun", find_fleetrun(), "--show=all", "./train")
    assert done.returncode == 0, done.stderr
    assert [size for _, size, _ in ranks(done.stdout)] == ["1"]
    assert "has 2 components, and this step runs on 1 host" in done.stderr


def test_the_exit_status_of_a_trainer_is_the_jobs(place):
    (place.directory / "go").touch()
    done = place.run("salloc", "-N2", find_fleetrun(), "./train", STATUS="7")
    assert done.returncode == 7, done.stderr


def test_servers_and_trainers_of_a_parameter_server_job_are_on_all_nodes(place):
    (place.directory / "go").touch()
    serve = place.directory / "roles"
    serve.write_text("""#!/bin/bash
echo "rank $FLEETRUN_RANK of $FLEETRUN_SIZE on $(hostname)"
[ $TRAINING_ROLE = TRAINER ] && exit 0
exec python3 -c "import os, socket, signal
s = socket.create_server((os.environ['POD_IP'], int(os.environ['PADDLE_PORT'])))
signal.pause()"
""")
    serve.chmod(0o755)
    done = place.run("salloc", "-N2", find_fleetrun(), "--server_num=1", "--trainer_num=1", "--show=all",
                     "./roles")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == sorted(BOTH * 2)


def test_a_fleetrun_that_is_not_there_on_the_nodes_is_said(place):
    done = place.run("salloc", "-N2", find_fleetrun(), "--path=/no/such/fleetrun", "./train")
    assert done.returncode == 125
    assert "2 of 2 hosts cannot be used; nothing was started" in done.stderr
    assert "n2: there is no such fleetrun there" in done.stderr


def test_more_hosts_than_the_allocation_has_are_refused(place):
    done = place.run("salloc", "-N2", find_fleetrun(), "--nnodes=3", "./train")
    assert done.returncode == 125
    assert "--nnodes is '3': Slurm job " in done.stderr and " has 2 hosts" in done.stderr


def test_a_dry_run_shows_the_nodes_in_slurms_order(place):
    done = place.run("salloc", "-N2", find_fleetrun(), "--dry-run", "./train")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^host (\d): (\w+)", done.stdout, re.M) == [("0", "n1"), ("1", "n2")]
    assert done.stdout.count("srun --nodes=2 ") == 2


LISTS = ["n1", "n[1-2]", "a,b[08-10]", "n[001-010,7]", "r[1-3]x[1-9]", "node[9-11],gpu-a[1,3-4]",
         "n[1-3],m[1-2],k"]


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_hosts_are_expanded_as_scontrol_does(place, text):
    hosts = place.slurm.run("scontrol", "show", "hostnames", text).stdout.split()
    assert hosts
    done = place.run(find_fleetrun(), "--dry-run", "./train", SLURM_JOB_ID="1", SLURM_JOB_NODELIST=text)
    assert re.findall(r"^host \d+: ([^,\n]+)", done.stdout, re.M) == hosts, done.stderr


def test_scancel_leaves_nothing(place):
    before = place.slurm.all_pids()
    job = place.submit("--nodes=2", "--nproc_per_node=2", "./train")
    place.wait_for(lambda: len(place.files("up")) == 4, "four trainers")
    place.run("scancel", job)
    place.wait_for(lambda: place.slurm.all_pids() == before, "the end of everything that the job started")
    assert place.slurm.job(job)["JobState"] in ("CANCELLED", "COMPLETING")
    assert place.slurm.job(job)["Restarts"] == "0"


def test_the_notice_before_the_end_of_the_time_drains_and_requeues(place):
    """The limit becomes a minute, and the notice is due at once:
    Slurm gives it when it looks, every half minute."""
    # Hosts that get no processor for three seconds would stand still, and not save.
    job = place.submit("--nodes=2", "--time=10", "--notice=60", "--lost_after=30", "./train")
    place.wait_for(lambda: len(place.files("up")) == 2, "two trainers")
    # Not from the start: a Slurm that looks just then gives it before
    # the job's script has begun, and never again.
    place.run("scontrol", "update", f"jobid={job}", "TimeLimit=1")
    place.wait_for(lambda: place.slurm.job(job)["Restarts"] == "1", "the requeue", seconds=60)
    assert place.files("saved") == ["saved.0", "saved.1"]
    assert "it was drained, and asks to be started again" in place.said()
    assert "Exit code 75" in place.said()
    assert f"exit status 75): job {job} goes back into the queue" in place.said()


def test_the_job_that_was_requeued_goes_on(place):
    job = place.submit("--nodes=2", "./train")
    place.wait_for(lambda: len(place.files("up")) == 2, "two trainers")
    place.run("scancel", "--batch", "--signal=USR1", job)
    place.wait_for(lambda: place.slurm.job(job)["Restarts"] == "1", "the requeue")
    place.wait_for_state(job, "PENDING")
    # Slurm would leave it alone for two minutes; within a second
    # or two its nodes would take it for the one that was ended.
    earlier = f"jobid={job}", "StartTime=now+3seconds"
    place.wait_for(lambda: place.run("scontrol", "update", *earlier).returncode == 0, "an earlier start")
    place.wait_for(lambda: len(place.files("up")) == 4, "the trainers of the second run")
    (place.directory / "go").touch()
    place.wait_for_state(job, "COMPLETED")


def test_one_task_of_an_array_is_requeued_and_the_others_go_on(place):
    """The last task of an array has the number of the array, and that would mean all of its tasks."""
    job = place.submit("--nodes=1", "--sbatch=--array=0-1", "./task")
    place.wait_for(lambda: len(place.files("task")) == 2, "a trainer of each task")

    def restarts(task):
        return place.slurm.job(f"{job}_{task}")["Restarts"]

    numbers = {task: place.slurm.job(f"{job}_{task}")["JobId"] for task in (0, 1)}
    (leader,) = [task for task, number in numbers.items() if number == job]
    place.run("scancel", "--batch", "--signal=USR1", f"{job}_{leader}")
    place.wait_for(lambda: restarts(leader) == "1", "the requeue of one task")
    assert restarts(1 - leader) == "0"
    assert place.slurm.job(f"{job}_{1 - leader}")["JobState"] == "RUNNING"
    (place.directory / "go").touch()
    place.wait_for_state(f"{job}_{1 - leader}", "COMPLETED")


def test_a_node_that_is_lost_is_named(place):
    job = place.submit("--nodes=2", "--no_requeue", "--lost_after=3", "./train")
    place.wait_for(lambda: len(place.files("up")) == 2, "two trainers")
    try:
        place.slurm.stop_node("n2")
        place.wait_for(lambda: "Exit code" in place.said(), "the end of fleetrun")
        assert "n2 was lost: no word from it for" in place.said()
        assert "Exit code 75" in place.said()
        assert place.files("saved") == ["saved.0"]
    finally:
        place.run("scancel", job)
        place.slurm.revive_node("n2")
