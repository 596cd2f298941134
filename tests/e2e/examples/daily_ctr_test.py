"""examples/daily_ctr: each day goes on from the model of the day before,
and the model serves without servers."""
import re


def test_days_go_on_from_each_other(example, python, fleetrun):
    folder = example("daily_ctr")
    early = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", 1)
    assert early.returncode == 1 and "hint: python make_data.py writes them" in early.stdout + early.stderr
    assert not (folder / "model").exists()  # of a day without clicks
    assert python(folder, "make_data.py").returncode == 0
    areas, gone = [], []
    for day in (1, 2, 3):
        run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train.py", day)
        assert run.returncode == 0, run.stdout + run.stderr
        areas += map(float, re.findall(rf"^day {day}: 8000 examples, AUC before they were learned (0\.\d+)$",
                                       run.stdout, re.MULTILINE))
        gone += map(int, re.findall(rf"^day {day}: (\d+) rows went$", run.stdout, re.MULTILINE))
    # The first day is predicted by a model that has learned nothing.
    assert len(areas) == 3 and areas[0] < 0.6 < 0.7 < min(areas[1:])
    assert len(gone) == 3 and max(gone) > 0

    served = fleetrun(folder, "predict", "model/3/serve", "data/4/part-0",
                      "--slots=show:int64[1],click:int64[1],user:int64,item:int64,seen:int64")
    assert served.returncode == 0, served.stderr
    chances = [float(line) for line in served.stdout.splitlines()]
    lines = (folder / "data" / "4" / "part-0").read_text().splitlines()
    assert len(chances) == len(lines) == 2000
    clicked = [chance for chance, line in zip(chances, lines) if line.split()[3] == "1"]
    assert sum(clicked) / len(clicked) > 1.3 * sum(chances) / len(chances)
