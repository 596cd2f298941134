"""examples/wide_and_deep on the sample in the repository:
with servers, without, asynchronous and synchronous."""
import re

import pytest

# Flights of the sample in the months 10 to 12, and in the months before.
TEST_FLIGHTS = 2068
TRAIN_FLIGHTS = 6106


@pytest.fixture
def folder(example, python):
    copy = example("wide_and_deep")
    prepared = python(copy, "prepare_data.py", "--sample", "--files", 4)
    assert prepared.returncode == 0, prepared.stderr
    return copy


def measured_auc(output):
    """The AUC of the last line, which says on how many flights it was measured."""
    found = re.search(r"^test AUC: (0\.\d{4}) on (\d+) flights that were not trained on$", output,
                      re.MULTILINE)
    assert found, output
    assert int(found[2]) == TEST_FLIGHTS
    return float(found[1])


def check(run, epochs):
    assert run.returncode == 0, run.stdout + run.stderr
    epoch = re.compile(r"^epoch (\d) of (\d): (\d+) examples, \d+ examples/s, loss (0\.\d+), AUC (0\.\d{4})$",
                       re.MULTILINE)
    lines = epoch.findall(run.stdout)
    assert [int(line[0]) for line in lines] == list(range(1, epochs + 1)), run.stdout
    # Every flight once an epoch, whatever the number of trainers.
    assert all(int(line[2]) == TRAIN_FLIGHTS for line in lines)
    assert float(lines[-1][3]) < float(lines[0][3]), "the loss did not fall"
    assert float(lines[-1][4]) > 0.6, "nothing was learned"
    # 0.5 is a guess; 2,068 flights give or take 0.014.
    assert measured_auc(run.stdout) > 0.55


@pytest.mark.parametrize("mode", [[], ["--sync"], ["--mode", "half_async"],
                                  ["--mode", "geo", "--geo-steps", 10]],
                         ids=["async", "sync", "half_async", "geo"])
def test_one_server_and_two_trainers(folder, fleetrun, mode):
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", "--epochs", 3, "--batch-size",
                   100, *mode)
    check(run, epochs=3)
    assert sorted(path.name for path in (folder / "log").glob("*log.*")) == ["serverlog.0", "workerlog.0",
                                                                             "workerlog.1"]
    assert "running server with rank id: 0, endpoint: 127.0.0.1:" in (folder / "log" /
                                                                      "serverlog.0").read_text()
    assert "batch: [1], loss[1]:[" not in (folder / "log" / "workerlog.1").read_text()


def test_two_servers_hold_the_tables_together(folder, fleetrun):
    check(fleetrun(folder, "--server_num=2", "--trainer_num=2", "train.py", "--epochs", 3, "--batch-size",
                   100), epochs=3)


def test_one_process_needs_no_launcher(folder, python):
    check(python(folder, "train.py", "--epochs", 3, "--batch-size", 100, "--threads", 2), epochs=3)


def test_synchronous_training_repeats_itself(folder, fleetrun):
    def losses():
        run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", "--sync", "--epochs", 1)
        assert run.returncode == 0, run.stdout + run.stderr
        return re.findall(r"loss (0\.\d+), AUC (0\.\d{4})|test AUC: (\S+)", run.stdout)

    assert losses() == losses()


def test_without_data_the_script_says_how_to_get_it(example, python):
    copy = example("wide_and_deep")
    run = python(copy, "train.py")
    assert run.returncode == 1
    assert "no part-*.txt in" in run.stderr
    assert "hint: python prepare_data.py writes them" in run.stderr


def test_a_line_that_is_no_flight_fails_the_job_and_names_the_file(folder, fleetrun):
    with open(folder / "data" / "train" / "part-03.txt", "a") as file:
        file.write("this is not a flight\n")
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", "--epochs", 1)
    assert run.returncode not in (0, 124)
    # The second half of the four files is trainer 1's; trainer 0 fails of that too, but is not the cause.
    assert re.search(r"trainer 1 exited with 1: .*part-03\.txt.* \(first failure; log ",
                     run.stdout + run.stderr)
    assert "part-03.txt" in (folder / "log" / "workerlog.1").read_text()
