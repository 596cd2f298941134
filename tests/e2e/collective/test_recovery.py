"""Trainings that go on when ranks are lost (--on_failure=replace, fleetrun-recovery(7)): whatever a rank is
lost in, each example counts once, and losses and parameters have the bits of a job without failures."""

import collections
import json
import pathlib
import subprocess

import pytest

from fleetrun_job import find_fleetrun
from torch_python import clean_environment

SCRIPT = pathlib.Path(__file__).with_name("recovery_job.py")
PROGRAM = SCRIPT.with_name("recovery_program.py")
OLDEST = (2, 6)  # of PyTorch, for backend "fleetrun"
RANKS, EPOCHS, BATCHES = 3, 2, 4
DEADLINE = 180


class Training:
    """A finished job: its status, what it said, what its ranks noted."""

    def __init__(self, done, folder):
        self.folder, self.status, self.output = folder, done.returncode, done.stdout + done.stderr
        self.places = self.output.count(" takes the place of ")

    def told(self):
        """Everything that was printed."""
        logs = sorted((self.folder / "log").glob("*log.*"))
        return self.output + "".join(f"\n---- {log.name}\n{log.read_text()}" for log in logs)

    def notes(self):
        """What counted, by rank: a line that was written again after the rank's place was taken is there
        once."""
        lines = {}
        for rank in range(RANKS):
            noted = [json.loads(line) for line in (self.folder / f"{rank}.jsonl").read_text().splitlines()]
            kept = [{key: note[key] for key in note if key not in ("pid", "at")} for note in noted]
            lines[rank] = [note for place, note in enumerate(kept) if note not in kept[:place]]
        return lines

    def parameters(self):
        """Those in which the ranks ended."""
        return [(self.folder / f"{rank}.end").read_text() for rank in range(RANKS)]


@pytest.fixture(scope="session")
def train(torch_python, tmp_path_factory):
    """train(*FLAGS, deaths=…): the script as a job of RANKS ranks."""
    python, environment = torch_python

    def run(*flags, deaths=(), script=SCRIPT, folder=None, **more):
        folder = folder or tmp_path_factory.mktemp("training")
        done = subprocess.run(
            [find_fleetrun(), f"--nproc_per_node={RANKS}", f"--python={python}", *flags, script],
            cwd=folder, text=True, capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
            env=clean_environment(**environment, **{"OUT": str(folder), "EPOCHS": str(EPOCHS),
                                                    "BATCHES": str(BATCHES), "DEATHS": json.dumps(deaths),
                                                    **more}))
        return Training(done, folder)

    return run


@pytest.fixture(scope="session")
def calm(train):
    """The training in which nothing fails, without the flag."""
    training = train()
    assert training.status == 0, training.told()
    numbers = collections.Counter(
        number for notes in training.notes().values() for note in notes for number in note.get("numbers", ()))
    assert numbers == {number: EPOCHS for number in range(RANKS * BATCHES * 4)}
    return training


def assert_same(training, calm, places):
    """It ended well, as many places were taken, and what counted is what counts where nothing fails."""
    assert training.status == 0, training.told()
    assert training.places == places, training.told()
    assert training.notes() == calm.notes(), training.told()
    assert training.parameters() == calm.parameters(), training.told()


def test_a_rank_may_be_lost_at_any_point_of_a_step(train, calm):
    deaths = [[0, 0, "forward"], [1, 1, "backward"], [2, 2, "averaged"], [0, 3, "applied"], [1, 4, "vote"],
              [2, 5, "counted"], [0, 6, "between"], [1, 7, "drawn"], [2, 8, "evaluated"]]
    training = train("--on_failure=replace", deaths=deaths)
    assert_same(training, calm, len(deaths))
    assert len(list(training.folder.glob("death.*"))) == len(deaths)


def test_several_ranks_may_be_lost_at_once_and_while_others_meet(train, calm):
    deaths = [[0, 1, "averaged"], [2, 1, "averaged"], [1, 3, "vote"], [0, 3, "applied"], [1, 4, "between"],
              [2, 5, "forward"]]
    assert_same(train("--on_failure=replace", "--spares=2", deaths=deaths), calm, len(deaths))


def test_without_spares_the_lost_process_takes_its_own_place(train, calm):
    training = train("--on_failure=replace", "--spares=0", deaths=[[0, 2, "averaged"]])
    assert_same(training, calm, 1)
    assert "trainer 0 takes the place of trainer 0 as rank 0" in training.output


def test_the_flag_alone_changes_nothing(train, calm):
    assert_same(train("--on_failure=replace"), calm, 0)


def test_without_the_flag_a_loss_ends_the_job(train):
    training = train(deaths=[[1, 2, "averaged"]])
    assert training.status == 137, training.told()
    assert training.places == 0


def test_all_start_again_where_nobody_is_left(train, calm):
    deaths = [[rank, 2, "drawn"] for rank in range(RANKS)]
    training = train("--on_failure=replace", "--max_restart=1", deaths=deaths)
    assert training.status == 0, training.told()
    assert "all processes are started again" in training.output
    assert training.parameters() == calm.parameters()


def test_a_step_that_kills_is_not_taken_for_ever(train, tmp_path):
    faults = SCRIPT.with_name("recovery_faults.py").read_text()
    (tmp_path / "recovery_faults.py").write_text(faults.replace("os.O_CREAT | os.O_EXCL", "os.O_CREAT"))
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.read_text())
    training = train("--on_failure=replace", deaths=[[1, 2, "averaged"]], script=script)
    assert training.status == 137, training.told()
    # The first time, the step before may not have counted yet for those that are left.
    assert training.places in (4, 5), training.told()
    assert "nobody takes the place of a trainer: a trainer was lost in step " in training.output


