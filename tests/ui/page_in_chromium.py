#!/usr/bin/env python3
"""Looks at the page of `fleetrun ui` in headless Chromium, over a job of many processes with long logs.

usage: tests/ui/page_in_chromium.py [--processes=256] [--lines=100000] [--pictures=DIR]

Scrolls, searches and follows, and measures how long the page's main thread was ever busy at a time; looks
for violations of accessibility with axe-core, light and dark; leaves pictures of the views in DIR. Exits 1
where a task took more than 50 ms or axe finds something serious, and 77 where there is no Chromium or no
Python package `playwright`; without `axe_playwright_python` it says that accessibility was not looked at.
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
# Tasks of more than 50 ms, and since when the page is watched.
WATCH = """() => {
  window.longTasks = [];
  new PerformanceObserver((seen) => {
    for (const task of seen.getEntries()) window.longTasks.push(Math.round(task.duration));
  }).observe({ type: "longtask" });
  // The longest time between two turns of the main thread while it has something to do in every one.
  window.longestTurn = 0;
  let last = performance.now();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    const now = performance.now();
    window.longestTurn = Math.max(window.longestTurn, now - last);
    last = now;
    setTimeout(() => { last = performance.now(); channel.port2.postMessage(0); });
  };
  channel.port2.postMessage(0);
}"""


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


def measured(page, name):
    page.wait_for_timeout(300)
    tasks, turn = page.evaluate("[window.longTasks.splice(0), window.longestTurn]")
    page.evaluate("window.longestTurn = 0")
    print(f"{name}: tasks over {LONGEST} ms: {tasks or 'none'}; longest turn {turn:.1f} ms")
    return tasks


def look(page, url, options, work):
    bad = []
    page.goto(url)
    page.wait_for_selector("#rows tr")
    page.evaluate(WATCH)
    page.wait_for_timeout(3000)
    bad += measured(page, f"processes, {page.locator('#rows tr').count()} rows, 3 s")
    picture(page, options, "processes")
    bad += accessibility(page, "processes")

    page.click("#tab-logs")
    total = options.processes * options.lines
    until(page, f"list.total >= {total}")
    page.evaluate("window.longTasks.splice(0); window.longestTurn = 0")
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
    bad += measured(page, f"logs, {total} lines: wheel, keys, scroll bar")
    page.keyboard.press("Home")
    page.fill("#text", f"step {options.lines} of rank {options.processes // 2}:")
    page.click("#next")
    page.wait_for_selector(".line.found mark", timeout=60_000)
    bad += measured(page, "logs: searched through half of them")
    picture(page, options, "logs")
    bad += accessibility(page, "logs")
    page.fill("#text", "")
    page.check("#follow")
    page.wait_for_timeout(7000)
    assert page.evaluate("log.arrived.length") > 0
    assert page.locator("#lines b b").count() == 0, "text of a log became HTML"
    bad += measured(page, "logs: followed for 7 s")
    picture(page, options, "follow")

    page.click("#tab-processes")
    (work.directory / "go").touch()
    page.wait_for_selector("#tab-verdict:not([hidden])", timeout=60_000)
    page.click("#tab-verdict")
    page.wait_for_timeout(500)
    bad += measured(page, "the job failed")
    picture(page, options, "verdict")
    return bad + accessibility(page, "verdict")


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
            for view in ("processes", "logs", "verdict"):
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
