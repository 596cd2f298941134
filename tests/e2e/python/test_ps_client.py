"""fleetrun.ps: numpy in, numpy out, in one process, over sockets, and under fleetrun;
fleetrun.torch on top of it."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

from conftest import environment
from fleetrun_job import find_fleetrun, wait_until
from flow import LIMIT

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def run(tmp_path, text, **variables):
    """Runs a script and returns what it printed."""
    script = tmp_path / "script.py"
    script.write_text("import numpy as np\nimport fleetrun\nfrom fleetrun import ps\n" +
                      textwrap.dedent(text))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                          env=environment(**variables), timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_job(tmp_path, *arguments):
    """Runs `python -m fleetrun ARGUMENTS` and returns what the trainers printed."""
    done = subprocess.run([sys.executable, "-m", "fleetrun", "--log_dir=log", *arguments],
                          capture_output=True, text=True,
                          env=environment(FLEETRUN_RUN_DIR=str(tmp_path / "run")), timeout=LIMIT,
                          cwd=tmp_path)
    logs = "".join(path.read_text() for path in sorted((tmp_path / "log").glob("workerlog.*")))
    assert done.returncode == 0, done.stderr + logs
    return logs


@pytest.mark.parametrize("way,code,said", [
    ("sys.exit()", 0, True), ("sys.exit(0)", 0, True), ("sys.exit(3)", 3, False), ("1 / 0", 1, False)])
def test_a_client_says_goodbye_where_its_script_ends_well(tmp_path, way, code, said):
    (tmp_path / "script.py").write_text(textwrap.dedent(f"""
        import sys
        from fleetrun import ps
        goodbye = ps.Client.goodbye
        ps.Client.goodbye = lambda client: (print("goodbye", flush=True), goodbye(client))
        with ps.Client([ps.DenseTable("fc", 3)]) as client:
            {way}
        """))
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, env=environment(),
                          timeout=LIMIT, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "goodbye\n" if said else "")


def test_a_list_of_keys_may_have_small_ones_and_some_above_half_the_range(tmp_path):
    run(tmp_path, """
        with ps.Client([ps.SparseTable("count", 1, rule="sum")]) as client:
            keys = [[1, 2**64 - 1], [2**63, 0]]
            client.push("count", keys, np.ones((2, 2, 1)))
            assert client.rows("count") == 4 and client.get("count", [-1, 1])["found"].all()
            assert (client.pull("count", keys) == 1).all()
            for refused in ([1, 2**64], [0.5, 1], [1.0]):
                try:
                    client.pull("count", refused)
                    raise SystemExit(f"{refused} was taken")
                except fleetrun.Error as error:
                    assert "not integers" in error.what
        """)


def test_pull_and_push_in_one_process_take_any_shape_and_give_arrays(tmp_path):
    run(tmp_path, """
        tables = [ps.SparseTable("emb", 2, rule="sum", initializer=ps.Constant(0.5)), ps.DenseTable("fc", 3, rule=ps.Rule("sgd", learning_rate=0.5))]
        with ps.Client(tables) as client:
            keys = np.array([[1, 2, 1], [-1, 2**62, 2]])
            rows = client.pull("emb", keys)
            assert rows.shape == (2, 3, 2) and rows.dtype == np.float32 and (rows == 0.5).all()
            client.push("emb", keys, np.ones((2, 3, 2)))
            assert client.pull("emb", np.uint64([2**64 - 1, 1])).tolist() == [[1.5, 1.5], [2.5, 2.5]]
            assert client.pull("emb", []).shape == (0, 2)
            assert client.pull("emb", 7).shape == (2,)
            assert client.rows("emb") == 5
            assert client.pull("emb", [100], create=False).tolist() == [[0.5, 0.5]] and client.rows("emb") == 5
            client.set_dense("fc", [1, 2, 3])
            client.push_dense("fc", [2, 2, 2])
            assert client.pull_dense("fc").tolist() == [0, 1, 2]
            assert client.sum([[1.0, 2.0]]).tolist() == [[1.0, 2.0]]
            got = client.get("emb", [1, 100])
            assert got["found"].tolist() == [True, False] and got["values"].tolist() == [[2.5, 2.5], [0, 0]]
            (stat,) = client.stat()
            assert stat["tables"][0]["rows"] == 5 and stat["calls"]["push"]["errors"] == 0
        """)


@pytest.mark.parametrize("mode", ["async", "sync", "half_async", "geo"])
def test_rows_are_assigned_in_one_process_in_each_mode(tmp_path, mode):
    run(tmp_path, f"""
        rule = ps.Rule("adagrad", learning_rate=0.5)
        with ps.Client([ps.SparseTable("emb", 2, rule=rule, admission=None if {mode == "geo"} else
                                       ps.Admission("count", threshold=5))], mode="{mode}") as client:
            client.pull("emb", [3])
            client.assign("emb", np.array([[3, -1], [2**40, 7]]), np.arange(8.0).reshape(2, 2, 2))
            assert client.rows("emb") == 4
            assert client.pull("emb", [7, 3, 8]).tolist() == [[6, 7], [0, 1], [0, 0]]
            client.begin_pass()
            client.push("emb", [3], [[1, 1]])
            client.leave_pass()
            assert np.allclose(client.pull("emb", [3]), [[-0.5, 0.5]]), client.pull("emb", [3])
            client.assign("emb", np.empty(0, dtype=np.int64), np.empty((0, 2)))
            for keys, rows, words in (([3, 3], np.ones((2, 2)), "key 3 is there twice, at 0 and 1"),
                                      ([3], np.ones((1, 3)), "rows have the shape [1, 3], not [1, 2]"),
                                      ([3], [[1, np.inf]], "a value to assign is infinite"),
                                      ([3.5], np.ones((1, 2)), "not integers")):
                try:
                    client.assign("emb", keys, rows)
                    raise SystemExit(words)
                except fleetrun.Error as error:
                    assert words in str(error), error
        """)


def test_statistics_admission_and_expiry_are_those_of_the_table(tmp_path):
    run(tmp_path, """
        accessor = ps.Accessor("ctr", show_click_decay_rate=0.5, delete_threshold=0.09, nonclk_coeff=0.1, embedx_threshold=0)
        tables = [ps.SparseTable("ctr", 2, rule="sgd", accessor=accessor),
                  ps.SparseTable("rare", 1, rule="sum", admission=ps.Admission("count", threshold=2))]
        client = ps.Client(tables)
        assert client.pull("ctr", [1]).shape == (1, 4)
        client.push("ctr", [1, 2], np.zeros((2, 2)), shows=[10, 1], clicks=[3, 0], slot=7)
        got = client.get("ctr", [1, 2])
        assert got["show"].tolist() == [10, 1] and got["click"].tolist() == [3, 0] and got["slot"].tolist() == [7, 7]
        assert client.pull("ctr", [1])[0, :2].tolist() == [10, 3]
        assert client.shrink("ctr") == 1 and client.get("ctr", [1, 2])["found"].tolist() == [True, False]
        client.push("rare", [5], [[1]])
        assert client.rows("rare") == 0
        client.push("rare", [5], [[1]])
        assert client.rows("rare") == 1
        """)


def test_what_cannot_be_meant_is_refused_by_name(tmp_path):
    out = run(tmp_path, """
        tables = [ps.SparseTable("emb", 2), ps.DenseTable("fc", 3)]
        client = ps.Client(tables)

        def refused(call, *arguments, **more):
            try:
                call(*arguments, **more)
            except fleetrun.Error as error:
                print(error.kind + ":", error.what, "|", error.hint)
            else:
                print("not refused")

        refused(client.pull, "emc", [1])
        refused(client.pull, "fc", [1])
        refused(client.pull, "emb", [1.5])
        refused(client.push, "emb", [1, 2], [[1, 2]])
        refused(client.push, "emb", [1], [[np.nan, 2]])
        refused(client.pull_dense, "fc")
        refused(ps.Client, tables, mode="fast")
        refused(ps.Client, [ps.SparseTable("t", 1, rule=ps.Rule("sgd", lr=1))])
        refused(ps.Client, [ps.SparseTable("t", 1, rule="sgdd")])
        refused(ps.SparseTable, "t", 0)
        refused(ps.Client, [ps.DenseTable("t", 1), ps.DenseTable("t", 1)])
        refused(ps.Server, tables)
        refused(client.load, "/nowhere")
        """)
    lines = out.splitlines()
    for line, part in zip(lines, [
            "config: there is no table 'emc' | there are emb, fc",
            "config: table 'fc' is dense, used as sparse",
            "config: table 'emb': keys are float64, not integers",
            "config: table 'emb': gradients have the shape [1, 2], not [2, 2]",
            "data: table 'emb': a gradient is NaN", "config: table 'fc' has no values yet",
            "config: there is no mode 'fast'",
            "config: table 't': the rule has no 'lr' | it has kind, learning_rate",
            "config: table 't': the rule: there is no 'sgdd'",
            "config: table 't': width is 0", "config: ", "config: this process is not a server", ": "],
            strict=True):
        assert part in line, line
    assert "not refused" not in out


@pytest.mark.parametrize("accessor,counts", [
    ("None", [100, 100, 100]), ("ps.Accessor('ctr')", [100, 100, 100]),
    ("ps.Accessor('ctr', delta_threshold=0.1)", [100, 2, 1])])
def test_saves_of_mode_1_have_the_rows_that_changed_by_the_threshold(tmp_path, accessor, counts):
    run(tmp_path, f"""
        def tables():
            return [ps.SparseTable("emb", 2, rule="sum", accessor={accessor})]
        with ps.Client(tables()) as client:
            for number, keys in enumerate((np.arange(100), np.array([3, 4]), np.array([7]))):
                client.push("emb", keys, np.ones((len(keys), 2)))
                client.save(f"{{number}}", 1)
        for number, count in enumerate({counts}):
            with ps.Client(tables()) as reader:
                reader.load(f"{{number}}")
                assert reader.rows("emb") == count, number
        """)


def test_who_loads_exports_in_their_order_has_the_rows_of_who_trains(tmp_path):
    run(tmp_path, """
        tables = [ps.SparseTable("ctr", 2, rule="sum", accessor=ps.Accessor("ctr", delete_threshold=0.05)),
                  ps.DenseTable("fc", 3, rule="sum")]
        keys = np.arange(40, dtype=np.uint64)
        def rows(client):
            return client.get("ctr", keys) | {"fc": client.pull_dense("fc")}
        with ps.Client(tables) as client:
            client.set_dense("fc", [1, 2, 3])
            client.push("ctr", keys, np.ones((40, 2)), shows=np.where(keys == 7, 0.2, 1.0))
            numbers = [client.export("0")]
            for step in range(1, 4):
                client.push("ctr", keys[step:2 * step], np.full((step, 2), step), shows=np.zeros(step))
                client.push_dense("fc", np.ones(3))
                if step == 2:
                    assert client.shrink("ctr") == 1
                numbers.append(client.export(str(step), since=numbers[-1]))
            want = rows(client)
            refused = 0
            try:
                client.export("4", since=numbers[-1] + 1)
            except fleetrun.Error as error:
                refused = error.kind == "config" and str(numbers[-1] + 1) in error.what
            assert refused
        assert numbers == sorted(set(numbers))
        with ps.Client(tables) as follower:
            for step in range(4):
                assert follower.load(str(step)) == ""
            have = rows(follower)
        assert not have["found"][7] and all(np.array_equal(have[name], want[name]) for name in want), (have, want)
        """)


def test_rows_expire_by_time_also_after_a_load(tmp_path):
    run(tmp_path, """
        import time
        def table(**settings):
            return [ps.SparseTable("emb", 1, rule="sum", **settings)]
        for wrong in (-1, 0.5, "1"):
            try:
                table(expire_seconds=wrong)
                raise SystemExit(f"{wrong!r} was taken")
            except fleetrun.Error as error:
                assert "not whole seconds" in error.what
        with ps.Client(table(expire_seconds=1)) as client:
            client.push("emb", [1, 2], np.ones((2, 1)))
            deadline = time.monotonic() + 60
            while client.rows("emb") and time.monotonic() < deadline:   # beside training
                client.pull("emb", [1, 2], create=False)
            assert client.rows("emb") == 0
        with ps.Client(table(expire_seconds=1000)) as client:
            client.push("emb", [1, 2], np.ones((2, 1)))
            client.save("day")
        with ps.Client(table()) as client:
            client.load("day")
            assert client.get("emb", [1, 2])["values"].tolist() == [[1], [1]]
        """)


def test_trainers_that_wait_in_different_calls_say_so(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import os, threading, time
        from fleetrun import ps
        tables = [ps.SparseTable("emb", 1)]
        if ps.is_server():
            ps.Server(tables).wait()
        else:
            with ps.Client(tables) as client:
                calls = [client.barrier, lambda: client.sum([1.0])]
                if os.environ["PADDLE_TRAINER_ID"] == "1":
                    calls.reverse()
                waiting = threading.Thread(target=calls[0])
                waiting.start()
                while not os.path.exists("go"):
                    time.sleep(0.05)
                calls[1]()
                waiting.join()
        """))
    variables = environment(FLEETRUN_RUN_DIR=str(tmp_path / "run"), FLEETRUN_PS_WAIT_WARNING="1")
    job = subprocess.Popen([sys.executable, "-m", "fleetrun", "--log_dir=log", "--server_num=1",
                            "--trainer_num=2", "script.py"], cwd=tmp_path, env=variables,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        logs = [tmp_path / "log" / f"workerlog.{rank}" for rank in (0, 1)]
        wait_until(lambda: all(log.exists() and "no trainer goes on: trainer 0 waits in barrier for "
                               in log.read_text() for log in logs), "warnings of both trainers")
        stat = subprocess.run([find_fleetrun(), "ps", "stat"], cwd=tmp_path, env=variables,
                              capture_output=True, text=True, timeout=LIMIT)
        assert "  trainer 1 waits for others in all_reduce, for " in stat.stdout, stat.stdout + stat.stderr
    finally:
        (tmp_path / "go").touch()
        assert job.wait(timeout=LIMIT) == 0
    assert all(log.read_text().count("no trainer goes on") == 1 for log in logs)


def test_a_server_by_hand_and_two_trainers_share_rows_and_save_them(tmp_path):
    run(tmp_path, """
        import threading
        tables = [ps.SparseTable("emb", 1, rule="sum")]
        servers = [ps.Server(tables, endpoint="127.0.0.1:0", rank=rank, servers=2, trainers=2) for rank in range(2)]
        endpoints = [server.endpoint for server in servers]
        clients = [ps.Client(tables, endpoints=endpoints, trainer=rank, trainers=2) for rank in range(2)]
        keys = np.arange(1000)

        def train(client):
            for _ in range(5):
                client.push("emb", keys, np.ones((1000, 1)))
            client.barrier()

        threads = [threading.Thread(target=train, args=(client,)) for client in clients]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert (clients[0].pull("emb", keys) == 10).all()
        clients[0].save("model")
        assert sum(stat["tables"][0]["rows"] for stat in clients[1].stat()) == 1000
        assert servers[0].stat()["server"] == 0
        for client in clients: client.goodbye()
        for server in servers: server.wait()
        alone = ps.Client(tables)
        alone.load("model")
        assert (alone.pull("emb", keys) == 10).all() and alone.rows("emb") == 1000
        """, FLEETRUN_INSECURE=1)


def test_sync_steps_of_two_trainers_are_averaged(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent("""
        import numpy as np
        from fleetrun import ps
        tables = [ps.SparseTable("emb", 1, rule="sum")]
        if ps.is_server():
            ps.Server(tables, mode="sync").wait()
        else:
            with ps.Client(tables, mode="sync") as client:
                client.begin_pass()
                for step in range(10):
                    client.push("emb", [7], [[2.0 * client.trainer + 1]])
                client.leave_pass()
                client.barrier()
                print("sum", client.pull("emb", [7]).item())
        """))
    logs = run_job(tmp_path, "--server_num=1", "--trainer_num=2", "train.py")
    assert logs.count("sum 20.0") == 2


def test_the_numpy_example_learns_alone_and_in_a_job(tmp_path):
    alone = subprocess.run([sys.executable, str(EXAMPLES / "ps_client" / "train.py")], capture_output=True,
                           text=True, env=environment(), timeout=LIMIT)
    assert alone.returncode == 0, alone.stderr
    logs = run_job(tmp_path, "--server_num=2", "--trainer_num=2", str(EXAMPLES / "ps_client" / "train.py"),
                   str(tmp_path / "model"))
    for text, trainers in ((alone.stdout, 1), (logs, 2)):
        last = [line.split() for line in text.splitlines() if " rows " in line]
        assert len(last) == trainers
        assert all(float(words[3]) < 0.05 and int(words[5]) == 500 for words in last), text
    assert any((tmp_path / "model").iterdir())


def have_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, env=environment(),
                          timeout=LIMIT).returncode == 0


def test_without_torch_the_embedding_says_what_to_install(tmp_path):
    if have_torch():
        pytest.skip("PyTorch is installed")
    out = run(tmp_path, """
        try:
            import fleetrun.torch
        except ImportError as error:
            print(error)
        """)
    assert "fleetrun.torch needs PyTorch" in out


def test_the_torch_example_learns_with_two_trainers_and_both_have_one_model(tmp_path):
    if not have_torch():
        pytest.skip("PyTorch is not installed")
    logs = run_job(tmp_path, "--server_num=1", "--trainer_num=2",
                   str(EXAMPLES / "torch_embedding" / "train.py"))
    last = [line.split() for line in logs.splitlines() if " right " in line]
    assert len(last) == 2 and last[0][5] == last[1][5]
    assert all(float(words[3]) > 0.8 for words in last), logs
