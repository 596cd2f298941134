"""Jobs that run: environment, logs, terminal, exit status, order of starting and ending."""

import json
import os
import re
import signal
import subprocess

import pytest

from fleetrun_job import clean_environment, wait_until

DUMP = ("import json, os, sys; json.dump([dict(os.environ), sys.argv, os.getcwd(), os.getsid(0) == "
        "os.getpid()], sys.stdout)")
SERVE = """
import os, signal, socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
"""


def dumped(job, log):
    return json.loads(job.log(log))


def test_ps_roles_find_their_environment(work, python):
    work.script("dump.py", DUMP)
    job = work.run("--python", python, "--server_num=2", "--trainer_num", "2", "dump.py", "a",
                   "--log_dir=mine")
    assert job.status == 0, job.err
    environments = {}
    for log in ("serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1"):
        env, argv, cwd, leads_session = dumped(job, log)
        assert argv == ["dump.py", "a", "--log_dir=mine"]
        assert cwd == str(work.directory)
        assert leads_session
        environments[log] = env
    server, trainer = environments["serverlog.1"], environments["workerlog.1"]
    servers = server["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    trainers = server["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(servers + trainers)) == 4
    assert f"{server['POD_IP']}:{server['PADDLE_PORT']}" == servers[1]
    assert f"{trainer['POD_IP']}:{trainer['PADDLE_PORT']}" == trainers[1]
    assert "PADDLE_TRAINER_ID" not in server and trainer["PADDLE_TRAINER_ID"] == "1"
    assert (server["TRAINING_ROLE"], server["PADDLE_ROLE"]) == ("PSERVER", "PSERVER")
    assert (trainer["TRAINING_ROLE"], trainer["PADDLE_ROLE"]) == ("TRAINER", "TRAINER")
    for env in environments.values():
        assert env["PADDLE_TRAINERS_NUM"] == "2" and env["PADDLE_NNODES"] == "1"
        assert env["PADDLE_GLOO_RENDEZVOUS"] == "3" and env["PADDLE_WITH_GLOO"] == "1"
        assert env["PADDLE_LOG_DIR"] == str(work.directory / "log")
        assert env["OMP_NUM_THREADS"] == "1" and env["CPU_NUM"] == "1"
        assert env["FLEETRUN_JOB_ID"] == "default"
        assert env["POD_NAME"] == env["FLEETRUN_POD"] and re.fullmatch("[a-z]{6}", env["POD_NAME"])


def test_collective_trainers_find_their_environment(work, python):
    work.script("dump.py", DUMP)
    job = work.run("--python", python, "--nproc_per_node", "2", "dump.py",
                   environment=clean_environment(OMP_NUM_THREADS="3"))
    assert job.status == 0, job.err
    first, second = dumped(job, "workerlog.0")[0], dumped(job, "workerlog.1")[0]
    assert second["PADDLE_TRAINER_ID"] == second["PADDLE_GLOBAL_RANK"] == second["PADDLE_LOCAL_RANK"] == "1"
    assert second["PADDLE_TRAINERS_NUM"] == second["PADDLE_GLOBAL_SIZE"] == second["PADDLE_LOCAL_SIZE"] == "2"
    assert second["PADDLE_CURRENT_ENDPOINT"] == second["PADDLE_TRAINER_ENDPOINTS"].split(",")[1]
    assert first["PADDLE_MASTER"] == second["PADDLE_MASTER"]
    assert second["PADDLE_DISTRI_BACKEND"] == "gloo" and "FLAGS_selected_gpus" not in second
    assert second["OMP_NUM_THREADS"] == "3"


def test_visible_devices_are_handed_out(work, python):
    work.script("dump.py", DUMP)
    job = work.run("--python", python, "--gpus", "5,3", "dump.py",
                   environment=clean_environment(CUDA_VISIBLE_DEVICES="3,5"))
    assert job.status == 0, job.err
    envs = [dumped(job, f"workerlog.{i}")[0] for i in range(2)]
    assert [e["FLAGS_selected_gpus"] for e in envs] == ["0", "1"] == [e["LOCAL_RANK"] for e in envs]
    assert {e["CUDA_VISIBLE_DEVICES"] for e in envs} == {"5,3"}
    assert all("PADDLE_DISTRI_BACKEND" not in e for e in envs)


