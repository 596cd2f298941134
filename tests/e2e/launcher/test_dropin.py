"""Habits from Paddle's launcher and from torchrun that work unchanged:
flags, variables, ways to name a script."""

import json
import os

import pytest

from fleetrun_job import clean_environment

DUMP = ("import json, os, sys; json.dump([dict(os.environ), sys.argv, sys.flags.unbuffered if "
        "hasattr(sys.flags, 'unbuffered') else None, __name__], sys.stdout)")


def dumped(job, log="workerlog.0"):
    assert job.status == 0, job.err
    return json.loads(job.log(log))


def test_a_collective_trainer_has_torchruns_variables(work, python):
    work.script("dump.py", DUMP)
    flags = ["--standalone", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=2", "--role=learner",
             "--rdzv-id=run7", "--rdzv-backend", "c10d"]
    job = work.run("--python", python, *flags, "--rdzv-endpoint=localhost:0", "--monitor-interval=0.1",
                   "--start-method=spawn", "dump.py")
    env = dumped(job, "workerlog.1")[0]
    expected = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
                "GROUP_WORLD_SIZE": "1"}
    expected |= {"ROLE_NAME": "learner", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2",
                 "TORCHELASTIC_RUN_ID": "run7", "TORCHELASTIC_MAX_RESTARTS": "2"}
    expected |= {"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_USE_AGENT_STORE": "False",
                 "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    expected |= {"FLEETRUN_RANK": "1", "FLEETRUN_SIZE": "2", "FLEETRUN_ROLE": "trainer",
                 "FLEETRUN_ATTEMPT": "0"}
    assert {name: env.get(name) for name in expected} == expected
    assert f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}" == env["PADDLE_MASTER"]
    assert env["TORCHELASTIC_SIGNALS_TO_HANDLE"] == "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


def test_torchruns_variables_are_defaults_below_flags(work):
    environment = clean_environment(PET_NPROC_PER_NODE="3", PET_NNODES="1:1", PET_NO_PYTHON="1",
                                    PET_MASTER_ADDR="localhost", PET_ROLE="r")
    plan = json.loads(work.run("--dry-run=json", "/bin/true", environment=environment).out)
    assert len(plan["processes"]) == 3
    assert plan["processes"][0]["environment"]["MASTER_ADDR"] == "localhost"
    plan = json.loads(work.run("--dry-run=json", "--nproc-per-node=1", "/bin/true",
                               environment=environment).out)
    assert len(plan["processes"]) == 1


def test_the_store_is_where_the_user_wants_it(work, ports):
    port, = ports(1)
    plan = json.loads(work.run("--dry-run=json", "--master-addr=127.0.0.1", f"--master-port={port}",
                               "/bin/true").out)
    environment = plan["processes"][0]["environment"]
    assert environment["PADDLE_MASTER"] == f"127.0.0.1:{port}" and environment["MASTER_PORT"] == str(port)


def test_free_ports_are_taken_from_the_range_that_is_given(work, ports):
    first = ports.in_a_row(12)
    with_range = clean_environment(PORT_RANGE=f"{first}:{first + 11}")
    plan = json.loads(work.run("--dry-run=json", "--nproc_per_node=8", "/bin/true",
                               environment=with_range).out)
    taken = {int(endpoint.rsplit(":", 1)[1]) for process in plan["processes"]
             for endpoint in process["ports"]}
    assert len(taken) == 9 and all(first <= port <= first + 11 for port in taken)
    job = work.run("--nproc_per_node=8", f"--port-range={first}:{first + 3}", "/bin/true")
    assert (job.status == 125 and f"no port from {first} to {first + 3} is free" in job.err
            and "hint: widen --port_range" in job.err)


@pytest.mark.parametrize("word", ["auto", "cpu", "gpu"])
def test_as_many_trainers_as_there_are_cores_or_devices(work, word):
    cores = len(os.sched_getaffinity(0))
    processes = lambda **more: len(json.loads(work.run("--dry-run=json", f"--nproc-per-node={word}",
                                                       "/bin/true", environment=clean_environment(
                                                           **more)).out)["processes"])
    assert processes(CUDA_VISIBLE_DEVICES="0,1,2") == (cores if word == "cpu" else 3)
    if word == "gpu":
        job = work.run("--nproc-per-node=gpu", "/bin/true",
                       environment=clean_environment(CUDA_VISIBLE_DEVICES=""))
        assert job.status == 125 and "has no devices" in job.err and "hint:" in job.err
    else:
        assert processes(CUDA_VISIBLE_DEVICES="") == cores


def test_a_module_is_run_as_by_python_m(work, python):
    package = work.directory / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(DUMP)
    for flag in ("-m", "--module"):
        env, argv, _, name = dumped(work.run("--python", python, flag, "package.train", "-m", "x"))
        assert name == "__main__" and argv == [str(package / "train.py"), "-m", "x"]
    job = work.run("--python", python, "-m", "package.nosuch")
    assert job.status == 1 and "No module named package.nosuch" in job.out + job.err


def test_python_or_not_is_the_users_choice(work, python):
    work.script("train", DUMP)
    assert dumped(work.run("--python", python, "--run-path", "train"))[1] == ["train"]
    work.script("direct.py", "#!/bin/sh\necho run by sh\n", 0o755)
    job = work.run("--no-python", "./direct.py")
    assert job.status == 0 and job.log("workerlog.0") == "run by sh\n"
    work.script("train.pyxes", DUMP)
    plan = json.loads(work.run("--dry-run=json", "--python", python, "train.pyxes").out)
    assert plan["processes"][0]["argv"] == [python, "train.pyxes"]


