"""What every campaign shares: its options, its directories, the search for survivors,
its last line and its exit status.

A campaign is a script that does one thing many times, with random choices drawn from --seed,
and counts the failures:

  campaign.main(__doc__, run, count=1000)      run(Turn) returns None, or says what was wrong
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from fleetrun_job import find_fleetrun  # noqa: E402


class Turn:
    """One run of a campaign: its number, its own random numbers,
    its own directory, what marks its processes."""

    def __init__(self, number, options, directory):
        self.number, self.options, self.directory = number, options, pathlib.Path(directory)
        self.random = random.Random(f"{options.seed}-{number}")
        self.mark = f"CAMPAIGN_MARK={os.getpid()}-{number}"

    def environment(self):
        """This process's environment without what would change a job, and with the mark."""
        prefixes = ("PADDLE_", "FLEETRUN_", "FLAGS_", "TRAINING_ROLE", "POD_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
        name, _, value = self.mark.partition("=")
        return {**kept, name: value}

    def start(self, *arguments, **popen):
        """fleetrun with these arguments; its standard error goes to the file `stderr`."""
        with open(self.directory / "stderr", "wb") as errors:
            popen.setdefault("stdout", subprocess.DEVNULL)
            return subprocess.Popen([self.options.fleetrun, *map(str, arguments)], cwd=self.directory,
                                    stderr=errors,
                                    stdin=subprocess.DEVNULL, env=self.environment(), **popen)

    def wait_for_end(self, process, seconds, shown):
        """None where the process ends in time, with 0; else what went wrong, and the end of what it said."""
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.keep_a_hang()
            process.kill()
            disk = f"the disk takes a file in {self.seconds_of_disk():.2f} s"
            return f"it hangs ({disk}): {self.said()[-shown:]}"
        return f"status {status}: {self.said()[-shown:]}" if status != 0 else None

    def keep_a_hang(self):
        """Where every process of the job stands, and what it wrote, in a folder below $KEEP: a hang that is
        killed without that is never explained. Needs gdb."""
        if not (keep := os.environ.get("KEEP")):
            return
        stacks = []
        for pid, line in sorted(self.living().items()):
            words = ["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all backtrace 40"]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
                stacks.append(f"== {pid} {line}\n" + done.stdout.decode(errors="replace"))
        kept = pathlib.Path(keep, f"{pathlib.Path(sys.argv[0]).stem}-{self.options.seed}-{self.number}")
        shutil.copytree(self.directory, kept, dirs_exist_ok=True)
        (kept / "stacks").write_text("\n".join(stacks))

    def seconds_of_disk(self):
        """Two jobs that hang at one moment may have waited for nothing else."""
        begin = time.monotonic()
        with open(self.directory / "asked-of-the-disk", "wb") as file:
            file.write(b"a hang?")
            file.flush()
            os.fsync(file.fileno())
        return time.monotonic() - begin

    def said(self):
        return (self.directory / "stderr").read_text(errors="replace")

    def living(self):
        """The processes of this turn that live, however they were re-parented: {pid: command line}."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if self.mark.encode() not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{entry}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] in "ZX":
                        continue
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    found[int(entry)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def wait_until_gone(self, seconds):
        """The seconds until no process of this turn lives; None when some still do after `seconds`."""
        begin = time.monotonic()
        while self.living():
            if time.monotonic() - begin > seconds:
                return None
            time.sleep(0.002)
        return time.monotonic() - begin

    def kill_rest(self):
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def compile_c(source, folder):
    """A C program of tests/campaigns, compiled into `folder`; its path."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("campaign: error: there is no C compiler (cc)")
    program = str(pathlib.Path(folder, pathlib.Path(source).stem))
    subprocess.run([compiler, "-O1", "-o", program, str(pathlib.Path(__file__).with_name(source))],
                   check=True)
    return program


def make_parser(description):
    """With the options that every campaign has."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=int(time.time()),
                        help="of the random choices; it is printed")
    parser.add_argument("--fleetrun", default=find_fleetrun(), help="the fleetrun to test")
    return parser


def options_of(parser, why_not=None):
    """The options, printed as far as a failure needs them to be seen again. `why_not()` says why this machine
    cannot run the campaign."""
    options = parser.parse_args()
    options.fleetrun = os.environ["FLEETRUN_BIN"] = os.path.abspath(options.fleetrun)
    if not os.path.exists(options.fleetrun):
        raise SystemExit(f"campaign: error: there is no {options.fleetrun}\n"
                         "  hint: build it, or set FLEETRUN_BIN")
    if reason := why_not and why_not():
        raise SystemExit(f"campaign: error: {reason}")
    print(f"seed {options.seed}, {options.fleetrun}", flush=True)
    return options


def main(description, run, count, prepare=None, summary=None, more_options=None):
    """Runs the campaign. `more_options(parser)` adds the campaign's own; `prepare(options, folder)` is called
    once before it; `summary()` says more before the last line."""
    parser = make_parser(description)
    if more_options:
        more_options(parser)
    parser.add_argument("--count", type=int, default=count, help=f"how many runs ({count})")
    parser.add_argument("--only", type=int, help="only the run of this number: to see a failure again")
    parser.add_argument("--first", type=int, default=0, help="go on from this run (0)")
    options = options_of(parser)
    begin, done, failures = time.monotonic(), 0, 0
    numbers = [options.only] if options.only is not None else range(options.first, options.count)
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        if prepare:
            prepare(options, folder)
        for number in numbers:
            directory = pathlib.Path(folder, f"run-{number}")
            directory.mkdir()
            turn = Turn(number, options, directory)
            try:
                wrong = run(turn)
            except KeyboardInterrupt:  # enough: what was done counts
                break
            finally:
                turn.kill_rest()
            done += 1
            if wrong:
                failures += 1
                print(f"run {number} (--seed {options.seed} --only {number}): {wrong}", flush=True)
            shutil.rmtree(directory, ignore_errors=True)
    if summary:
        print(summary())
    print(f"{time.monotonic() - begin:.1f} s")
    print(f"{done} runs, {failures} failures", flush=True)
    sys.exit(1 if failures else 0)