def test_devices_of_other_kinds_have_their_own_variables(work, python):
    work.script("dump.py", DUMP)
    job = work.run("--python", python, "--npus=2,3", "dump.py")
    assert job.status == 0, job.err
    second = dumped(job, "workerlog.1")[0]
    assert (second["FLAGS_selected_npus"], second["ASCEND_RT_VISIBLE_DEVICES"]) == ("1", "2,3")
    assert (second["PADDLE_XCCL_BACKEND"], second["PADDLE_DISTRI_BACKEND"]) == ("npu", "xccl")
    assert "FLAGS_selected_gpus" not in second
    job = work.run("--python", python, "--xpus=2,3", "dump.py")
    second = dumped(job, "workerlog.1")[0]
    assert (second["FLAGS_selected_xpus"], second["XPU_VISIBLE_DEVICES"]) == ("1", "2,3")


def test_logs_have_three_names_are_private_and_outlive_the_next_run(work):
    first = work.run("--server_num=1", "--trainer_num=2", "--job_id=ctr", "/bin/echo", "hello")
    assert first.status == 0, first.err
    pod = re.search(r"Run Pod: (\w+), replicas 3", first.err).group(1)
    log = work.directory / "log"
    names = {p.name for p in log.iterdir()}
    assert names == {pod, "serverlog.0", "workerlog.0", "workerlog.1", "verdict.json"} | {
        f"ctr.{pod}.{name}.log" for name in ("ps.0", "trainer.0", "trainer.1")
    }
    for mine, theirs in (("serverlog.0", "ps.0"), ("workerlog.1", "trainer.1")):
        assert os.path.samefile(log / mine, log / f"ctr.{pod}.{theirs}.log")
        assert os.path.samefile(log / mine, log / pod / "0" / mine)
        assert (log / mine).stat().st_mode & 0o777 == 0o600
    assert all(d.stat().st_mode & 0o777 == 0o700 for d in (log / pod, log / pod / "0"))
    assert work.run("/bin/echo", "again").out == "again\n"
    assert (log / "workerlog.0").read_text() == "again\n"
    assert work.run("--log_overwrite=True", "/bin/echo", "anew").out == "anew\n"
    assert ((log / "workerlog.0").read_text() == "anew\n" and (log / pod / "0" / "workerlog.0").read_text() ==
            "hello\n")
    assert not [p for p in log.iterdir() if p.name.startswith(".")]


def test_nothing_of_the_environment_is_written_to_disk(work):
    job = work.run("--server_num=1", "/bin/echo", "x", environment=clean_environment(MY_SECRET="hunter2"))
    assert job.status == 0
    for path in work.directory.rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path
    assert "hunter2" not in job.err


def test_listing_is_paddles(work):
    job = work.run("--server_num=1", "--trainer_num=2", "--log_level=info", "--grace=2", "/bin/echo", "it's",
                   environment=clean_environment(PADDLE_JOB_ID="ctr"))
    lines = job.err.splitlines()
    form = re.compile(r"LAUNCH INFO \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (.*)")
    texts = [form.fullmatch(line).group(1) for line in lines]
    assert texts[0] == "-----------  Configuration  ----------------------"
    end = texts.index("--------------------------------------------------")
    listed = [t.split(": ")[0].rstrip(":") for t in texts[1:end]]
    assert listed[-1] == "grace" and listed[:-1] == sorted(listed[:-1]) and len(listed) == 31
    shown = dict(t.split(": ", 1) for t in texts[1:end] if ": " in t)
    assert shown["run_mode"] == "ps" and shown["server_num"] == "1" and shown["trainer_num"] == "2"
    assert shown["job_id"] == "ctr" and shown["devices"] == "None" and shown["max_restart"] == "3"
    assert shown["training_script"] == "/bin/echo" and shown["training_script_args"] == '["it\'s"]'
    assert texts[end + 1] == "Job: ctr, mode ps, replicas 1[1:1], elastic False"
    pod = re.fullmatch(r"Run Pod: (\w{6}), replicas 3, status ready", texts[end + 2]).group(1)
    assert texts[end + 3] == f"Watching Pod: {pod}, replicas 3, status running"
    assert re.fullmatch("Containment: (pidns|cgroup2|subreaper)", texts[end + 4])
    assert texts[end + 5 :] == ["Pod completed", "Exit code 0"]


@pytest.mark.parametrize("flags, listed", [(["--nproc_per_node=1"], False), (["--nnodes=1"], False),
                                           (["--compat=paddle"], True), (["--run_mode=collective"], True),
                                           (["--log_level=debug"], True)])
def test_settings_are_listed_to_who_starts_jobs_as_paddle_does(work, flags, listed):
    job = work.run(*flags, "/bin/true")
    assert job.status == 0
    assert ("Configuration" in job.err) == listed
    assert "Job: default, mode collective" in job.err



