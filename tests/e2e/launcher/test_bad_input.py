"""Each wrong wish is one error that names it and says what to do.
Nothing is started, no log directory is made."""

import contextlib
import json
import os
import socket

import pytest

from fleetrun_job import clean_environment, reachable_fleetrun, refused, small_file_system


def test_no_script(work):
    assert "hint: write it last" in refused(work, says="no script is given").err
    refused(work, "--server_num=1", says="no script is given")


def test_script_that_is_not_there(work):
    refused(work, "nosuch.py", status=127, says="script 'nosuch.py' is not there")
    refused(work, "./nosuch", status=127, says="program './nosuch' is not there")
    refused(work, "nosuchprogram", status=127, says="program 'nosuchprogram' is not on PATH")
    refused(work, "", status=127, says="name is empty")


def test_script_that_cannot_be_started(work):
    (work.directory / "dir.py").mkdir()
    (work.directory / "dir").mkdir()
    work.script("plain.sh", "echo")
    refused(work, "dir.py", status=126, says="script 'dir.py' is a directory")
    refused(work, "./dir", status=126, says="program './dir' is a directory")
    job = refused(work, "./plain.sh", status=126, says="program './plain.sh' is not executable")
    assert "a shell runs it: bash ./plain.sh" in job.err
    for name, text, hint in (("plain", "echo", "--run_path runs it in Python"),
                             ("marked", "#!/bin/sh\n", "chmod +x, and write ./marked"),
                             ("n.ipynb", "{}", "jupyter nbconvert --to script n.ipynb")):
        work.script(name, text)
        assert hint in refused(work, name, status=127, says="is not on PATH").err
    for name, hint in (("OMP_NUM_THREADS=4", "fleetrun env OMP_NUM_THREADS=4 …"),
                       ("python train.py --x", "leave the quotes out"),
                       ("./train.py --x", "leave the quotes out")):
        assert hint in refused(work, name, "x", status=127, says="is not ").err
    (work.directory / "package").mkdir()
    work.script("package/__main__.py", "")
    job = refused(work, "package", status=126, says="is a directory")
    assert "write ./package to run its __main__.py" in job.err
    refused(work, "--python=/nosuch/python", "dir.py/../plain.py", status=127, says="is not there")


def test_a_file_without_a_usable_interpreter_line(work):
    for name, text, status in (("none", "echo hello\n", 126), ("wrong", "#!/nosuch/sh\n", 127)):
        path = work.script(name, text, 0o755)
        job = work.run(path)
        assert job.status == status and "could not be started" in job.err and "#! line" in job.err


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_script_that_is_no_file_is_one_processs_alone(work, name):
    assert "write it to a file" in refused(work, name, status=126, says=f"'{name}' is not a file").err


def test_a_pipe_is_not_waited_for(work):
    for name, status in (("train.py", 126), ("./train", 126), ("job.toml", 125), ("job.json", 125)):
        os.mkfifo(work.directory / name)
        assert "write it to a file" in refused(work, name, status=status, says="is not a file").err
    assert "write it to a file" in refused(work, "--run_path", "train", status=126, says="is not a file").err


COUNTS = ["0", "-1", "", " 4", "4 ", "+4", "0x4", "4.0", "1e3", "abc", "999999999", "99999999999999999999",
          "\u0663", "4\n"]


@pytest.mark.parametrize("flag", ["--server_num", "--trainer_num", "--nproc_per_node"])
@pytest.mark.parametrize("count", COUNTS)
def test_counts(work, flag, count):
    job = refused(work, f"{flag}={count}", "/bin/true", says=f"{flag} is '")
    assert "whole number from 1" in job.err


def test_counts_in_the_environment_are_named_by_their_variable(work):
    refused(work, "/bin/true", environment=clean_environment(PADDLE_SERVER_NUM="two"),
            says="PADDLE_SERVER_NUM is 'two'")


def test_scripts_that_are_odd(work):
    work.script("empty.py", "")
    assert work.run("empty.py").status == 0
    (work.directory / "FIFO.py").mkdir()
    refused(work, "FIFO.py", status=126, says="is a directory")
    refused(work, "-m", "", status=127, says="name is empty")
    refused(work, "--no-python", "-m", "x", says="a module needs Python")


ENDPOINTS = ["127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1", "a:80:80",
             "http://a:80", ",", "a b:80", "::1:80"]


@pytest.mark.parametrize("flag", ["--servers", "--trainers"])
@pytest.mark.parametrize("text", ENDPOINTS)
def test_endpoints(work, flag, text):
    job = refused(work, f"{flag}={text}", "/bin/true", says="is not an endpoint")
    assert f"while: reading {flag}" in job.err and "HOST:PORT" in job.err


@pytest.mark.parametrize("host", ["[fe80::1%nosuch]", "my_host", "localhost.localdomain.", "b\u00fccher",
                                  "a" * 256, "-x", "[::1", "a..b"])
def test_hosts_that_are_not_this_one_or_none(work, host):
    job = work.run(f"--servers={host}:7001", "/bin/true")
    assert (job.status == 125 and job.err.count("error:") == 1 and "hint:" in job.err
            and not (work.directory / "log").exists())


