"""Job files: roles with their order, readiness, environment and logs."""

import json
import shutil

from fleetrun_job import ROOT

EXAMPLE = ROOT / "examples" / "job_file"


def write_job(work, *roles, name="job.json", **settings):
    (work.directory / name).write_text(json.dumps({**settings, "roles": roles}))
    return name


def test_the_example_runs_its_roles_in_their_order(work, python):
    for source in EXAMPLE.iterdir():
        if source.is_file():
            shutil.copy(source, work.directory)
    job = work.run("--python", python, "--job_id=demo", "job.toml")
    assert job.status == 0, job.err
    assert "trained 20 steps" in job.out
    assert job.log("evaluatorlog.0") == "role evaluator sees a model of at least 3 steps\n"
    assert job.log("serverlog.1").startswith("adding up at 127.0.0.1 ")
    assert list((work.directory / "log").glob("demo.*.evaluator.0.log"))
    assert "replicas 5" in job.err


def test_a_role_starts_when_the_one_before_it_says_so_by_its_descriptor(work):
    # The first role makes the file a moment before it says that it is ready; the second finds it.
    first = {"name": "first", "serves": True, "ready": {"descriptor": True},
             "command": ["/bin/sh", "-c",
                         "sleep 0.3; touch made; echo up >&$FLEETRUN_READY_FD; exec sleep 100"]}
    second = {"name": "second", "after": ["first"],
              "command": ["/bin/sh", "-c", "test -f made && echo found it"]}
    job = work.run("--grace=1", write_job(work, second, first))
    assert job.status == 0, job.err
    assert job.log("secondlog.0") == "found it\n"


def test_a_plain_role_that_is_ready_by_its_port_is_told_its_endpoint(work, python):
    work.script("serve.py",
                "import os, socket\nhost, port = "
                "os.environ['FLEETRUN_ENDPOINTS'].split(',')[int(os.environ['FLEETRUN_RANK'])].split(':')\n"
                            "s = socket.create_server((host, int(port)))\nwhile True:\n"
                            "    s.accept()[0].close()\n")
    serve = {"name": "store", "count": 2, "script": "serve.py", "serves": True, "ready": {"port": True}}
    last = {"name": "user", "after": ["store"], "command": ["/bin/echo", "store is there"]}
    job = work.run("--python", python, "--grace=1", "--ready_timeout=20", write_job(work, serve, last))
    assert job.status == 0, job.err
    assert "not every" not in job.err
    assert job.log("userlog.0") == "store is there\n"


def test_a_failure_of_any_role_ends_the_job_and_is_named(work):
    name = write_job(work, {"name": "good", "command": ["/bin/sleep", "100"]},
                     {"name": "bad", "command": ["/bin/sh", "-c", "exit 7"]})
    job = work.run("--grace=1", name)
    assert job.status == 7
    assert "bad 0 exited with 7" in job.err


def test_roles_run_in_their_directory_with_their_environment(work):
    (work.directory / "sub").mkdir()
    work.script("sub/show",
                "#!/bin/sh\nbasename $PWD\necho $MINE $FLEETRUN_ROLE $FLEETRUN_RANK/$FLEETRUN_SIZE\n", 0o755)
    job = work.run(write_job(work, {"name": "a", "count": 2, "command": ["./show"], "cwd": "sub",
                                    "environment": {"MINE": "x y"}}))
    assert job.status == 0, job.err
    assert job.log("alog.1") == "sub\nx y a 1/2\n"


def test_a_mistake_in_a_job_file_is_refused_with_its_place(work):
    job = work.run(write_job(work, {"name": "a", "command": ["true"], "cuont": 2}))
    assert job.status == 125
    assert "job.json: roles[0].cuont: unknown key 'cuont' of role 'a'" in job.err
    assert "hint: did you mean count?" in job.err
    (work.directory / "job.toml").write_text("[[roles]\n")
    job = work.run("job.toml")
    assert job.status == 125 and "job.toml:1: this is not TOML" in job.err
    job = work.run("none.json")
    assert job.status == 125 and "reading job file none.json" in job.err
    assert not (work.directory / "log").exists()


def test_a_program_that_is_not_there_is_found_before_anything_starts(work):
    job = work.run(write_job(work, {"name": "a", "command": ["/bin/true"]},
                             {"name": "b", "command": ["no-such-program"]}))
    assert job.status == 127
    assert "program 'no-such-program' is not on PATH" in job.err
