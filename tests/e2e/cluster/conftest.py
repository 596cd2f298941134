"""What the tests on several hosts share: hosts made once for a folder of tests,
and as new before each of them."""

import cluster_job
import hosts_rig
import pytest


@pytest.fixture(scope="session")
def all_hosts(tmp_path_factory):
    reason = hosts_rig.why_not()
    if reason:
        pytest.skip(reason)
    with hosts_rig.Rig(tmp_path_factory.mktemp("hosts"), hosts=5) as rig:
        yield rig


@pytest.fixture
def rig(all_hosts):
    """Five hosts h1 to h5 (tests/support/hosts_rig.py), as new;
    what a test leaves running on them is killed."""
    all_hosts.reset()
    yield all_hosts
    all_hosts.reset()


@pytest.fixture
def team(rig):
    """Jobs on the hosts, whose processes write down who they are (tests/support/cluster_job.py)."""
    return cluster_job.Team(rig)