@pytest.mark.parametrize("master", ["ftp://127.0.0.1:80", "http://", "127.0.0.1", ":80", "127.0.0.1:0",
                                    "127.0.0.1:70000", "https://a:1", "http://a:1/path"])
def test_masters(work, master):
    refused(work, f"--master={master}", "/bin/true", says="reading --master")


def test_endpoints_that_do_not_fit(work):
    refused(work, "--servers=127.0.0.1:7000,127.0.0.1:7000", "/bin/true", says="in the list twice")
    refused(work, "--servers=127.0.0.1:7000", "--trainers=127.0.0.1:7000", "/bin/true",
            says="both a server's and a trainer's")
    refused(work, "--servers=127.0.0.1:7000", "--server_num=2", "/bin/true",
            says="--server_num is 2, but --servers lists 1")
    refused(work, "--servers=192.0.2.1:7000", "/bin/true", says="is not an address of this host")
    refused(work, "--host=192.0.2.1", "/bin/true", says="is not an address of this host")


def test_flags_whose_variable_the_script_has_not_set(work):
    """`--nnodes=$NNODES --master=$MASTER`, on one host."""
    job = work.run("--nnodes=", "--master=", "--gpus=", "/bin/sh", "-c", "echo $PADDLE_NNODES hosts")
    assert (job.status, job.out) == (0, "1 hosts\n"), job.err
    assert job.err.count("is empty: it counts as not given") == 3


def test_a_port_in_use(work):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        job = refused(work, f"--servers=127.0.0.1:{port}", "/bin/true", says=f"127.0.0.1:{port} is in use")
        assert "hint:" in job.err
        refused(work, "--start_port", port, "/bin/true", says="is in use")


def test_a_default_port_in_use_gives_way_on_one_host(work):
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # whoever has it now keeps it: in use is all that is asked for
            held.enter_context(socket.create_server(("127.0.0.1", 6070)))
        planned = work.run("--dry-run=json", "--ips=127.0.0.1", "--nproc_per_node=2", "/bin/true")
    assert planned.status == 0, planned.err
    plan = json.loads(planned.out)
    endpoints = plan["processes"][0]["environment"]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(endpoints)) == 2 and "127.0.0.1:6070" not in endpoints


def test_log_directories_that_cannot_be_written(work):
    (work.directory / "file").write_text("")
    refused(work, "--log_dir=file", "/bin/true", says="log directory file cannot be opened")
    refused(work, "--log_dir=file/log", "/bin/true", says="cannot be made: Not a directory")
    refused(work, "--log_dir=/proc/nosuch", "/bin/true", says="cannot be made")
    refused(work, "--log_dir=" + "x" * 300, "/bin/true", says="cannot be made")


def test_a_log_that_is_a_link_or_a_pipe_is_refused(work):
    log = work.directory / "log"
    log.mkdir()
    (work.directory / "precious").write_text("precious")
    (log / "workerlog.0").symlink_to(work.directory / "precious")
    refused(work, "/bin/echo", "x", says="log/workerlog.0 is a symbolic link to something else")
    assert (work.directory / "precious").read_text() == "precious"
    (log / "workerlog.0").unlink()
    os.mkfifo(log / "workerlog.0")
    refused(work, "/bin/echo", "x", says="log/workerlog.0 is not a file")


@pytest.mark.skipif(os.getuid() != 0, reason="root becomes another user here")
def test_a_read_only_log_directory(work):
    (work.directory / "log").mkdir(mode=0o555)
    refused(work, "/bin/true", says="Permission denied", executable=reachable_fleetrun(work),
            preexec_fn=lambda: os.setuid(54321))


def test_log_directories_that_are_links(work):
    (work.directory / "dangling").symlink_to("nowhere")
    refused(work, "--log_dir=dangling", "/bin/true",
            says="log directory dangling is a symbolic link that cannot be followed: No such file")
    (work.directory / "loop").symlink_to("loop")
    refused(work, "--log_dir=loop", "/bin/true",
            says="log directory loop is a symbolic link that cannot be followed: Too many levels")
    refused(work, "--log_dir=" + "/".join(["x" * 200] * 21), "/bin/true",
            says="cannot be made: File name too long")


def test_log_directories_in_which_others_could_plant_things(work):
    log = work.directory / "log"
    log.mkdir()
    log.chmod(0o777)
    refused(work, "/bin/true", says="log directory log can be written to by everybody")
    log.chmod(0o1777)
    assert work.run("/bin/true").status == 0


@pytest.mark.skipif(os.getuid() != 0, reason="root gives files to another user here")
def test_log_directories_of_others(work):
    log = work.directory / "log"
    log.mkdir()
    os.chown(log, 54321, 54321)
    refused(work, "/bin/true", says="log directory log belongs to user 54321, not to user 0")
    os.chown(log, 0, 0)
    (log / "workerlog.0").write_text("theirs")
    os.chown(log / "workerlog.0", 54321, 54321)
    refused(work, "/bin/true", says="log log/workerlog.0 belongs to user 54321 already")
    (work.directory / "link").symlink_to("log")
    os.chown(work.directory / "link", 54321, 54321, follow_symlinks=False)
    refused(work, "--log_dir=link", "/bin/true", says="log directory link is a symbolic link of user 54321")


