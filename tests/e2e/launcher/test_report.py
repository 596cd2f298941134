"""A job in one file, and gone through again: `fleetrun report` and `fleetrun replay`.

Fifty different failures and more are a campaign, tests/campaigns/replays.py.
"""

import base64
import json
import pathlib
import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until

FAILS = """import os, sys, time
if os.environ["PADDLE_TRAINER_ID"] == "1":
    raise ValueError("it is 7 instead of 8")
time.sleep(60)
"""
# Twenty secrets, and where each of them is planted.
IN_VARIABLES = {"WANDB_API_KEY": "variable-01-secret", "AWS_SECRET_ACCESS_KEY": "variable-02-secret",
                "HF_TOKEN": "variable-03-secret", "DB_PASSWORD": "variable-04-secret",
                "OTHER_SETTING": "variable-05-secret"}
IN_ARGUMENTS = ["--token=argument-06-secret", "--password", "argument-07-secret",
                "--db-passwd=argument-08-secret",
                "--url=redis://me:argument-09-secret@host:1/0"]
IN_FILE = {"credentials": "password = file-10-secret\n", "netrc": "token: 'file-11-secret'\n",
           "key.pem": "-----BEGIN PRIVATE KEY-----\nfile-12-secret\n-----END PRIVATE KEY-----\n"}
IN_LOG = ["api_key=log-13-secret", '{"client_secret": "log-14-secret"}',
          "Authorization: Bearer log-15-secret",
          "s3://user:log-16-secret@bucket/x", "https://host/?access_token=log-17-secret&n=1",
          "curl --auth-token log-18-secret host", "ghp_log19secretlog19secret", "accessKey: log-20-secret"]


def tool(work, *arguments, environment=None):
    return subprocess.run([find_fleetrun(), *map(str, arguments)], cwd=work.directory, capture_output=True,
                          text=True, env=environment or clean_environment(), timeout=60)


def report_of(work, *arguments, **options):
    done = tool(work, "report", "-o", "report.json", *arguments, **options)
    assert done.returncode == 0, done.stderr
    path = work.directory / "report.json"
    assert path.stat().st_mode & 0o777 == 0o600
    return json.loads(path.read_text())


def packages_of(python):
    listed = "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'])"
    done = subprocess.run([python, "-c", listed], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_a_failed_job_is_one_file_and_goes_through_again_elsewhere(work, tmp_path):
    work.script("t.py", FAILS)
    job = work.run("--nproc_per_node=2", "--max_restart=1", "t.py", "--epochs=3")
    report = report_of(work)
    assert report["stacks"] == ""
    assert report["over"] and report["verdict"] == json.loads(job.log("verdict.json"))
    assert report["command"][-2:] == ["t.py", "--epochs=3"]
    assert report["machine"]["cpus"] > 0
    assert set(report["machine"]["packages"]) == packages_of(report["machine"]["python"])
    assert report["screen"] in job.err
    events = [json.loads(line) for line in next(work.directory.glob("log/*/events.jsonl")).open()]
    assert [event["type"] for event in report["events"]] == [event["type"] for event in events]
    assert "it is 7 instead of 8" in report["logs"]["trainer 1"]
    assert [each["name"] for each in report["plan"]["processes"]] == ["trainer 0", "trainer 1"]

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run([find_fleetrun(), "replay", work.directory / "report.json"], cwd=elsewhere,
                          env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["screen"] in done.stdout and "attempt 1 (crash, restart 1 of 1)" in done.stdout
    assert done.stdout.endswith("the same verdict and the same screen\n")


def test_twenty_planted_secrets_are_in_no_report(work):
    for name, text in IN_FILE.items():
        work.script(name, text)
    work.script("t.py", "import pathlib, sys\n"
                        f"for name in {list(IN_FILE)}: print(pathlib.Path(name).read_text())\n"
                        f"print('\\n'.join({IN_LOG}), sys.argv, flush=True)\n"
                        "raise ValueError('cannot log in, password=log-13-secret')\n")
    job = work.run("--nproc_per_node=1", "t.py", *IN_ARGUMENTS, environment=clean_environment(**IN_VARIABLES))
    assert job.status == 1 and "log-20-secret" in job.log("workerlog.0")
    text = json.dumps(report_of(work))
    record = base64.b64decode(json.loads((work.directory / "report.json").read_text())["record"])
    for number in range(1, 21):
        assert f"-{number:02d}-secret" not in text, number
        assert f"-{number:02d}-secret".encode() not in record, number
    assert "log19secret" not in text and "[hidden]" in text
    assert tool(work, "replay", "report.json").returncode == 0


def test_a_job_that_runs_is_reported_as_it_stands(work):
    work.script("t.py", "import os, time\n"
                        "print('mine is', os.environ['HF_TOKEN'], flush=True)\ntime.sleep(60)\n")
    job = work.start("--nproc_per_node=2", "t.py", environment=clean_environment(HF_TOKEN="abcdef123"))
    job.wait_for_log("workerlog.1", "mine is")
    wait_until(lambda: list(work.directory.glob("log/*/record")), "the record")
    report = report_of(work)
    assert not report["over"] and report["verdict"] is None
    assert report["logs"]["trainer 1"] == "mine is [hidden]\n"
    assert "trainer 0" in report["stacks"] and "trainer 1" in report["stacks"]
    done = tool(work, "replay", "report.json")
    assert done.returncode == 0 and "it ran when the report was made" in done.stdout, done.stdout


def test_a_job_that_went_well_has_no_logs_in_its_report(work):
    work.script("t.py", "print('done')\n")
    assert work.run("t.py").status == 0
    report = report_of(work)
    assert report["verdict"]["outcome"] == "completed" and report["logs"] == {} and report["screen"] == ""
    assert tool(work, "replay", "-q", "report.json").stdout.startswith("ended: completed, exit status 0\n")


def test_a_changed_verdict_is_told(work):
    work.script("t.py", FAILS)
    work.run("--nproc_per_node=2", "t.py")
    report = report_of(work)
    record = base64.b64decode(report["record"]).replace(b'"exit_status": 1', b'"exit_status": 2')
    report["record"] = base64.b64encode(record).decode()
    (work.directory / "changed.json").write_text(json.dumps(report))
    done = tool(work, "replay", "-q", "changed.json")
    assert done.returncode == 1 and "differs: the verdict is another one" in done.stdout, done.stdout


@pytest.mark.parametrize(("text", "says"), [
    ("", "it is not JSON"),
    ("[]", "it is not JSON"),
    ('{"schema": 2}', '"schema" is not 1'),
    ('{"schema": 1}', 'it has no "record"'),
    ('{"schema": 1, "record": "?"}', "is not base64"),
    ('{"schema": 1, "record": ""}', "it has no beginning"),
    ('{"schema": 1, "record": "AQAAAA=="}', "it has no beginning"),
    ('{"schema": 1, "record": "AQAAAGM="}', "cannot be read"),
])
def test_what_is_no_report_is_refused_in_words(work, text, says):
    work.script("report.json", text)
    done = tool(work, "replay", "report.json")
    assert done.returncode == 125 and says in done.stderr, done.stderr
    assert "replaying report.json" in done.stderr


def test_without_a_job_or_its_record_report_says_so(work):
    assert "there are no logs in log" in tool(work, "report", "--log_dir=log").stderr
    work.script("t.py", "")
    work.run("t.py")
    next(work.directory.glob("log/*/record")).unlink()
    done = tool(work, "report")
    assert done.returncode == 125 and "there is no record of this job" in done.stderr
    assert not pathlib.Path(work.directory, "report.json").exists()
