"""Document 003, run: one server and two trainers, both modes;
the same script alone; saving, loading, faults."""

import os
import re
import signal
import sys

import flow
import pytest
from flow import LIMIT

PERIOD = re.compile(r"time: \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\], batch: \[\d+\], loss\[1\]:\[([\d.e-]+)\], "
                    r"auc\[1\]:\[([\d.e-]+)\]")


# Interrupts the script once its main thread has begun the barrier in init_worker,
# where it waits for trainer 1.
INTERRUPT_IN_BARRIER = """    import linecache, signal, threading
    main = threading.get_ident()
    def interrupt():
        while True:
            frame = sys._current_frames()[main]
            if "client.barrier()" in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
                return os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
"""


def figures(text):
    """(last loss, last auc) of the printed lines. The first loss says little:
    another trainer may have trained before."""
    found = [(float(match[1]), float(match[2])) for match in PERIOD.finditer(text)]
    assert found, text
    return found[-1]


def finish(process, status=0):
    """The process's output; fails when it does not end with `status`."""
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == status, f"exit status {process.returncode}\n{output}"
    return output


@pytest.fixture
def job(tmp_path, start, ports):
    """job(arguments, …) starts one server and two trainers of train.py and returns them."""

    def start_job(*arguments, **variables):
        port = ports(1)[0]
        command = [sys.executable, "train.py", *arguments]
        return [start(command, **{**flow.server_environment(port), **variables}),
                *(start(command, **{**flow.trainer_environment(port, rank), **variables})
                  for rank in range(2))]

    return start_job


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_one_server_and_two_trainers_learn(tmp_path, job, mode):
    flow.write(tmp_path)
    server, *trainers = job("8", mode)
    for trainer in trainers:
        output = finish(trainer)
        last, auc = figures(output)
        assert last < 0.5 and auc > 0.75, output
        assert output.count("examples: 400, batches: 20, ") == 8
    assert "running server with rank id: 0, endpoint: 127.0.0.1:" in finish(server)


def test_the_script_runs_alone_and_unchanged_as_paddle(tmp_path, start, package):
    flow.write(tmp_path, package="paddle")
    output = finish(start([sys.executable, "train.py", "6", "async"], PYTHONPATH=package + "/_compat"))
    last, auc = figures(output)
    assert last < 0.4 and auc > 0.8, output


def test_synchronous_runs_with_one_seed_are_the_same(tmp_path, job):
    outputs = []
    for attempt in range(2):
        folder = tmp_path / "data"
        if not folder.exists():
            flow.write(tmp_path,
                       after="print(exe.run(paddle.static.default_main_program().clone(for_test=True), "
                       "feed={'dense_input': [[1, 2, 3, 4]], 'C1': [[1]], 'C2': [[2]], 'C3': "
                       "[[3]], 'label': [[1]]}, fetch_list=[model.loss])[0][0])")
        processes = job("2", "sync")
        outputs.append([re.sub(r"time: \[.*?\]|seconds: .*|bound by .*", "", finish(process))
                        for process in processes[1:]])
        finish(processes[0])
    assert outputs[0] == outputs[1]
    assert outputs[0][0].splitlines()[-1] == outputs[0][1].splitlines()[-1]


def test_a_model_saved_on_a_server_comes_back(tmp_path, job):
    show = ("exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[model.loss], "
            "print_period=0); print('mean', round(exe.last_pass.fetch_means[0], 5), flush=True)")
    flow.write(tmp_path, after=f"fleet.is_first_worker() and fleet.save_persistables(exe, 'model'); {show}")
    saved = [finish(process) for process in job("4", "sync")][1:]
    train = (tmp_path / "train.py").read_text()
    save = "fleet.is_first_worker() and fleet.save_persistables(exe, 'model');"
    load = "fleet.is_first_worker() and fleet.load_model('model', mode=0); fleet.barrier_worker();"
    # By a trainer, and by the server before trainers come.
    for script in (train.replace(save, load),
                   train.replace(save, "0;").replace("fleet.init_server()", "fleet.init_server('model')")):
        assert script != train
        (tmp_path / "train.py").write_text(script)
        loaded = [finish(process) for process in job("0", "sync")][1:]
        means = [re.search(r"mean (\S+)", output)[1] for output in (*saved, *loaded)]
        assert means[:2] == means[2:] and float(means[0]) < 0.5


def test_a_trainer_that_forgets_to_say_goodbye_says_it_at_its_end(tmp_path, job):
    flow.write(tmp_path)
    train = (tmp_path / "train.py").read_text().replace("    fleet.stop_worker()\n", "")
    (tmp_path / "train.py").write_text(train)
    for process in job("1", "async"):
        finish(process)


