"""The command line of `fleetrun export`; the job's folder has been found already."""

import argparse
import contextlib
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

from fleetrun._export.records import Job

_PAUSE = 1.0  # seconds between looks at a job that runs
_REFUSED = 125


def _tensorboard(directory: str) -> Any:
    from fleetrun._export.tensorboard_files import TensorBoard

    return TensorBoard(directory)


def _otlp(url: str) -> Any:
    from fleetrun._export.otlp import Otlp

    return Otlp(url)


# By flag: what makes a writer, and which package of pip it needs.
_WRITERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "tensorboard": (_tensorboard, "tensorboard"),
    "otlp": (_otlp, "opentelemetry-exporter-otlp-proto-http"),
}


def _refuse(what: str, hint: str) -> int:
    print(f"fleetrun: error: {what}\n  hint: {hint}", file=sys.stderr)
    return _REFUSED


def _export(job: Job, writers: list[Any], follows: bool) -> None:
    begun = False
    while True:
        is_last = job.is_over or not follows
        events, samples = job.new_events(), job.new_samples()
        if events and not begun:
            begun = True
            for writer in writers:
                writer.begin(events[0].get("job_id", "job"), events[0].get("pod", "pod"))
        for writer in writers:
            writer.add_events(events)
            if begun:
                writer.add_samples(samples)
            writer.flush()
        if is_last:  # what was written before the end has been read after it
            return
        if not job.is_over:
            time.sleep(_PAUSE)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("fleetrun export", add_help=False)
    parser.add_argument("pod_directory", type=pathlib.Path)
    parser.add_argument("--events", type=pathlib.Path)
    parser.add_argument("--follow", action="store_true")
    for flag in _WRITERS:
        parser.add_argument(f"--{flag}")
    words = parser.parse_args(arguments)
    writers = []
    for flag, (make, package) in _WRITERS.items():
        where = getattr(words, flag)
        if where is None:
            continue
        try:
            writers.append(make(where))
        except ImportError as error:
            return _refuse(
                f"--{flag} needs the package {package}, and {sys.executable} does not have it ({error})",
                f"{sys.executable} -m pip install {package}",
            )
    try:
        with contextlib.suppress(KeyboardInterrupt):  # what has come so far is kept
            _export(Job(words.pod_directory, words.events), writers, words.follow)
        for writer in writers:
            writer.close()
    except Exception as error:
        return _refuse(
            f"the job could not be exported: {error or type(error).__name__}",
            "check the address or folder; what was written before stays there",
        )
    return 0
