"""fleetrun under a real Slurm: a controller and two nodes, each in namespaces of its own (tests/support/slurm_rig.py)."""

import pytest

from slurm_rig import SlurmRig, need_slurm


@pytest.fixture(scope="module")
def slurm():
    need_slurm()
    with SlurmRig(nodes=2) as rig:
        yield rig


def test_the_rig_runs_tasks_on_both_nodes(slurm):
    done = slurm.run("srun", "-N2", "--ntasks-per-node=1", "--label", "hostname")
    assert (done.returncode, sorted(done.stdout.split("\n")[:-1])) == (0, ["0: n1", "1: n2"]), done.stderr