@pytest.mark.parametrize("code", [1, 2, 3, 77, 125, 126, 127, 128, 137, 241, 255])
def test_exit_status_is_the_failing_process_own(work, code):
    script = work.script("exit.sh",
                         f'#!/bin/sh\n[ "$PADDLE_TRAINER_ID" = 1 ] && echo "it broke" && exit {code}\n'
                         'exec sleep 100\n', 0o755)
    job = work.run("--nproc_per_node=2", script)
    assert job.status == code
    assert f"trainer 1 exited with {code}" in job.err
    assert "log/workerlog.1" in job.err
    assert "- ERROR LOG DETAIL -" in job.err and "it broke" in job.err
    assert f"Exit code {code}" in job.err
    assert not job.survivors()


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT", "INT", "HUP", "PIPE", "USR1"])
def test_a_process_killed_by_a_signal_ends_the_job_with_128_plus_it(work, name):
    script = work.script("die.sh",
                         f'#!/bin/sh\nulimit -c 0\n[ "$PADDLE_TRAINER_ID" = 0 ] && kill -{name} $$\n'
                         'exec sleep 100\n', 0o755)
    job = work.run("--nproc_per_node=2", script)
    assert job.status == 128 + getattr(signal, f"SIG{name}")
    assert f"trainer 0 was killed by SIG{name}" in job.err


def test_the_first_failure_by_time_is_the_one_reported(work):
    """Trainer 0 fails because trainer 3 has failed before it."""
    script = work.script(
        "cascade.sh",
        "#!/bin/sh\n"
        'if [ "$PADDLE_TRAINER_ID" = 3 ]; then exit 9; fi\n'
        "trap 'exit 4' TERM\nwhile :; do sleep 0.01; done\n",
        0o755,
    )
    for _ in range(5):
        job = work.run("--nproc_per_node=4", script)
        assert job.status == 9 and "trainer 3 exited with 9 (first failure" in job.err


def test_short_lived_processes_are_never_lost(work):
    for _ in range(20):
        assert work.run("--nproc_per_node=16", "/bin/true").status == 0


def test_trainer_output_is_shown_whole(work, python):
    work.script("spew.py",
                "import os, sys\nfor i in range(20000): print('line', i, 'x' * 80)\n"
                "sys.stdout.write('no newline at the end')\n")
    job = work.run("--python", python, "--nproc_per_node=2", "spew.py")
    assert job.status == 0
    assert job.out == job.log("workerlog.0") == job.log("workerlog.1")
    assert job.out.endswith("no newline at the end")


def test_output_grows_while_the_job_runs(work):
    script = work.script("slow.sh", "#!/bin/sh\necho one\nread line < go\necho two $line\n", 0o755)
    os.mkfifo(work.directory / "go")
    job = work.start("--server_num=1", "--trainer_num=1", "/bin/sh", "-c",
                     '[ "$TRAINING_ROLE" = PSERVER ] || exec ./slow.sh')
    assert job.process.stdout.readline() == b"one\n"
    (work.directory / "go").write_text("go\n")
    assert job.finish().out == "two go\n" and job.status == 0
    assert script.exists()


def test_a_reader_that_is_gone_or_stuck_does_not_stall_training(work, python):
    work.script("spew.py", "import sys\nfor i in range(40000): print('x' * 100)\nopen('done', 'w').close()\n")
    reading, writing = os.pipe()
    job = work.start("--python", python, "spew.py", stdout=writing)  # nobody reads
    os.close(writing)
    wait_until((work.directory / "done").exists, "the end of the script")
    os.close(reading)
    assert job.finish().status == 0
    assert len(job.log("workerlog.0")) == 40000 * 101


def test_stdin_goes_to_a_process_that_is_alone(work):
    job = work.start("/bin/cat", stdin=subprocess.PIPE)
    out, _ = job.process.communicate(b"hello", timeout=20)
    assert out == b"hello"
    # /dev/null: ends at once
    assert work.run("--nproc_per_node=2", "/bin/cat", stdin=subprocess.PIPE).status == 0


def test_trainers_start_when_the_servers_listen(work, python):
    work.script(
        "ps.py",
        "import os, socket, sys, time\n"
        "if os.environ['TRAINING_ROLE'] == 'PSERVER':\n"
        "    open('server', 'w').close()\n"
        "    while not os.path.exists('listen'): time.sleep(0.01)\n"
        "    s = socket.socket(); s.bind((os.environ['POD_IP'], "
        "int(os.environ['PADDLE_PORT']))); s.listen()\n"
        "    while True: s.accept()\n"
        "host, port = os.environ['PADDLE_PSERVERS_IP_PORT_LIST'].split(':')\n"
        "socket.create_connection((host, int(port)), 5).close(); print('trained')\n",
    )
    job = work.start("--python", python, "--server_num=1", "--trainer_num=2", "ps.py")
    wait_until((work.directory / "server").exists, "the server")
    assert (work.directory / "log" / "workerlog.0").read_text() == ""
    (work.directory / "listen").touch()
    job.finish()
    assert (job.status, job.out) == (0, "trained\n"), job.err
    assert not job.survivors()


