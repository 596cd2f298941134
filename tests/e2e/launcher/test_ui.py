"""`fleetrun ui`: what its page asks for, over HTTP, from a job that runs and one that has failed."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

from fleetrun_job import DEADLINE, ROOT, clean_environment, find_fleetrun, wait_until

WORK = """#!/bin/sh
trap 'echo had USR1' USR1
echo "begins <b>$FLEETRUN_RANK</b>"
while [ ! -e go ]; do sleep 0.05; done
[ $FLEETRUN_RANK != 1 ] || { echo "ValueError: no rows in the batch" >&2; exit 3; }
while :; do sleep 0.05; done
"""


class Browser:
    """What one would do with a page's address."""

    def __init__(self, address):
        self.url = urllib.parse.urlsplit(address)
        self.host, self.port = self.url.hostname, self.url.port
        self.origin = f"http://{self.url.netloc}"
        self.cookie = ""

    def ask(self, target, body=None, **headers):
        """Status, headers and text. A header that is None is not sent."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        sent = {"Cookie": self.cookie}
        if body is not None:
            sent.update({"Origin": self.origin, "Content-Type": "application/json"})
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request("GET" if body is None else "POST", target, body,
                           {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def open(self):
        status, headers, _ = self.ask(f"/?{self.url.query}", Cookie=None)
        assert status == 200
        self.cookie, *marks = headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict"} <= set(marks)
        return self

    def json(self, target, body=None):
        status, _, text = self.ask(target, body)
        assert status == 200, text
        return json.loads(text)



class Page(Browser):
    """A `fleetrun ui`."""

    def __init__(self, work, environment, *arguments):
        self.process = subprocess.Popen([find_fleetrun(), "ui", *arguments], cwd=work.directory,
                                        env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        address = self.process.stdout.readline().strip()
        assert address, self.process.communicate(timeout=DEADLINE)[1]
        super().__init__(address)

    def close(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, err


@pytest.fixture
def place(work, tmp_path_factory):
    place = Place(work, tmp_path_factory.mktemp("run"))
    yield place
    for page in place.pages:
        if page.process.poll() is None:
            page.process.kill()
            page.process.communicate()


class Place:
    def __init__(self, work, runtime):
        self.work = work
        self.pages = []
        self.environment = clean_environment(FLEETRUN_RUN_DIR=str(runtime / "fleetrun"))
        work.script("work.sh", WORK, 0o755)

    def start_job(self, *flags, **options):
        job = self.work.start("--nproc_per_node=2", *flags, "./work.sh", environment=self.environment,
                              **options)
        for rank in (0, 1):
            job.wait_for_log(f"workerlog.{rank}", "begins")
        # What a process has said may be there before its job can be found.
        wait_until(lambda: list(self.work.directory.glob("log/*/events.jsonl")) and self.jobs(), "the job")
        return job

    def jobs(self):
        listed = subprocess.run([find_fleetrun(), "list"], env=self.environment, text=True,
                                capture_output=True, timeout=DEADLINE, check=True)
        return listed.stdout.splitlines()[1:]

    def page(self, *arguments):
        self.pages.append(Page(self.work, self.environment, *arguments))
        return self.pages[-1]

    def refusal(self, *arguments):
        done = subprocess.run([find_fleetrun(), "ui", *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=DEADLINE, cwd=self.work.directory)
        assert done.returncode == 125
        return done.stderr

    def let_fail(self):
        (self.work.directory / "go").touch()


def pod_of(page):
    (job,) = wait_until(lambda: page.json("/api/jobs"), "the job")
    assert job["running"] is True
    return f"/api/jobs/{job['pod']}"


def test_a_running_job_is_shown_as_status_shows_it(place):
    place.start_job()
    page = place.page().open()
    job = pod_of(page)
    status = page.json(f"{job}/status")
    shown = subprocess.run([find_fleetrun(), "status", "--json"], env=place.environment, capture_output=True,
                           text=True, timeout=DEADLINE, check=True).stdout
    assert status.keys() == json.loads(shown).keys()
    assert [p["last_line"] for p in status["processes"]] == ["begins <b>0</b>", "begins <b>1</b>"]
    assert page.ask(f"{job}/verdict")[0] == 404 and page.ask(f"{job}/curves")[0] == 404
    status, _, text = page.ask(f"{job}/servers")
    assert status == 404 and "no parameter servers" in text
    code, err = page.close()
    assert (code, err) == (0, "")


def test_logs_are_read_searched_and_followed(place):
    place.start_job()
    page = place.page().open()
    job = pod_of(page)
    answer = page.json(f"{job}/lines?from=0&count=10")
    assert answer["total"] == 2 and answer["lines"] == ["begins <b>0</b>", "begins <b>1</b>"]
    assert [part["rank"] for part in answer["parts"]] == [0, 1]
    assert page.json(f"{job}/lines?role=trainer&rank=1&from=0&count=10")["lines"] == ["begins <b>1</b>"]
    assert page.json(f"{job}/lines?role=server")["total"] == 0
    assert page.json(f"{job}/search?text=%3Cb%3E1&from=0")["line"] == 1
    assert page.json(f"{job}/search?text=nothing&from=0") == {}
    assert page.ask(f"{job}/lines?rank=x")[0] == 400 and page.ask(f"{job}/search?text=")[0] == 400
    first = page.json(f"{job}/follow")
    assert first["lines"] == [[0, "begins <b>0</b>"], [1, "begins <b>1</b>"]]
    assert first["processes"] == ["trainer 0", "trainer 1"]
    place.let_fail()
    after = first["cursor"]

    def new_line():
        nonlocal after
        answer = page.json(f"{job}/follow?" + urllib.parse.urlencode({"after": after}))
        after = answer["cursor"]
        return answer["lines"]

    assert [1, "ValueError: no rows in the batch"] in wait_until(new_line, "the line")


def test_a_job_that_failed_stays_with_its_verdict(place):
    job = place.start_job()
    page = place.page().open()
    path = pod_of(page)
    place.let_fail()
    assert job.finish().status == 3
    for shown in (page, place.page().open()):  # one has seen it run, the other finds its logs
        (entry,) = shown.json("/api/jobs")
        assert not entry["running"] and entry["job_id"] == "default" and entry["mode"] == "collective"
        status = shown.json(f"{path}/status")
        assert status["phase"] == "ended" and status["exit_status"] == 3
        first, second = status["processes"]
        assert (first["state"], second["state"], second["exit"]["status"]) == ("ended", "failed", 3)
        assert "ValueError: no rows" in second["cause"]
        verdict = shown.json(f"{path}/verdict")
        assert verdict["outcome"] == "failed" and verdict["first_failure"]["name"] == "trainer 1"
        assert "ValueError: no rows in the batch" in verdict["first_failure"]["block"]
        assert shown.ask(f"{path}/stop", "{}")[0] == 409


def test_a_job_is_signalled_restarted_and_stopped(place):
    job = place.start_job("--max_restart=1")
    page = place.page().open()
    path = pod_of(page)
    assert page.json(f"{path}/signal", '{"signal":"USR1","role":"trainer","rank":1}') == {"ok": True}
    job.wait_for_log("workerlog.1", "had USR1")
    assert "had USR1" not in job.log("workerlog.0")
    status, _, text = page.ask(f"{path}/signal", '{"signal":"USR3"}')
    assert status == 409 and "USR3" in json.loads(text)["error"]
    assert page.ask(f"{path}/restart", '{"role":"trainer"}')[0] == 409
    assert page.ask(f"{path}/stop", '{"nov":true}')[0] == 409  # a misspelled "now" is no slow stop
    assert page.ask(f"{path}/stop", "[]")[0] == 400 and page.ask(f"{path}/attach", "{}")[0] == 404
    assert page.json(f"{path}/restart", '{"role":"trainer","rank":1}') == {"ok": True}
    wait_until(lambda: page.json(f"{path}/status")["processes"][1]["starts"] == 2, "the second start")
    assert page.json(f"{path}/stop", '{"now":true}') == {"ok": True}
    assert job.finish().status != 0


def test_strangers_are_turned_away(place):
    job = place.start_job()
    page = place.page().open()
    path = pod_of(page)
    stop = f"{path}/stop"
    assert page.ask("/api/jobs", Cookie=None)[0] == 403
    assert page.ask("/", Cookie="fleetrun_ui_%d=%064d" % (page.port, 0))[0] == 403
    assert page.ask(f"/?token={0:064}", Cookie=None)[0] == 403
    assert page.ask("/api/jobs", Host=f"evil.example:{page.port}")[0] == 421
    assert page.ask(stop, "{}", Origin="http://evil.example")[0] == 403
    assert page.ask(stop, "{}", Origin=None)[0] == 403
    assert page.ask(stop, "{}", Sec_Fetch_Site="same-site")[0] == 403
    assert page.ask(stop, "{}", Content_Type="text/plain")[0] == 415
    assert page.ask(stop)[0] == 404  # a GET acts on nothing
    assert page.ask("/api/jobs/..%2f..%2fetc/lines?count=1")[0] == 404
    assert page.ask("/api/jobs/../lines?count=1")[0] == 404
    assert job.process.poll() is None
    assert page.json(f"{path}/status")["phase"] == "running"


def test_it_listens_on_this_host_alone_and_closes_slow_clients_out(place):
    place.start_job()
    page = place.page().open()
    with open(f"/proc/{page.process.pid}/net/tcp") as file:
        listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
    assert f"0100007F:{page.port:04X}" in listening and f"00000000:{page.port:04X}" not in listening
    slow = [socket.create_connection((page.host, page.port)) for _ in range(100)]
    for connection in slow:
        connection.sendall(b"GET / HTTP/1.1\r\n")
    assert page.json("/api/jobs")
    for connection in slow:
        connection.close()
    assert page.ask("/api/jobs?" + "x" * 100_000)[0] == 431
    assert page.ask("/api/jobs/x/stop", "x" * 100_000)[0] == 413


def test_only_jobs_that_were_asked_for_are_shown(place):
    place.start_job("--job_id=mine")
    page = place.page("--job", "mine").open()
    assert len(page.json("/api/jobs")) == 1
    assert place.refusal("--job=other").startswith("fleetrun: error: no job other runs here")


@pytest.mark.parametrize("arguments,says", [
    (["--host=0.0.0.0"], "every address"), (["--port=70000"], "at most 65535"), (["a"], "takes no a"),
    (["--host=192.0.2.1"], "cannot listen")])
def test_what_cannot_be_served_is_refused(place, arguments, says):
    assert says in place.refusal(*arguments)


def test_the_curves_are_those_of_plot(place):
    line = 'time: [2022-05-18 11:27:27], batch: [%d], loss[1]:[0.%d]'
    lines = "".join(f"echo '{line % (i, i)}'\n" for i in (100, 200))
    place.work.script("print.sh", "#!/bin/sh\n" + lines, 0o755)
    place.work.run("./print.sh", environment=place.environment)
    page = place.page().open()
    (job,) = page.json("/api/jobs")
    status, _, text = page.ask(f"/api/jobs/{job['pod']}/curves")
    if status == 404 and "install fleetrun with" in text:
        pytest.skip("fleetrun plot is not installed here")
    values = {"name": "trainer 0", "batches": [100, 200], "values": [0.1, 0.2]}
    assert json.loads(text) == [{"loss": [values]}]


def address_in(path):
    """Of the page of a launch, from its LAUNCH lines."""
    found = wait_until(lambda: re.findall(r"Page: (\S+)", path.read_text()), "the page's address")
    assert len(found) == 1
    return found[0]


def test_the_page_of_a_launch_ends_with_its_job(place):
    with open(place.work.directory / "said", "w") as said:
        job = place.start_job("--ui", stderr=said)
    browser = Browser(address_in(place.work.directory / "said")).open()
    path = pod_of(browser)
    assert browser.json(f"{path}/status")["phase"] == "running"
    assert browser.ask("/api/jobs", Cookie=None)[0] == 403
    token = urllib.parse.parse_qs(browser.url.query)["token"][0]
    words = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert token not in words
    browser.json("/api/jobs")
    place.let_fail()
    # Somebody looks: the verdict is still there to be fetched, and fleetrun waits for that.
    wait_until(lambda: browser.ask(f"{path}/verdict")[0] == 200, "the verdict")
    job.process.wait(DEADLINE)
    assert job.process.returncode == 3
    with pytest.raises(OSError):
        browser.ask("/api/jobs")
    assert not any(token in file.read_text(errors="replace")
                   for file in place.work.directory.glob("log/**/*") if file.is_file())


def test_a_launch_does_not_wait_for_a_page_that_nobody_looks_at(place):
    place.work.script("quick.sh", "#!/bin/sh\n", 0o755)
    seconds = []
    for flags in ([], ["--ui"]):
        began = time.monotonic()
        job = place.work.run(*flags, "./quick.sh", environment=place.environment)
        seconds.append(time.monotonic() - began)
        assert job.status == 0
    assert "Page: http://127.0.0.1:" in job.err
    assert seconds[1] < seconds[0] + 1.5, seconds


def test_no_page_outlives_a_launch_that_is_killed(place):
    with open(place.work.directory / "said", "w") as said:
        job = place.start_job("--ui", stderr=said)
    browser = Browser(address_in(place.work.directory / "said")).open()
    job.process.kill()
    job.process.wait(DEADLINE)

    def is_gone():
        try:
            browser.ask("/api/jobs")
        except OSError:
            return True

    wait_until(is_gone, "the end of the page")


def test_a_detached_job_has_its_page_address_in_its_log_alone(place):
    job = place.work.run("--detach", "--ui", "--nproc_per_node=2", "./work.sh", environment=place.environment)
    assert job.status == 0 and "token=" not in job.out + job.err
    (log,) = place.work.directory.glob("log/*/launch.log")
    assert log.stat().st_mode & 0o77 == 0
    browser = Browser(address_in(log)).open()
    path = pod_of(browser)
    assert browser.json(f"{path}/stop", '{"now":true}') == {"ok": True}
    wait_until(lambda: not place.jobs(), "the end of the job")


def test_a_page_that_cannot_be_served_is_refused_before_anything_starts(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        job = place.work.run(f"--ui={port}", "./work.sh", environment=place.environment)
    assert job.status == 125
    assert f"the page cannot listen at 127.0.0.1:{port}: Address already in use" in job.err
    assert "choose another port" in job.err and not list(place.work.directory.glob("log/*/events.jsonl"))


def test_what_happened_is_read_from_where_the_last_look_ended(place):
    job = place.start_job("--max_restart=1", "--restart_backoff=0")
    page = place.page().open()
    path = pod_of(page)
    first = page.json(f"{path}/events")
    types = [event["type"] for event in first["events"]]
    assert types[0] == "job_began" and types.count("process_started") == 2 and not first["more"]
    assert page.json(f"{path}/events?from={first['next']}")["events"] == []
    place.let_fail()
    job.finish()
    rest = page.json(f"{path}/events?from={first['next']}")
    types = [event["type"] for event in rest["events"]]
    assert "restart_decided" in types and types[-1] == "job_ended"
    (file,) = place.work.directory.glob("log/*/events.jsonl")
    assert rest["next"] == file.stat().st_size
    with open(file, "a") as events:
        events.write('{"type": "cut o\n{"half')
    assert page.json(f"{path}/events?from={rest['next']}")["events"] == []
    assert page.ask(f"{path}/events?from=-1")[0] == 400


def test_vendored_files_are_the_released_ones():
    folder = pathlib.Path(ROOT) / "launcher/ui/uplot"
    sums = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == set(os.listdir(folder)) - {"SHA256SUMS"}
    for name, checksum in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name


def test_the_page_opens_in_the_browser_without_its_token_in_a_command(place):
    seen = place.work.directory / "seen"
    place.work.script("browser", "#!/bin/sh\n"
                      f"f=${{1#file://}}; {{ echo \"$*\"; stat -c %a \"$f\"; cat \"$f\"; }} > {seen}.new\n"
                      f"mv {seen}.new {seen}\n", 0o755)
    place.environment.update(BROWSER=f"/no/such/browser:{place.work.directory}/browser")
    page = place.page("--open")
    wait_until(seen.exists, "the browser")
    words, mode, text = seen.read_text().split("\n", 2)
    token = urllib.parse.parse_qs(page.url.query)["token"][0]
    assert f'0;url={page.url.geturl()}"' in text and mode == "600"
    assert token not in words and words.startswith("file:///")
    assert page.close() == (0, "")
    assert not pathlib.Path(words.removeprefix("file://")).exists()


def test_where_there_is_no_browser_the_address_is_left(place):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        place.environment.pop(name, None)
    page = place.page("--open").open()
    code, err = page.close()
    assert code == 0 and "no browser is found here" in err and "open the printed address" in err
