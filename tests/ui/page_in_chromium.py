#!/usr/bin/env python3
"""Looks at the page of `fleetrun ui` in headless Chromium, over a job of many processes with long logs.

usage: tests/ui/page_in_chromium.py [--processes=256] [--lines=100000] [--pictures=DIR]

Scrolls, searches and follows, and measures how long the page's main thread was ever busy at a time; goes
through the timeline by keys; looks for violations of accessibility with axe-core, light and dark; leaves
pictures of the views in DIR. Exits 1 where a task took more than 50 ms of the processor or axe finds
something serious, and 77 where there is no Chromium or no Python package `playwright`; without
`axe_playwright_python` it says that accessibility was not looked at.
"""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fleetrun_job import Workplace, clean_environment, find_fleetrun, wait_until  # noqa: E402

LONGEST = 50  # ms
WRITE = """#!/bin/sh
seq -f "step %.0f of rank $FLEETRUN_RANK: loss 0.5" LINES
while [ ! -e go ]; do echo "waiting <b>"; sleep 3; done
[ $FLEETRUN_RANK != 1 ] || { echo "ValueError: the batch is empty" >&2; exit 3; }
"""

class Trace:
    """Which tasks the page's main thread had. What counts is a task's processor time: on a machine that
    others use, too, the clock says how long it stood still for them. The clock's time is printed beside
    it."""

    def __init__(self, page):
        self.page, self.events, self.is_over = page, [], False
        self.cdp = page.context.new_cdp_session(page)
        self.cdp.on("Tracing.dataCollected", lambda data: self.events.extend(data["value"]))
        self.cdp.on("Tracing.tracingComplete", lambda data: setattr(self, "is_over", True))

    def begin(self):
        self.events.clear()
        self.is_over = False
        self.cdp.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": {
            "includedCategories": ["toplevel", "v8"], "excludedCategories": ["*"]}})

    def end(self, name):
        """The tasks that took too long, in ms; says the longest."""
        self.page.wait_for_timeout(300)
        self.cdp.send("Tracing.end")
        while not self.is_over:
            self.page.wait_for_timeout(20)
        main = {(event["pid"], event["tid"]) for event in self.events
                if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"}
        mine = [event for event in self.events
                if event["ph"] == "X" and (event["pid"], event["tid"]) in main]
        # Playwright's own scripts are modules, the page's are none.
        foreign = [event["ts"] for event in mine if event["name"] == "v8.evaluateModule"]
        tasks = [event for event in mine if event["name"].endswith("RunTask")
                 and not any(event["ts"] <= at <= event["ts"] + event["dur"] for at in foreign)]
        assert tasks, "the trace has no tasks"
        processor = [event.get("tdur", event["dur"]) / 1000 for event in tasks]
        clock = max(event["dur"] for event in tasks) / 1000
        print(f"{name}: {len(tasks)} tasks, the longest {max(processor):.0f} ms of the processor, "
              f"{clock:.0f} ms by the clock")
        return [round(task) for task in processor if task > LONGEST]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def start_job(work, runtime, options):
    environment = clean_environment(FLEETRUN_RUN_DIR=str(runtime))
    work.script("write.sh", WRITE.replace("LINES", str(options.lines)), 0o755)
    work.start(f"--nproc_per_node={options.processes}", "--show=none", "./write.sh", environment=environment)
    last = work.directory / "log" / f"workerlog.{options.processes - 1}"
    ready = lambda: last.exists() and all(  # noqa: E731
        b"waiting" in path.read_bytes()[-400:] for path in (work.directory / "log").glob("workerlog.*"))
    wait_until(ready, "all lines of all processes", 600)
    return environment


def accessibility(page, name):
    """The violations that axe-core calls serious or critical."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        print(f"{name}: accessibility was not looked at: no axe_playwright_python")
        return []
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    print(f"{name}: axe: {len(serious)} serious, {len(found) - len(serious)} others "
          f"{[one['id'] for one in found]}")
    for one in serious:
        print("  ", one["id"], one["help"], [node["html"][:120] for node in one["nodes"][:3]])
    return serious


def until(page, condition):
    """As page.wait_for_function, which the page's Content-Security-Policy forbids."""
    wait_until(lambda: page.evaluate(condition), condition, 60)


def picture(page, options, name):
    if options.pictures:
        page.screenshot(path=str(options.pictures / f"{name}.png"))


def look(page, url, options, work):
    bad = []
    trace = Trace(page)
    trace.begin()
    page.goto(url)
    page.wait_for_url(lambda where: "token=" not in where)
    until(page, f"document.querySelectorAll('#rows tbody tr').length === {options.processes}")
    bad += trace.end("loaded")
    trace.begin()
    page.wait_for_timeout(3000)
    bad += trace.end(f"processes, {page.locator('#rows tbody tr').count()} rows, 3 s")
    picture(page, options, "processes")
    bad += accessibility(page, "processes")

    trace.begin()
    page.click("#tab-logs")
    total = options.processes * options.lines
    until(page, f"list.total >= {total}")
    bad += trace.end("logs: counted")
    trace.begin()
    page.hover("#view")
    for _ in range(100):
        page.mouse.wheel(0, 400)
    page.focus("#view")
    for key in ["PageDown"] * 30 + ["End", "Home"] + ["ArrowDown"] * 30:
        page.keyboard.press(key)
    page.evaluate("""async () => {
      for (let i = 0; i <= 60; ++i) {
        list.view.scrollTop = i / 60 * list.view.scrollHeight;
        await new Promise(requestAnimationFrame);
      }
    }""")
    until(page, "!document.querySelector('.line i')")
    bad += trace.end(f"logs, {total} lines: wheel, keys, scroll bar")
    trace.begin()
    page.keyboard.press("Home")
    page.fill("#text", f"step {options.lines} of rank {options.processes // 2}:")
    page.click("#next")
    until(page, "document.querySelector('.line.found mark') !== null")
    bad += trace.end("logs: searched through half of them")
    picture(page, options, "logs")
    bad += accessibility(page, "logs")
    trace.begin()
    page.fill("#text", "")
    page.check("#follow")
    page.wait_for_timeout(7000)
    assert page.evaluate("log.arrived.length") > 0
    assert page.locator("#lines b b").count() == 0, "text of a log became HTML"
    bad += trace.end("logs: followed for 7 s")
    picture(page, options, "follow")

    trace.begin()
    page.click("#tab-processes")
    until(page, "![...document.querySelectorAll('#rows tbody')].some((group) => group.hidden)")
    bad += trace.end("back at the processes")
    trace.begin()
    (work.directory / "go").touch()
    until(page, "!document.querySelector('#tab-verdict').hidden")
    page.click("#tab-verdict")
    page.wait_for_timeout(500)
    bad += trace.end("the job failed")
    picture(page, options, "verdict")
    return bad + accessibility(page, "verdict") + look_at_timeline(page, options, trace)


def look_at_timeline(page, options, trace):
    """By keys alone: the process that failed is found, and what is said of it."""
    trace.begin()
    page.click("#tab-timeline")
    page.focus("#timeline-view")
    keys = ["ArrowDown"] * 2 + ["ArrowRight"] * 2 + ["+"] * 3 + ["PageDown", "PageUp", "0"]
    for key in keys:
        page.keyboard.press(key)
    bad = trace.end("timeline: keys")
    assert "trainer 1 at " in page.inner_text("#moment"), page.inner_text("#moment")
    listed = page.inner_text("#moments")
    assert "ended with 3" in listed and "the batch is empty" in listed, listed
    picture(page, options, "timeline")
    bad += accessibility(page, "timeline")
    page.keyboard.press("Enter")
    until(page, "shown === 'logs' && !document.querySelector('#tab-logs').hidden")
    until(page, "document.querySelector('#lines .line')?.textContent.includes('of rank 1:')")
    return bad


def main():
    words = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    words.add_argument("--processes", type=int, default=256)
    words.add_argument("--lines", type=int, default=100_000)
    words.add_argument("--pictures", type=pathlib.Path)
    options = words.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        skip("there is no chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("there is no Python package playwright")
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fleetrun-ui-"))
    work = Workplace(directory)
    served = None
    bad = ["the page could not be looked at"]
    try:
        environment = start_job(work, directory / "run", options)
        served = subprocess.Popen([find_fleetrun(), "ui"], cwd=directory, env=environment, text=True,
                                  stdout=subprocess.PIPE)
        url = served.stdout.readline().strip()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium,
                                           args=["--no-sandbox"] if os.geteuid() == 0 else [])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            wrong = []
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda line: line.type == "error" and "404" not in line.text
                    and wrong.append(line.text))
            bad = look(page, url, options, work)
            page.emulate_media(color_scheme="dark")
            for view in ("processes", "logs", "timeline", "verdict"):
                page.click(f"#tab-{view}")
                bad += accessibility(page, f"{view}, dark")
                picture(page, options, f"{view}-dark")
            bad += wrong
            print("errors of the page:", wrong or "none")
            browser.close()
    finally:
        if served:
            served.send_signal(signal.SIGINT)
            served.wait(10)
        work.close()
        shutil.rmtree(directory, ignore_errors=True)
    print("passed" if not bad else "failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
