"""What the trainings of test_recovery.py share: deaths at chosen points, and notes of what counts.

environment: OUT (a folder; RANK.jsonl there has a line for each step that counts), EPOCHS, BATCHES, PACE
(seconds that a batch takes), DEATHS (JSON, a list of [rank, number of the batch, point]: the process kills
itself there, once in the job), LATE (seconds that every rank but the first waits for the first death before
its training begins).
"""

import json
import os
import signal
import time

from fleetrun.distributed._generations import Votes

OUT = os.environ["OUT"]
EPOCHS, BATCHES = int(os.environ.get("EPOCHS", "2")), int(os.environ.get("BATCHES", "6"))
PACE = float(os.environ.get("PACE", "0"))
DEATHS = json.loads(os.environ.get("DEATHS", "[]"))
LATE = float(os.environ.get("LATE", "0"))


class Faults:
    """Of a rank. drawn: the number of the batch that it is at."""

    def __init__(self, rank):
        self.drawn = -1
        self._rank = rank
        self._log = open(f"{OUT}/{rank}.jsonl", "a", buffering=1)
        self._taken = open(f"{OUT}/{rank}.taken", "ab", buffering=0)
        gather = Votes.gather

        def dying_gather(votes, value):
            """The call in which a step comes to count: some ranks hear its end, and one is lost at it."""
            self.die_at("vote")
            said = gather(votes, value)
            self.die_at("counted")
            return said

        Votes.gather = dying_gather

    def die_at(self, point):
        """Ends here, where that is asked for and has not been done."""
        for number, (who, batch, where) in enumerate(DEATHS):
            if (who, batch, where) != (self._rank, self.drawn, point):
                continue
            try:
                os.close(os.open(f"{OUT}/death.{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    def come_late(self):
        """Nobody may be lost in a step before all are there: this rank waits until the deadline."""
        until = time.monotonic() + LATE
        while self._rank != 0 and not os.path.exists(f"{OUT}/death.0") and time.monotonic() < until:
            time.sleep(0.01)

    def begin_batch(self, number):
        """The script has got it."""
        self.drawn = number
        self.die_at("drawn")
        if PACE:
            time.sleep(PACE)

    def take(self):
        """A step begins."""
        self._taken.write(b".")

    def note(self, **values):
        """A line of what counts."""
        values = {"pid": os.getpid(), "at": time.monotonic(), "batch": self.drawn, **values}
        self._log.write(json.dumps(values) + "\n")

    def end(self, values):
        """Keeps the parameters in which the rank ends."""
        with open(f"{OUT}/{self._rank}.end", "w") as file:
            file.write(" ".join(each.tobytes().hex() for each in values))
        print("done")