def test_rpc_trainers_have_paddles_four_variables(work, ports):
    master = f"--master=127.0.0.1:{ports(1)[0]}"
    job = work.run("--run_mode=rpc", master, "--nproc_per_node=2", "/usr/bin/env")
    assert job.status == 0, job.err
    seen = [dict(line.split("=", 1) for line in job.log(f"workerlog.{i}").splitlines()) for i in (0, 1)]
    assert [env["PADDLE_TRAINER_ID"] for env in seen] == ["0", "1"]
    assert seen[0]["PADDLE_MASTER_ENDPOINT"] == seen[1]["PADDLE_MASTER_ENDPOINT"]
    assert seen[0]["PADDLE_WORKER_ENDPOINT"] != seen[1]["PADDLE_WORKER_ENDPOINT"]
    assert all(env["PADDLE_TRAINERS_NUM"] == "2" for env in seen)
    paddles = {name for name in seen[0] if name.startswith("PADDLE_")}
    assert paddles == {"PADDLE_MASTER_ENDPOINT", "PADDLE_WORKER_ENDPOINT", "PADDLE_TRAINER_ID",
                       "PADDLE_TRAINERS_NUM", "PADDLE_LOG_DIR"}
    assert "RANK" not in seen[0] and "mode rpc" in job.err


def test_what_an_outer_launcher_left_is_taken_out(work):
    left = {"RANK": "7", "WORLD_SIZE": "9", "LOCAL_RANK": "7", "MASTER_ADDR": "nowhere",
            "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_ERROR_FILE": "/x"}
    job = work.run("--server_num=1", "/usr/bin/env", environment=clean_environment(**left))
    assert job.status == 0, job.err
    for log in ("serverlog.0", "workerlog.0"):
        names = {line.split("=", 1)[0] for line in job.log(log).splitlines()}
        assert not names & set(left)
    job = work.run("--nproc_per_node=1", "/usr/bin/env",
                   environment=clean_environment(**left, TORCH_NCCL_ASYNC_ERROR_HANDLING="3"))
    seen = dict(line.split("=", 1) for line in job.log("workerlog.0").splitlines())
    assert seen["RANK"] == "0" and seen["WORLD_SIZE"] == "1" and "TORCHELASTIC_ERROR_FILE" not in seen
    assert seen["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"


def test_old_spellings_are_understood(work):
    plan = json.loads(work.run("--dry-run=json", "--server_num=1", "--worker_num=2", "--http_port=8901",
                               "--backend=gloo", "/bin/true").out)
    assert [p["role"] for p in plan["processes"]] == ["server", "trainer", "trainer"]
    for flag, says in (("--heter_worker_num=1", "heter"), ("--coordinator_num=1", "federated"),
                       ("--elastic_server=127.0.0.1:2379", "--nnodes=MIN:MAX")):
        job = work.run(flag, "/bin/true")
        assert (job.status == 125 and says in job.err and flag.split("=")[0] in job.err
                and "hint: leave" in job.err)


def test_command_lines_of_paddles_documentation_are_understood_or_named(work):
    environment = clean_environment(CUDA_VISIBLE_DEVICES="0,1,2,3")
    plan = json.loads(work.run("--dry-run=json", "--gpus=1, 3", "/bin/true", environment=environment).out)
    assert [each["environment"]["CUDA_VISIBLE_DEVICES"] for each in plan["processes"]] == ["1,3", "1,3"]
    job = work.run("--elastic_server=127.0.0.1:2379", "--np=2", "--job_id=demo", "/bin/true")
    assert job.status == 125 and "--nnodes=MIN:MAX" in job.err and "twice" not in job.err
    for dash in "\u2013\u2014\u2212":
        job = work.run(f"{dash}selected_gpus=0,1", "/bin/true")
        assert job.status == 125 and "dash of a text program" in job.err and "--selected_gpus=0,1" in job.err


def test_the_flags_of_paddle_1_are_understood(work, ports):
    port = ports(1)[0]
    flags = ["--selected_gpus=0,1", "--cluster_node_ips=127.0.0.1", "--node_ip", "127.0.0.1",
             f"--started_port={port}", "--use_paddlecloud", "--print_config", "True"]
    plan = json.loads(work.run("--dry-run=json", *flags, "/bin/true",
                               environment=clean_environment(CUDA_VISIBLE_DEVICES="0,1,2")).out)
    environments = [process["environment"] for process in plan["processes"]]
    assert [each["PADDLE_CURRENT_ENDPOINT"] for each in environments] == [
        f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"]
    assert [each["FLAGS_selected_gpus"] for each in environments] == ["0", "1"]


def test_abbreviations_are_noted(work):
    job = work.run("--nproc_per=2", "/bin/true")
    assert job.status == 0 and "--nproc_per is read as --nproc_per_node" in job.err


def test_run_check_lets_processes_find_each_other(work):
    job = work.run("run_check")
    assert job.status == 0, job.err
    assert job.out.startswith("trainer 0 at 127.0.0.1:") and job.out.endswith(" has met 1 other: OK\n")
    job = work.run("--run_mode=rpc", "--nproc_per_node=3", "run_check")
    assert job.status == 0 and job.out.endswith(" has met 2 others: OK\n"), job.err
    job = work.run("--server_num=2", "--trainer_num=2", "run_check")
    assert job.status == 0, job.err
    assert job.log("workerlog.1").endswith(" has met 3 others: OK\n")


def test_a_script_of_that_name_is_run_instead(work):
    work.script("run_check", "#!/bin/sh\necho mine\n", 0o755)
    assert "there is one in the current directory" in work.run("run_check").err
    assert work.run("./run_check").out == "mine\n"
