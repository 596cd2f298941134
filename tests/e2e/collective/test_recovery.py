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
        """What counted, by rank: a line that a rank wrote again after its place was taken is there once."""
        lines = {}
        for rank in range(RANKS):
            noted = [json.loads(line) for line in (self.folder / f"{rank}.jsonl").read_text().splitlines()]
            kept = [{key: note[key] for key in note if key not in ("pid", "at")} for note in noted]
            lines[rank] = [note for place, note in enumerate(kept) if place == 0 or note != kept[place - 1]]
        return lines

    def parameters(self):
        """Those in which the ranks ended."""
        return [(self.folder / f"{rank}.end").read_text() for rank in range(RANKS)]


@pytest.fixture(scope="session")
def train(torch_python, tmp_path_factory):
    """train(*FLAGS, deaths=…): the script as a job of RANKS ranks."""
    python, environment = torch_python

    def run(*flags, deaths=(), script=SCRIPT, **more):
        folder = tmp_path_factory.mktemp("training")
        done = subprocess.run(
            [find_fleetrun(), f"--nproc_per_node={RANKS}", f"--python={python}", *flags, script],
            cwd=folder, text=True, capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
            env=clean_environment(**environment, OUT=str(folder), EPOCHS=str(EPOCHS), BATCHES=str(BATCHES),
                                  DEATHS=json.dumps(deaths), **more))
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
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.read_text().replace("os.O_CREAT | os.O_EXCL", "os.O_CREAT"))
    training = train("--on_failure=replace", deaths=[[1, 2, "averaged"]], script=script)
    assert training.status == 137, training.told()
    # The first time, the step before may not have counted yet for those that are left.
    assert training.places in (4, 5), training.told()
    assert "nobody takes the place of a trainer: a trainer was lost in step " in training.output


REFUSED = [
    "recoverable() without a module",
    "SGD has a parameter that is of none of the modules",
    "recoverable() with int, which has no state_dict() and load_state_dict()",
    "the state of Odd has an object of type object, which is not data",
    "recoverable() for the second time",
    "recoverable() within join()",
    "several steps with one batch, and what the first returned is not small data",
    "votes at (loop, epoch, pass, batch)",
]


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
