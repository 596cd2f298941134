"""Records as TensorBoard reads them: DIR/JOB-POD/trainer-RANK has the curves of a trainer, DIR/JOB-POD/job
how many processes run, the attempt, and the events as text. A further attempt of a trainer is a run of its
own, since its count of batches begins anew."""

import json
import pathlib
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from fleetrun._export.records import Sample, seconds_of

_CHANGES = {"process_started": 1, "process_exited": -1}  # of the number of those that run


class TensorBoard:
    def __init__(self, directory: str) -> None:
        self._directory = pathlib.Path(directory)
        self._run = self._directory
        self._writers: dict[str, Any] = {}
        self._running = self._events = 0

    def begin(self, job: str, pod: str) -> None:
        self._run = self._directory / f"{job}-{pod}"

    def add_events(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            time, self._events = seconds_of(event), self._events + 1
            self._text(time, event)
            if change := _CHANGES.get(event["type"]):
                self._running += change
                self._scalar("job", time, self._events, "processes_running", self._running)
            if event["type"] == "attempt_began":
                self._scalar("job", time, self._events, "attempt", event["attempt"])

    def add_samples(self, samples: list[Sample]) -> None:
        for each in samples:
            run = f"trainer-{each.rank}" + (f".attempt-{each.attempt}" if each.attempt else "")
            self._scalar(run, each.time, each.batch, each.name, each.value)

    def flush(self) -> None:
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _scalar(self, run: str, time: float, step: int, name: str, value: float) -> None:
        self._write(run, time, step, Summary.Value(tag=name, simple_value=value))

    def _text(self, time: float, event: dict[str, Any]) -> None:
        shown = {name: value for name, value in event.items() if name not in ("schema", "at", "type", "time")}
        text = f"**{event['type']}** `{json.dumps(shown, ensure_ascii=False)}`"
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
        self._write("job", time, self._events, Summary.Value(tag="events", metadata=metadata, tensor=tensor))

    def _write(self, run: str, time: float, step: int, value: Any) -> None:
        if run not in self._writers:
            self._writers[run] = EventFileWriter(str(self._run / run))
        self._writers[run].add_event(Event(wall_time=time, step=step, summary=Summary(value=[value])))
