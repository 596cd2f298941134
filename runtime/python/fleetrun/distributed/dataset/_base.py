"""What the datasets share: their files, their slots and the settings of a pass.

Source: document 003, section 1.2.4; the MultiSlot rules are those of dataset/queue/queue_dataset.h.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import math
import os
import pathlib
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fleetrun import _dtypes as dtypes
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun.distributed.dataset._kept import Kept

if TYPE_CHECKING:
    from fleetrun._variable import Variable


def may_be_empty() -> bool:
    """Whether this trainer may have no example: one of several may, and as FLEETRUN_EMPTY_DATASET says."""
    is_allowed = os.environ.get("FLEETRUN_EMPTY_DATASET", "refuse") == "allow"
    return is_allowed or int(os.environ.get("PADDLE_TRAINERS_NUM", "1")) > 1


class DatasetBase(Kept):
    """Files (`set_filelist`) that go through `pipe_command`, one process per file, into batches of
    `use_var`."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: list[Any] = []
        self._slots: list[Any] = []
        self._pipe_command: str | list[str] = "cat"
        self._pipe_timeout = 0.0
        self._schema = ""
        self._batch_size = 1
        self.thread_num = 1
        self.filelist: list[Any] = []
        self._bad_line = os.environ.get("FLEETRUN_BAD_LINE", "fail")
        self._drop_last = False
        self._remote = {"download_command": "", "fs_name": "", "fs_ugi": ""}
        self._reader: Any = None
        self._turn = threading.Lock()

    def native(self, threads: int = 0) -> Any:
        """The engine's dataset; `threads` > 0 instead of the dataset's own. Subclasses write it."""
        raise NotImplementedError(type(self).__name__)

    @contextlib.contextmanager
    def one_pass(self, threads: int = 0) -> Iterator[Any]:
        """Within `with`: the engine's dataset, for this pass alone; `threads` > 0 instead of the dataset's
        own.

        Throws: Error(config), also when another thread's pass is reading.
        """
        if not self._turn.acquire(blocking=False):
            raise Error(
                "config",
                f"{self._name()}: another epoch is reading it",
                "give each thread that trains a dataset of its own",
            )
        try:
            yield self.native(threads)
        finally:
            self._turn.release()

    def init(
        self,
        batch_size: int = 1,
        thread_num: int = 1,
        use_var: Sequence[Variable] = (),
        pipe_command: str | Sequence[str] = "cat",
        input_type: int = 0,
        fs_name: str = "",
        fs_ugi: str = "",
        download_cmd: str = "cat",
        bad_line: str | None = None,
        drop_last: bool = False,
        pipe_timeout: int = 0,
        schema: Any = None,
    ) -> None:
        """Sets the dataset up. Every argument has a setter of its own, which says more.

        Paddle has no bad_line, drop_last, pipe_timeout and schema.
        Throws: Error(config) naming the argument; the files are looked at when a pass starts.
        """
        self.set_input_type(input_type)
        self.set_batch_size(batch_size)
        self.set_thread(thread_num)
        self.set_use_var(use_var)
        self.set_pipe_command(pipe_command)
        self.set_hdfs_config(fs_name, fs_ugi)
        self.set_download_cmd(download_cmd)
        if bad_line is not None:
            self.set_bad_line(bad_line)
        self.set_drop_last(drop_last)
        self.set_pipe_timeout(pipe_timeout)
        self.set_schema(schema)

    def set_batch_size(self, batch_size: int) -> None:
        """Examples per batch."""
        self._batch_size = self._count("batch_size", batch_size)

    def threads_of_pass(self, threads: int = 0) -> int:
        """How many threads one_pass(threads) has."""
        return max(1, min(threads or self._readers, len(self.filelist) or 1))

    def set_thread(self, thread_num: int) -> None:
        """Reader threads, and trainer threads with them; cut to the number of files."""
        self.thread_num = self._count("thread_num", thread_num)

    def set_pipe_command(self, pipe_command: str | Sequence[str]) -> None:
        """What turns a file into MultiSlot text: it gets the file as standard input, and one process is
        started per file.

        A str is run by bash; a list is a program and its arguments, without a shell. "cat" reads the file
        itself. A file whose name ends in .gz or .zst is unpacked first; "cat" unpacks .bz2 and .xz, too.
        """
        if isinstance(pipe_command, (list, tuple)):
            words = [os.fspath(word) for word in pipe_command]
            if not words or not words[0]:
                raise Error(
                    "config",
                    f"{self._name()}: pipe_command={pipe_command!r} names no program",
                    "give the program and its arguments",
                )
            self._pipe_command = words
        else:
            self._pipe_command = str(pipe_command)

    def set_pipe_timeout(self, seconds: float) -> None:
        """The longest time that a pipe command may print nothing while its reader waits; 0 (the default): any
        time.

        Not in Paddle.
        """
        if not (isinstance(seconds, (int, float)) and 0 <= seconds < 1e6):
            raise Error(
                "config",
                f"{self._name()}: pipe_timeout={seconds!r}",
                "it is a number of seconds, 0 for no limit",
            )
        self._pipe_timeout = float(seconds)

    def set_schema(self, schema: Any) -> None:
        """Takes the files, or what the pipe command prints, as delimited text, of which this file says what
        becomes of each
        column: fleetrun-schema(5). Slots are found there by the variables' names; no text is made between.
        None (the default): MultiSlot text.

        Not in Paddle.
        """
        self._schema = "" if schema is None else os.path.abspath(schema)

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The input variables, in slot order: float32 or int64, lod_level 0 (fixed width) or 1 (any
        number)."""
        self.variables = list(var_list)
        self._slots = [_slot(variable) for variable in self.variables]

    def set_filelist(self, filelist: Iterable[str]) -> None:
        """The files of a pass. A str or a list of them. Names like s3://bucket/file are fetched by
        download_cmd."""
        self.filelist = [filelist] if isinstance(filelist, str) else [os.fspath(name) for name in filelist]

    def set_input_type(self, input_type: int) -> None:
        """An example per line, also where Paddle's 1 (a batch per line) is asked for, which its QueueDataset
        does not know either."""
        if input_type:
            given = f"{self._name()}.init(input_type={input_type})"
            warn_once("input_type", f"{given} has no effect: a line is an example")

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """The Hadoop file system of names like hdfs:/file, read by `hadoop fs -cat` where there is no
        download_cmd."""
        self._remote["fs_name"] = str(fs_name)
        self._remote["fs_ugi"] = str(fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:
        """What fetches the files that are not on this host (hdfs:, afs:, s3:// …): run by bash with the name
        as one more argument; what it prints is the file. "cat", Paddle's default, means none."""
        self._remote["download_command"] = str(download_cmd)

    def set_bad_line(self, bad_line: str) -> None:
        """How malformed lines are handled: "fail" ends the pass; "skip:N" skips up to N of a pass, counted
        (bad_lines()) and reported on standard error at its end. Default: FLEETRUN_BAD_LINE (fleetrun
        --bad_line), or fail.

        Not in Paddle. Throws: Error(config).
        """
        from fleetrun import _native

        _native.DatasetOptions().bad_line = str(bad_line)
        self._bad_line = str(bad_line)

    def set_use_ps_gpu(self, use_ps_gpu: bool) -> None:
        """Accepted, as in a Paddle that was built without tables in GPU memory: True with a warning."""
        if use_ps_gpu:
            warn_once("use_ps_gpu", f"{self._name()}: use_ps_gpu has no effect: tables lie in host memory")

    def bad_lines(self) -> dict[str, Any]:
        """The lines that were passed over (set_bad_line) when the files were read last: {"count": N,
        "places": [the first ones]}. Not in Paddle."""
        report = self._reader.bad_lines() if self._reader else None
        return {"count": report.count if report else 0, "places": report.places if report else []}

    @property
    def batch_size(self) -> int:
        """Examples per batch."""
        return self._batch_size

    def desc(self) -> str:
        """What is read, as Paddle writes its DataFeedDesc; for people and logs."""
        from fleetrun.distributed.dataset._desc import text_of

        return text_of(self._feed_type, self._batch_size, self.variables, self._pipe_command)

    def set_drop_last(self, drop_last: bool) -> None:
        """Whether the last batch of a reader is left out when it is short. Not in Paddle."""
        self._drop_last = bool(drop_last)

    @property
    def _readers(self):
        """Paddle has a script set thread_num itself, to 0, too."""
        return max(self.thread_num, 1)

    _feed_type = "MultiSlotDataFeed"
    _desc = desc
    _set_batch_size = set_batch_size
    _set_thread = set_thread
    _set_pipe_command = set_pipe_command
    _set_use_var = set_use_var
    _set_input_type = set_input_type
    _set_hdfs_config = set_hdfs_config
    _set_download_cmd = set_download_cmd
    _set_use_ps_gpu = set_use_ps_gpu

    def _settings(self, threads=0):
        """All that the engine's dataset is made of, to compare."""
        return (
            list(self._checked_slots()),
            self._pipe_command,
            self._pipe_timeout,
            self._schema,
            self._batch_size,
            threads or self._readers,
            list(self.filelist),
            self._bad_line,
            self._drop_last,
            dict(self._remote),
        )

    def _source(self, threads, batch_size, ids=False, contents=False, **more):
        """The engine's reader of the files. ids, contents: whether lines begin with them; more: other options
        of the engine's. Throws: Error(config)."""
        from fleetrun import _native

        options = _native.DatasetOptions()
        options.slots = self._read_slots()
        if parquet := self._parquet_command(ids or contents):
            options.pipe_argv = parquet
        elif isinstance(self._pipe_command, list):
            options.pipe_argv = self._pipe_command
        else:
            options.pipe_command = self._pipe_command
        options.pipe_timeout = datetime.timedelta(seconds=self._pipe_timeout)
        options.batch_size, options.threads, options.files = batch_size, threads, self.filelist
        options.bad_line, options.schema = self._bad_line, self._schema
        options.allows_no_files = may_be_empty()
        for name, value in {**self._remote, "parse_ins_id": ids, "parse_content": contents, **more}.items():
            setattr(options, name, value)
        columnar = any(name.endswith(".frc") for name in self.filelist)
        self._reader = _native.ColumnarDataset(options) if columnar else _native.QueueDataset(options)
        return self._reader

    def _parquet_command(self, has_ids):
        """What makes text of Parquet files; None for other files, and where the script has a command of its
        own. Throws: Error(config)."""
        packed = [name for name in self.filelist if name.endswith(".parquet")]
        if not packed or self._pipe_command not in ("cat", ""):
            return None
        if len(packed) < len(self.filelist):
            other = next(name for name in self.filelist if name not in packed)
            what = f"{packed[0]} is Parquet, and {other} is not"
            raise Error("config", what, "read them one after the other")
        if has_ids or self._schema:
            what = "a schema" if self._schema else "parse_ins_id and parse_content"
            raise Error("config", f"{packed[0]}: {what} is for text, not for Parquet", "leave it out")
        if importlib.util.find_spec("pyarrow") is None:
            raise Error(
                "config", f"{packed[0]}: Parquet needs pyarrow, which is not installed", "pip install pyarrow"
            )
        command = pathlib.Path(__file__).parents[2] / "_parquet.py"
        return [sys.executable, str(command), *(f"{name}:{kind}" for name, kind, *_ in self._checked_slots())]

    def _name(self):
        return type(self).__name__

    def _checked_slots(self):
        """The slots. Throws: Error(config) where there are none."""
        if not self._slots:
            raise Error("config", "the dataset has no variables", "give it use_var=[...] in dataset.init")
        return self._slots

    def _read_slots(self):
        """All slots of a line, in order: (name, type, dense, width, whether it is used)."""
        return [(*slot, True) for slot in self._checked_slots()]

    def _count(self, name, value):
        if int(value) != value or value < 1:
            raise Error("config", f"{self._name()}: {name}={value!r}", "it is a number above 0")
        return int(value)


def _slot(variable):
    """(name, type, dense, width) of an input variable."""
    dtype = variable.dtype.name
    if dtype not in (dtypes.float32.name, dtypes.int64.name):
        raise Error("config", f"use_var: {variable.name} has the type {dtype}, a slot is float32 or int64")
    width = math.prod(size for size in variable.shape if size > 0)
    return (variable.name, dtype, variable.lod_level == 0, width)