def test_servers_that_never_listen_hold_trainers_up_for_ready_timeout(work):
    script = work.script("ps.sh", '#!/bin/sh\n[ "$TRAINING_ROLE" = TRAINER ] && exit 0\nexec sleep 100\n',
                         0o755)
    job = work.run("--ready-timeout", "0.2", "--server_num=1", script)
    assert job.status == 0
    assert "LAUNCH WARNING" in job.err and "--ready-timeout" in job.err


def test_a_server_that_dies_before_the_trainers_start_ends_the_job(work):
    script = work.script("ps.sh", '#!/bin/sh\n[ "$TRAINING_ROLE" = TRAINER ] && touch started\nexit 5\n',
                         0o755)
    job = work.run("--server_num=1", script)
    assert job.status == 5 and "server 0 exited with 5" in job.err
    assert not (work.directory / "started").exists()


def test_a_server_that_dies_while_trainers_run_ends_the_job(work):
    script = work.script(
        "ps.sh",
        '#!/bin/sh\nif [ "$TRAINING_ROLE" = PSERVER ]; then while [ ! -e up ]; do sleep 0.01; done; kill -9 '
        '$$; fi\ntouch up; exec sleep 100\n',
        0o755,
    )
    job = work.run("--ready-timeout=0.05", "--server_num=1", script)
    assert job.status == 137 and "server 0 was killed by SIGKILL" in job.err
    assert not job.survivors()


def test_a_ps_job_ends_when_its_trainers_have_ended(work):
    """The server ignores SIGTERM, so it is killed after the grace; the job has done well all the same."""
    script = work.script(
        "ps.sh",
        '#!/bin/sh\n[ "$TRAINING_ROLE" = TRAINER ] && exit 0\ntrap "echo asked" TERM\n'
        'while :; do sleep 0.01; done\n', 0o755
    )
    job = work.run("--ready-timeout=0.3", "--grace=0.3", "--server_num=2", "--trainer_num=2", script)
    assert job.status == 0 and "Pod completed" in job.err
    assert "asked" in job.log("serverlog.1")
    assert not job.survivors()


def test_endpoints_of_the_user_are_used_as_given(work, python, ports):
    work.script("dump.py", DUMP)
    server, first, second, gloo = ports(4)
    servers, trainers = f"127.0.0.1:{server}", f"127.0.0.1:{first},127.0.0.1:{second}"
    job = work.run("--python", python, "--servers", servers, "--workers", trainers, "--gloo_port", gloo,
                   "dump.py")
    assert job.status == 0, job.err
    env = dumped(job, "workerlog.1")[0]
    assert env["PADDLE_PSERVERS_IP_PORT_LIST"] == servers and env["PADDLE_TRAINER_ENDPOINTS"] == trainers
    assert env["PADDLE_GLOO_HTTP_ENDPOINT"] == f"127.0.0.1:{gloo}" and "PADDLE_NNODES" not in env


def test_environment_variables_set_what_flags_do_not(work):
    env = clean_environment(PADDLE_NPROC_PER_NODE="3", PADDLE_LOG_DIR="elsewhere")
    job = work.run("--log_dir=here", "/bin/true", environment=env)
    assert job.status == 0
    assert sorted(p.name for p in (work.directory / "here").glob("workerlog.*")) == [
        "workerlog.0", "workerlog.1", "workerlog.2"]
    assert not (work.directory / "elsewhere").exists()
    assert "LAUNCH WARNING" in job.err and "--log_dir here is used, not PADDLE_LOG_DIR=elsewhere" in job.err


def test_variables_of_another_job_are_not_inherited(work, python):
    work.script("dump.py", DUMP)
    left = clean_environment(PADDLE_PSERVERS_IP_PORT_LIST="127.0.0.1:1", TRAINING_ROLE="PSERVER",
                             PADDLE_PORT="1", FLAGS_mine="2")
    job = work.run("--python", python, "dump.py", environment=left)
    env = dumped(job, "workerlog.0")[0]
    assert (not {"PADDLE_PSERVERS_IP_PORT_LIST", "TRAINING_ROLE", "PADDLE_PORT"} & set(env)
            and env["FLAGS_mine"] == "2")
    env = dumped(work.run("--python", python, "--server_num=1", "--log_overwrite=1", "dump.py",
                          environment={**left, "PADDLE_TRAINER_ID": "7"}), "serverlog.0")[0]
    assert "PADDLE_TRAINER_ID" not in env