@pytest.mark.skipif(os.getuid() != 0, reason="root becomes another user here")
def test_a_shared_log_directory_in_which_another_has_logs(work):
    log = work.directory / "log"
    log.mkdir()
    log.chmod(0o1777)
    work.directory.chmod(0o755)
    assert work.run("/bin/true").status == 0
    refused(work, "/bin/true", says="log log/workerlog.0 cannot be replaced: Operation not permitted",
            executable=reachable_fleetrun(work), preexec_fn=lambda: os.setuid(54321))


def test_a_log_directory_without_room(work):
    log = work.directory / "log"
    log.mkdir()
    with small_file_system(log, "size=64k,nr_inodes=3"):
        refused(work, "/bin/true", says="cannot be made: No space left on device")


def test_lines_that_cannot_be_written_do_not_fail_a_job(work):
    with open("/dev/full", "wb") as full:
        job = work.start("/bin/sh", "-c", "echo hello; exit 3", stderr=full, stdout=full)
        job.process.wait(30)
    assert job.process.returncode == 3 and job.log("workerlog.0") == "hello\n"


FLAGS = [("--sever_num=1", "--server_num"), ("--server-nun", "--server_num"), ("--gups=0", "--gpus"),
         ("-x", "leave it out"), ("-y", "--help lists")]


@pytest.mark.parametrize("flag, hint", FLAGS)
def test_unknown_flags(work, flag, hint):
    job = refused(work, flag, "/bin/true", says="unknown flag " + flag.split("=")[0])
    assert hint in job.err


def test_flags_that_are_wrong_in_other_ways(work):
    refused(work, "--server_num=1", "--server_num=2", "/bin/true", says="--server_num is given twice")
    refused(work, "--log_dir", says="--log_dir")
    refused(work, "--run_mode=heter", "/bin/true", says="--run_mode is 'heter'")
    refused(work, "--log_level=LOUD", "/bin/true", says="--log_level is 'LOUD'")
    refused(work, "--grace=-1", "/bin/true", says="--grace is '-1'")
    refused(work, "--ready-timeout=soon", "/bin/true", says="--ready-timeout is 'soon'")
    refused(work, "--compat=torch", "/bin/true", says="--compat is 'torch'")
    refused(work, "--dry-run=xml", "/bin/true", says="--dry-run is 'xml'")
    refused(work, "--log_overwrite=maybe", "/bin/true", says="--log_overwrite is 'maybe'")
    refused(work, "--start_port=70000", "/bin/true", says="--start_port is '70000'")
    refused(work, "--with_gloo=3", "/bin/true", says="--with_gloo is '3'")
    refused(work, "--auto_tuner_json=x", "/bin/true", says="no tuner")


@pytest.mark.parametrize("nodes", ["2:1", "0:0", "1:", ":2", "1:2:3", "-1:2", "0", "x"])
def test_numbers_of_hosts(work, nodes):
    refused(work, f"--nnodes={nodes}", "/bin/true", says="--nnodes is '")


@pytest.mark.parametrize("text", ["", "1", "2:1", "0:5", "1:70000", "a:b", "1:2:3", ":", "-1:5"])
def test_port_ranges(work, text):
    refused(work, f"--port_range={text}", "/bin/true", says="--port_range is '")


def test_ports_for_processes_leave_the_one_out_that_launchers_meet_at(work, ports):
    port = ports.in_a_row(2)
    refused(work, f"--master=127.0.0.1:{port}", "--nnodes=2", f"--port_range={port}:{port + 1}", "/bin/true",
            says=f"no port from {port} to {port + 1} is free at 127.0.0.1")


NAMES = ["", ".", "..", "../x", "/abs", "a/b", "a\nb", "-x", "x" * 65, "\U0001f600", "%2e%2e", "a b", "$(id)",
         "*", ".hidden"]


@pytest.mark.parametrize("name", NAMES)
def test_job_ids(work, name):
    refused(work, f"--job_id={name}", "/bin/true", says="--job_id is '")


def test_devices_on_a_host_without_any(work):
    if [d for d in os.listdir("/dev") if d.startswith("nvidia") and d[6:].isdigit()]:
        pytest.skip("this host has devices")
    job = refused(work, "--devices", "0,1", "/bin/true",
                  says="device 0 of --devices is not there: this host has no devices")
    assert job.err.count("\n") == 2 and "leave --devices out" in job.err
    env = clean_environment(CUDA_VISIBLE_DEVICES="0,1")
    refused(work, "--gpus", "2", "/bin/true", environment=env, says="the visible devices are 0,1")
    refused(work, "--gpus", "0,0", "/bin/true", environment=env, says="in the list twice")
    refused(work, "--gpus", "0,1", "--nproc_per_node=3", "/bin/true", environment=env,
            says="3 trainers asked for, 2 devices given")
