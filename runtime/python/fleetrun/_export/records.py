"""What a job has left in its folder: events (events.jsonl), and what its trainers fetched, as their logs have
it or, where FLEETRUN_EVENTS named a folder, their files of events. Read on from where the last look ended."""

import datetime
import json
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# time: [2022-05-18 11:27:27], batch: [100], loss[1]:[0.53], auc[1]:[0.64]
_PRINTED = re.compile(r"time: \[(?P<time>[^\]]+)\], batch: \[(?P<batch>\d+)\]")
_FETCHED = re.compile(r", (?P<name>[^\[\s]+)\[1\]:\[(?P<value>[^\]]+)\]")


class Sample(NamedTuple):
    """A value of one trainer."""

    rank: int
    attempt: int
    time: float  # seconds since 1970
    batch: int  # of this attempt, over all its passes
    name: str
    value: float


class _Lines:
    """The whole lines of a file that grows."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._at = 0

    def new(self) -> Iterator[str]:
        try:
            with self.path.open("rb") as file:
                file.seek(self._at)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        yield from whole.decode(errors="replace").splitlines()


class _Trainer:
    """A file with what one trainer has fetched."""

    def __init__(self, path: pathlib.Path, rank: int, attempt: int) -> None:
        self._lines = _Lines(path)
        self._rank, self._attempt = rank, attempt
        self._batch = self._last = 0
        self._time = 0.0  # of the line before

    def new(self) -> Iterator[Sample]:
        for line in self._lines.new():
            if line.startswith("{"):
                yield from self._of_event(line)
            elif printed := _PRINTED.match(line):
                count = int(printed["batch"])
                # The count begins anew with each pass.
                self._batch += count - self._last if count > self._last else count
                self._last = count
                time = _local_time(printed["time"])
                for fetched in _FETCHED.finditer(line, printed.end()):
                    yield from self._sample(time, fetched["name"], fetched["value"])

    def _of_event(self, line: str) -> Iterator[Sample]:
        try:
            event = json.loads(line)
            batches, examples, values = event["batches"], event["examples"], event["values"].items()
            time = float(event["time"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # a script's own line
        self._batch += int(batches)
        for name, value in values:
            yield from self._sample(time, name, value)
        if self._time and time > self._time:
            yield from self._sample(time, "examples_per_second", examples / (time - self._time))
        self._time = time

    def _sample(self, time: float, name: str, text: Any) -> Iterator[Sample]:
        try:
            value = float(text)
        except (TypeError, ValueError):
            return
        if math.isfinite(value):
            yield Sample(self._rank, self._attempt, time, self._batch, name, value)


def _local_time(text: str) -> float:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S").timestamp()
    except ValueError:
        return 0.0


def seconds_of(event: dict[str, Any]) -> float:
    """When it happened, in seconds since 1970."""
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


class Job:
    """The folder LOG_DIR/POD of a job, and maybe the one that FLEETRUN_EVENTS named."""

    def __init__(self, pod_directory: pathlib.Path, events: pathlib.Path | None = None) -> None:
        self._directory = pod_directory
        self._files = events
        self._lines = _Lines(pod_directory / "events.jsonl")
        self._trainers: dict[pathlib.Path, _Trainer] = {}
        self.is_over = False

    def new_events(self) -> list[dict[str, Any]]:
        """Objects of launcher/status/event_json; `type` says of what kind."""
        events = []
        for line in self._lines.new():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "type" in event and "time" in event:
                events.append(event)
        self.is_over = self.is_over or any(event["type"] == "job_ended" for event in events)
        return events

    def new_samples(self) -> list[Sample]:
        self._look()
        return [sample for trainer in self._trainers.values() for sample in trainer.new()]

    def _look(self) -> None:
        """Attempts that are new have logs of their own; files of events go on over all attempts."""
        if self._files is not None:
            found = [(path, 0) for path in self._files.glob("trainer-*.jsonl")]
        else:
            logs = self._directory.glob("[0-9]*/workerlog.*")
            found = [(path, int(path.parent.name)) for path in logs if path.parent.name.isdecimal()]
        for path, attempt in sorted(found):
            rank = re.split(r"[.-]", path.name.removesuffix(".jsonl"))[-1]
            if rank.isdecimal() and path not in self._trainers:
                self._trainers[path] = _Trainer(path, int(rank), attempt)