def test_a_server_ends_with_0_when_it_is_asked_to(tmp_path, start, ports):
    flow.write(tmp_path)
    # What a script does behind run_server() is its end: being asked again does not cut it off.
    train = (tmp_path / "train.py").read_text()
    served = "    fleet.run_server()\n"
    asked_again = "    import signal\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('its end')\n"
    assert train.count(served) == 1
    (tmp_path / "train.py").write_text(train.replace(served, served + asked_again))
    server = start([sys.executable, "train.py", "1", "async"], **flow.server_environment(ports(1)[0]))
    for line in server.stdout:
        if "running server with rank id: 0" in line:
            break
    else:
        pytest.fail("the server did not say that it runs")
    server.send_signal(signal.SIGTERM)
    assert "its end" in finish(server)


def test_a_port_in_use_is_named(tmp_path, start):
    import socket

    flow.write(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = finish(start([sys.executable, "train.py", "1", "async"], **flow.server_environment(port)),
                        status=1)
    assert "fleetrun.Error: " in output and f"127.0.0.1:{port}" in output


def test_ctrl_c_ends_a_trainer_that_waits(tmp_path, start, ports):
    flow.write(tmp_path)
    port = ports(1)[0]
    server = start([sys.executable, "train.py", "1", "sync"], **flow.server_environment(port))
    train = (tmp_path / "train.py").read_text().replace("    fleet.init_worker()\n",
                                                        INTERRUPT_IN_BARRIER + "    fleet.init_worker()\n")
    (tmp_path / "train.py").write_text(train)
    trainer = start([sys.executable, "train.py", "1", "sync"], **flow.trainer_environment(port, 0))
    output, _ = trainer.communicate(timeout=LIMIT)
    # -SIGINT where Python was, 130 where a call that cannot be cancelled was left behind.
    assert trainer.returncode in (130, -signal.SIGINT) and "KeyboardInterrupt" in output
    server.send_signal(signal.SIGTERM)
    finish(server)


def test_ctrl_c_ends_a_pass(tmp_path, start):
    flow.write(tmp_path)
    reader = (tmp_path / "reader.py").read_text() + "    import signal\n    signal.pause()\n"
    (tmp_path / "reader.py").write_text(reader)
    trainer = start([sys.executable, "train.py", "1", "async"])
    for line in trainer.stdout:
        if line.startswith("time: "):
            break
    trainer.send_signal(signal.SIGINT)
    output = finish(trainer, status=-signal.SIGINT)
    assert "KeyboardInterrupt" in output


def test_a_server_that_dies_is_named_by_its_trainers(tmp_path, job):
    flow.write(tmp_path, lines=2000)
    server, *trainers = job("1000", "async")
    for line in trainers[0].stdout:
        if line.startswith("examples: "):
            break
    os.kill(server.pid, signal.SIGKILL)
    for trainer in trainers:
        output = finish(trainer, status=1)
        assert "fleetrun.Error: " in output and "server 0" in output


@pytest.mark.parametrize("package_name, flags", [("fleetrun", []), ("paddle", ["--compat=paddle"])])
def test_fleetrun_starts_the_whole_job(tmp_path, start, package_name, flags):
    from fleetrun_job import find_fleetrun

    flow.write(tmp_path, package=package_name)
    output = finish(start([find_fleetrun(), "--server_num=1", "--trainer_num=2", "--python", sys.executable,
                           *flags,
                           "train.py", "8", "async"]))
    last, auc = figures(output)
    assert last < 0.5 and auc > 0.75, output
    server, other = ((tmp_path / "log" / name).read_text() for name in ("serverlog.0", "workerlog.1"))
    assert "running server with rank id: 0, endpoint: 127.0.0.1:" in server
    assert other.count("examples: 400, batches: 20, ") == 8


def test_fleetrun_passes_a_failing_pipe_on(tmp_path, start):
    from fleetrun_job import find_fleetrun

    flow.write(tmp_path)
    with open(tmp_path / "data" / "part3", "a") as file:
        file.write("1\tnot a number\n")
    output = finish(start([find_fleetrun(), "--server_num=1", "--trainer_num=2", "--python", sys.executable,
                           "train.py",
                           "1", "async"]), status=1)
    assert "part3" in output and "could not convert string to float" in output


def test_trainers_add_up_over_two_servers(tmp_path, start):
    from fleetrun_job import find_fleetrun

    flow.write(tmp_path, after="""rank = fleet.worker_index()
    import numpy as np
    print("sum", fleet.util.all_reduce(np.array([rank + 1, 0.1])).tolist(), fleet.util.all_reduce(rank, "max"),
          fleet.util.all_reduce(rank, "min"), fleet.util.all_gather(10 + rank), fleet.server_num(),
          len(fleet.worker_endpoints()), paddle.distributed.get_world_size(), flush=True)""")
    output = finish(start([find_fleetrun(), "--server_num=2", "--trainer_num=3", "--python", sys.executable,
                           "train.py",
                           "2", "sync"]))
    expected = "sum [6.0, 0.30000000000000004] 2 0 [10, 11, 12] 2 3 3"
    assert expected in output
    for rank in (1, 2):
        assert expected in (tmp_path / "log" / f"workerlog.{rank}").read_text()
    for server in range(2):
        assert f"running server with rank id: {server}, " in (tmp_path / "log" /
                                                              f"serverlog.{server}").read_text()
