"""fleetrun doctor: on this host, and over lists of hosts with an ssh that fails as it is told to."""

import json
import os
import sys

import pytest

from fleetrun_job import ROOT, clean_environment, refused

SSH = f"{os.path.realpath(sys.executable)} {ROOT}/tests/support/fake_ssh.py"


@pytest.fixture
def ssh(tmp_path_factory):
    return Ssh(tmp_path_factory.mktemp("ssh"))


class Ssh:
    def __init__(self, directory):
        self.directory = directory
        self.environment = clean_environment(FAKE_SSH=str(directory), FLEETRUN_SSH=SSH)
        self.behave({})

    def behave(self, hosts, **more):
        (self.directory / "config.json").write_text(json.dumps({"hosts": hosts, **more}))


def problems(diagnosis):
    return [(f["hosts"], f["check"], f["what"]) for f in diagnosis["findings"] if f["severity"] == "problem"]


def test_this_host_is_shown_with_what_is_wrong(work):
    job = work.run("doctor")
    assert job.err == "" and job.out.startswith("  HOST ")
    assert "\n1 host: " in job.out
    assert job.status == (0 if "all well" in job.out else 125)
    assert os.listdir(work.directory) == []


def test_json_is_one_line_that_says_the_same(work):
    job = work.run("doctor", "--json")
    diagnosis = json.loads(job.out)
    assert job.out.count("\n") == 1
    assert diagnosis["well"] == (job.status == 0) and len(diagnosis["hosts"]) == 1
    assert diagnosis["hosts"][0]["condition"]["limits"]["open_files"] > 0


def test_hosts_are_asked_over_ssh_and_each_dials_each(work, ssh):
    ssh.behave({}, noise="Welcome to this machine\n", refuse=0.5)
    job = work.run("doctor", "--hosts=h1,h2,h3", "--json", environment=ssh.environment)
    diagnosis = json.loads(job.out)
    assert [host["login_failure"] for host in diagnosis["hosts"]] == ["", "", ""], job.err
    assert {(r["from"], r["to"]) for r in diagnosis["reaches"]} == {
        (a, b) for a in ("h1", "h2", "h3") for b in ("h1", "h2", "h3") if a != b}
    assert all(r["failure"] == "" for r in diagnosis["reaches"])
    assert not [p for p in problems(diagnosis) if p[1] != "devices"]
    # The file that showed whose directory it is has gone, and so have the probes.
    assert os.listdir(work.directory) == [] and not job.survivors()


def test_a_host_that_cannot_be_asked_does_not_hide_the_others(work, ssh):
    ssh.behave({"h2": "denied", "h3": "absent", "h4": "closed"})
    job = work.run("doctor", "--hosts=h1,h2,h3,h4", "--json", environment=ssh.environment)
    diagnosis = json.loads(job.out)
    assert job.status == 125
    said = {hosts[0]: what for hosts, check, what in problems(diagnosis) if check == "ssh"}
    assert set(said) == {"h2", "h3", "h4"}
    assert "not let in" in said["h2"] and "there is no " in said["h3"]
    assert diagnosis["hosts"][0]["condition"]["version"]


def test_a_directory_that_is_missing_is_a_problem(work, ssh):
    job = work.run("doctor", "--hosts=h1,h2", "--chdir=/nowhere/at/all", environment=ssh.environment)
    assert job.status == 125
    assert "problem: h1, h2: directory: there is no /nowhere/at/all\n" in job.out


def test_a_master_is_tried_from_each_host(work, ssh, tmp_path):
    (tmp_path / "none").mkdir()
    environment = {**ssh.environment, "XDG_CONFIG_HOME": str(tmp_path / "none")}
    # All hosts' address is nobody's own, though each may listen at it.
    job = work.run("doctor", "--hosts=h1,h2", "--master=255.255.255.255:6768", "--json",
                   environment=environment)
    assert job.status == 125
    said = problems(json.loads(job.out))
    assert any(hosts == ["h1", "h2"] and what.startswith("it cannot dial 255.255.255.255:6768: ")
               for hosts, check, what in said if check == "master")
    assert (["h1", "h2"], "secret", "there is no secret of the user") in said
    # Nothing was made.
    assert os.listdir(tmp_path / "none") == []


def test_an_etcd_that_is_not_there_is_named_without_its_login(work):
    job = work.run("doctor", "--master=etcd://root:hidden@127.0.0.1:1", "--insecure")
    assert job.status == 125
    assert "master: etcd://127.0.0.1:1: 127.0.0.1:1: Connection refused" in job.out
    assert "hidden" not in job.out + job.err


@pytest.mark.parametrize("arguments, says", [
    (["doctor", "h1"], "fleetrun doctor takes flags only, not 'h1'"),
    (["doctor", "--hosts=h1", "--hostfile=x"], "--hosts and --hostfile are both given"),
    (["doctor", "--include=h1"], "--include and --exclude choose from a list of hosts, and there is none"),
    (["doctor", "--hosts=a;b"], "--hosts: "),
    (["doctor", "--hosts=h1", "--path=a b"], "a plain path is needed"),
    (["doctor", "--port_range=9:1"], "--port_range is '9:1': a range of ports is needed"),
    (["doctor", "--who"], "unknown flag --who of doctor"),
])
def test_what_makes_no_sense_is_refused(work, arguments, says):
    refused(work, *arguments, says=says)


def test_help_lists_its_flags(work):
    job = work.run("doctor", "--help")
    assert job.status == 0 and "--hostfile=FILE" in job.out and "--probe" not in job.out