DEATHS_OF_DDP = [[0, 0, "forward"], [1, 1, "backward"], [2, 2, "averaged"], [0, 3, "applied"], [1, 4, "vote"],
                 [2, 5, "counted"], [0, 6, "between"], [1, 7, "drawn"], [2, 8, "evaluated"]]


@pytest.fixture(scope="session")
def torch_version(torch_python):
    python, more = torch_python
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                          env=clean_environment(**more), text=True, capture_output=True, check=True,
                          timeout=DEADLINE).stdout
    return tuple(int(part) for part in said.split("+")[0].split(".")[:2])


def test_pytorchs_own_ddp_over_our_backend_goes_on(train, torch_version):
    if torch_version < OLDEST:
        pytest.skip(f"PyTorch {torch_version} is older than backend \"fleetrun\" asks for, {OLDEST}")
    calm = train("--on_failure=replace", WRAP="ddp")
    assert_same(calm, calm, 0)
    assert_same(train("--on_failure=replace", deaths=DEATHS_OF_DDP, WRAP="ddp"), calm, len(DEATHS_OF_DDP))
    deaths = [[0, 1, "averaged"], [2, 1, "averaged"], [1, 3, "vote"], [0, 3, "applied"]]
    assert_same(train("--on_failure=replace", "--spares=2", deaths=deaths, WRAP="ddp"), calm, len(deaths))


def test_a_static_program_goes_on(train):
    calm = train(script=PROGRAM)
    assert_same(calm, calm, 0)
    deaths = [[0, 0, "forward"], [1, 1, "applied"], [2, 2, "vote"], [0, 3, "counted"], [1, 5, "between"],
              [2, 6, "drawn"], [0, 7, "forward"], [1, 8, "evaluated"]]
    assert_same(train("--on_failure=replace", script=PROGRAM, deaths=deaths), calm, len(deaths))


def test_a_rank_may_be_lost_in_its_first_step_while_others_are_late(train):
    calm = train(script=PROGRAM)
    assert_same(train("--on_failure=replace", script=PROGRAM, deaths=[[0, 0, "forward"]], LATE="1"), calm, 1)


def test_a_pass_of_a_static_program_is_a_step(train):
    calm = train(script=PROGRAM, PASSES="1", EPOCHS="4")
    deaths = [[0, 1, "forward"], [2, 2, "applied"], [1, 3, "vote"]]
    found = train("--on_failure=replace", script=PROGRAM, deaths=deaths, PASSES="1", EPOCHS="4")
    assert_same(found, calm, len(deaths))


REFUSED = [
    "recoverable() without a module or a program",
    "SGD has a parameter that is of none of the modules",
    "recoverable() with int, which has no state_dict() and load_state_dict()",
    "the state of Odd has an object of type object, which is not data",
    "recoverable() for the second time",
    "recoverable() within join()",
    "several steps with one batch, and what the first returned is not small data",
    "votes at (loop, epoch, pass, batch)",
]


REFUSED_OF_TORCH = [
    "the store of torch.distributed in a job with --on_failure=replace",
    "recoverable() with FSDPModule: each rank keeps a part of the training that no other has",
    "recoverable() with ZeroRedundancyOptimizer: each rank keeps",
    "recoverable() with the communication hook",
]


def test_what_of_pytorchs_cannot_be_handed_over_is_refused(train, torch_version):
    if torch_version < OLDEST:
        pytest.skip(f"PyTorch {torch_version} is older than backend \"fleetrun\" asks for, {OLDEST}")
    test_what_cannot_be_handed_over_is_refused(train, "torch", REFUSED_OF_TORCH)


@pytest.mark.parametrize(("case", "sentences"),
                         [("local", ["recoverable() with local SGD"]), ("others", REFUSED)])
def test_what_cannot_be_handed_over_is_refused(train, case, sentences):
    training = train("--on_failure=replace", script=SCRIPT.with_name("recovery_refusals.py"), CASE=case)
    logs = (training.folder / "log" / "workerlog.1").read_text()
    assert [sentence for sentence in sentences if sentence not in logs] == []
    assert "accepted" not in logs


# What torchrun's agent does: it serves a store at MASTER_PORT, and starts the ranks.
AGENT = """
import os, subprocess, sys
from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
common = dict(os.environ, WORLD_SIZE=sys.argv[1], MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.port),
              TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_RUN_ID="one")
ranks = [subprocess.Popen([sys.executable, sys.argv[2]], env=dict(common, RANK=rank, LOCAL_RANK=rank))
         for rank in map(str, range(int(sys.argv[1])))]
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_the_same_script_runs_under_torchruns_agent(torch_python, calm, tmp_path):
    python, environment = torch_python
    done = subprocess.run(
        [python, "-c", AGENT, str(RANKS), SCRIPT], cwd=tmp_path, text=True, capture_output=True,
        timeout=DEADLINE, env=clean_environment(**environment, OUT=str(tmp_path), EPOCHS=str(EPOCHS),
                                                BATCHES=str(BATCHES)))
    training = Training(done, tmp_path)
    assert training.status == 0, training.told()
    assert training.notes() == calm.notes()
    assert training.parameters() == calm.parameters()
