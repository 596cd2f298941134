#!/usr/bin/env python3
"""usage: tests/campaigns/ssh_cases.py [--count N] [--seed N] [--only NAME] [--slack SECONDS] [--say]
       [--fleetrun PATH]

Starts a small job by --hosts over a real sshd, once for each of the ways in which users have ssh and their
hosts: configurations of ssh, keys, names, shells, what is there and what is not. Each is judged beside
`ssh HOST true`: the job runs within --slack (2 s) of it; or, where the table says so, one error names the
host and what to do, as soon. Nothing is left on any host.

--count takes that many of the cases, drawn by --seed; --only takes those whose name has the word.
The hosts are network namespaces (tests/support/hosts_rig.py), so it needs root.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import campaign  # noqa: E402
import hosts_rig  # noqa: E402
import ssh_ship  # noqa: E402, F401 (adds to CASES)
from ssh_lab import Lab, Skip  # noqa: E402
from ssh_table import CASES  # noqa: E402

JOB = """import os
print("ran", os.environ["PADDLE_TRAINER_ID"], "of", os.environ["PADDLE_TRAINERS_NUM"], flush=True)
"""
LONGEST = 90  # seconds


def time_of(host, argv, **options):
    """Its seconds, its end and what it said; ended by force after LONGEST seconds."""
    begin = time.monotonic()
    process = host.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    try:
        said, _ = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return time.monotonic() - begin, process.returncode, said.decode(errors="replace")


def left(lab, known):
    """What runs on the hosts and did not before."""
    def found():
        return {host.name: new for host in lab.hosts
                if (new := {pid: words for pid, words in host.processes().items() if pid not in known})}
    end = time.monotonic() + 5
    while (there := found()) and time.monotonic() < end:
        time.sleep(0.02)
    return there


def judge(case, lab, slack):
    """What is wrong, and what was measured."""
    for host in lab.hosts:
        host.write("job.py", JOB)
        host.files.chmod(0o777)
    case.prepare(lab)
    options = {"environment": lab.h1.environment(**lab.environment), "directory": lab.directory}
    limit = ["timeout", "12"]
    ssh = time_of(lab.h1, [*limit, "ssh", "-n", "-o", "BatchMode=yes", *case.probe, "true"], **options)
    before = {pid for host in lab.hosts for pid in host.pids()}
    flags = [f"--hosts={case.hosts}", "--show=all", *case.flags, *lab.flags]
    took, status, said = time_of(lab.h1, [hosts_rig.find_fleetrun(), *flags, "job.py"], **options)
    measured = f"{took:5.2f} s beside {ssh[0]:5.2f} s of ssh"
    wrong = judge_words(case, status, said)
    patience = sum(int(flag.partition("=")[2]) for flag in flags if flag.startswith("--join_timeout"))
    if not wrong and took > max(ssh[0], 2 * patience) + case.more + slack:
        wrong = "too slow"
    if not wrong and (there := left(lab, before)):
        wrong = f"left: {there}"
    return wrong, measured, said


def judge_words(case, status, said):
    if "stranger" in said:
        return "the job's own launchers are called strangers"
    errors = said.count("fleetrun: error:")
    if case.wanted is None:
        ran = set(re.findall(r"ran (\d+) of (\d+)", said))
        if status != 0 or ran != {(str(rank), str(case.ranks)) for rank in range(case.ranks)}:
            return f"status {status}, ran {sorted(ran)}"
        return f"{errors} errors" if errors else None
    if status in (0, -9):
        return f"status {status}, but it cannot run"
    if errors != 1:
        return f"{errors} errors in place of one"
    told = "".join(line for line in said.splitlines(True) if "LAUNCH INFO" not in line)
    for pattern in (case.wanted, re.escape(case.named), "hint:"):
        if not re.search(pattern, told):
            return f"the error does not say {pattern!r}"
    return "processes ran" if re.search(r"ran \d+ of", said) else None


def main():
    parser = campaign.make_parser(__doc__)
    parser.add_argument("--count", type=int, default=len(CASES), help=f"how many cases (all, {len(CASES)})")
    parser.add_argument("--only", help="those whose name matches this")
    parser.add_argument("--slack", type=float, default=2, help="seconds more than ssh itself (2)")
    parser.add_argument("--say", action="store_true", help="what each said, also where nothing is wrong")
    options = campaign.options_of(parser, hosts_rig.why_not)
    cases = [one for one in CASES if re.search(options.only or "", one.name)]
    if options.count < len(cases):
        cases = random.Random(options.seed).sample(cases, options.count)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="ssh-cases-") as folder:
        os.chmod(folder, 0o755)
        with hosts_rig.Rig(folder, hosts=4) as rig:
            for one in cases:
                rig.reset()
                lab = Lab(rig)
                try:
                    wrong, measured, said = judge(one, lab, options.slack)
                except Skip as reason:
                    print(f"not tried {one.name}: {reason}", flush=True)
                    continue
                except AssertionError as failed:
                    wrong, measured, said = "not made", "", str(failed)
                finally:
                    lab.close()
                failures += wrong is not None
                print(f"{'wrong' if wrong else 'ok   '} {measured}  {one.name}"
                      + (f": {wrong}" if wrong else ""), flush=True)
                if wrong or options.say:
                    print("".join(f"    {line}\n" for line in said.splitlines()[-25:]), end="", flush=True)
    print(f"{len(cases)} runs, {failures} failures", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
