"""The wall clock jumps while a job runs, for fleetrun and its processes: nothing hangs, and nothing waits."""

import json
import shutil
import struct
import subprocess
import time

import pytest

from fleetrun_job import ROOT, clean_environment, find_fleetrun, wait_until

# The wall clock of a process, as it would be N seconds from now; N stands in the file $CLOCK_OFFSET.
CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long* offset;
__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("CLOCK_OFFSET");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* memory = file < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) offset = memory;
  if (file >= 0) close(file);
}
int clock_gettime(clockid_t clock, struct timespec* at) {
  int result = (int)syscall(SYS_clock_gettime, clock, at);
  if (offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *offset;
  return result;
}
int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""
WORKER = """
import os, pathlib, time
rank, attempt = int(os.environ["FLEETRUN_RANK"]), int(os.environ["FLEETRUN_ATTEMPT"])
beats = 0
while not pathlib.Path(f"end{attempt}").exists():
    os.write(int(os.environ["FLEETRUN_HEARTBEAT_FD"]), b"beat\\n")
    beats += 1
    shown = pathlib.Path(f"beats{attempt}.{rank}")
    shown.with_suffix(".new" + str(rank)).write_text(f"{beats} {time.time()}")
    shown.with_suffix(".new" + str(rank)).rename(f"beats{attempt}.{rank}")
    time.sleep(0.01)
raise SystemExit(attempt == 0 and rank == 0)
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler")
@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_wall_clock_that_jumps_changes_nothing(work, python, jump):
    (work.directory / "clock.c").write_text(CLOCK)
    library, offset = work.directory / "clock.so", work.directory / "offset"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, work.directory / "clock.c"], check=True)
    offset.write_bytes(struct.pack("l", 0))
    work.script("job.py", WORKER)
    job = work.start("--nproc_per_node=2", f"--python={python}", "--log_level=warning", "--grace=1",
                     "--hang_timeout=20", "--max_restart=1", "job.py",
                     environment=clean_environment(LD_PRELOAD=str(library), CLOCK_OFFSET=str(offset)))

    def beats(attempt, rank):
        path = work.directory / f"beats{attempt}.{rank}"
        count, clock = path.read_text().split() if path.exists() else (0, 0)
        return int(count), float(clock)

    def both_beat_on(attempt):
        before = [beats(attempt, rank)[0] for rank in (0, 1)]
        wait_until(lambda: all(beats(attempt, rank)[0] > before[rank] + 20 for rank in (0, 1)), "beats")

    both_beat_on(0)
    with offset.open("r+b") as file:
        file.write(struct.pack("l", jump))
    both_beat_on(0)
    assert abs(beats(0, 0)[1] - time.time() - jump) < 600, "the workers' clock has not jumped"
    (work.directory / "end0").touch()  # one fails: the pause before the next attempt is not an hour longer
    both_beat_on(1)
    with offset.open("r+b") as file:
        file.write(struct.pack("l", -jump))
    both_beat_on(1)
    (work.directory / "end1").touch()
    assert job.finish().status == 0, job.err
    assert "hang" not in job.err


# Longer than --lost_after=2: a host that is thought to be silent is given up meanwhile.
UPTIME = """
import os, time
print(time.clock_gettime(time.CLOCK_BOOTTIME) - float(os.environ["HERE"]), flush=True)
end = time.monotonic() + 4
while time.monotonic() < end:
    time.sleep(0.05)
"""


def test_hosts_that_were_started_at_other_times_are_one_job(work, python):
    """By the clocks that count from its start, h2 began twenty days before the other."""
    later = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", "1728000", "--boottime", "1728000"]
    if subprocess.run([*later, "true"], capture_output=True).returncode != 0:
        pytest.skip("time namespaces of one's own are not allowed here")
    there = work.script("there", f"#!/bin/sh\nexec {' '.join(later)} {find_fleetrun()} \"$@\"\n", 0o755)
    (work.directory / "config.json").write_text(json.dumps({"path": {"h2": str(there)}}))
    environment = clean_environment(FAKE_SSH=str(work.directory),
                                    HERE=str(time.clock_gettime(time.CLOCK_BOOTTIME)))
    job = work.run("--ssh", f"{python} -IS {ROOT}/tests/support/fake_ssh.py", "--python", python,
                   "--hosts=h1,h2", "--lost_after=2", "--show=all", work.script("up.py", UPTIME),
                   environment=environment)
    assert job.status == 0, job.err
    since = {name.strip(): float(seconds) for name, seconds in
             (line.split(" | ") for line in job.out.splitlines())}
    assert since["h1:trainer 0"] < 1000 and since["h2:trainer 1"] > 1_700_000
