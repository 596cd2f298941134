"""examples/recovery: two processes, with and without a process that stands by."""
import re


def digests(folder, done):
    """The parameters that the two trainers ended with, in a job that ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [(folder / "log" / f"workerlog.{rank}").read_text() for rank in (0, 1)]
    assert len(re.findall(r"^epoch \d: loss \d\.\d{6}$", logs[0], re.M)) == 2, logs[0]
    return [re.search(r"parameters (\w{16})", log)[1] for log in logs]


def test_the_flag_changes_no_number(example, torch_fleetrun):
    folder = example("recovery")
    found = []
    for flags in [], ["--on_failure=replace"]:
        arguments = ["--nproc_per_node=2", *flags, "train.py", "--epochs=2", "--pace=0"]
        found += digests(folder, torch_fleetrun(folder, *arguments))
        (folder / "checkpoint.pt").unlink()
    assert len(set(found)) == 1
