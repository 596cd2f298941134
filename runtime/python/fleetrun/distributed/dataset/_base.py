"""What the datasets share: their files, their slots and the settings of a pass.

Source: document 003, section 1.2.4; the MultiSlot rules are those of dataset/queue_dataset.h.
"""

import math
import os

from fleetrun import _dtypes as dtypes
from fleetrun._arguments import refuse
from fleetrun._error import Error


class DatasetBase:
    """Files (`set_filelist`) that go through `pipe_command`, one process per file, into batches of `use_var`."""

    def __init__(self):
        self._slots = []
        self._pipe_command = "cat"
        self._batch_size = 1
        self._threads = 1
        self._files = []

    def init(self, batch_size=1, thread_num=1, use_var=(), pipe_command="cat", input_type=0, fs_name="", fs_ugi="",
             download_cmd="cat"):
        """Sets the dataset up.

        use_var: the input variables in the order in which the pipe command prints their slots. batch_size:
        examples. thread_num: reader threads, and trainer threads with them. pipe_command: run by bash with the
        file as standard input, printing the MultiSlot text format.
        Throws: Error(config) naming the argument; the files are looked at when a pass starts.
        """
        refuse(f"{type(self).__name__}.init", input_type=(input_type, 0), fs_name=(fs_name, ""), fs_ugi=(fs_ugi, ""),
               download_cmd=(download_cmd, "cat"))
        self.set_batch_size(batch_size)
        self.set_thread(thread_num)
        self.set_use_var(use_var)
        self.set_pipe_command(pipe_command)

    def set_batch_size(self, batch_size):
        """Examples per batch."""
        self._batch_size = self._count("batch_size", batch_size)

    def set_thread(self, thread_num):
        """Reader threads."""
        self._threads = self._count("thread_num", thread_num)

    def set_pipe_command(self, pipe_command):
        """The command that turns a file into MultiSlot text."""
        self._pipe_command = str(pipe_command)

    def set_use_var(self, var_list):
        """The input variables, in slot order: float32 or int64, lod_level 0 (fixed width) or 1 (any number)."""
        self._slots = [_slot(variable) for variable in var_list]

    def set_filelist(self, filelist):
        """The files of a pass. A str or a list of them."""
        self._files = [filelist] if isinstance(filelist, str) else [os.fspath(name) for name in filelist]

    def set_hdfs_config(self, fs_name, fs_ugi):
        """Refused unless both are empty. Throws: Error(config)."""
        refuse(f"{type(self).__name__}.set_hdfs_config", fs_name=(fs_name, ""), fs_ugi=(fs_ugi, ""))

    _set_batch_size = set_batch_size
    _set_thread = set_thread
    _set_pipe_command = set_pipe_command
    _set_use_var = set_use_var

    def _source(self, threads, batch_size, **prefixes):
        """The engine's reader of the files. prefixes: ids and contents, whether lines begin with them."""
        from fleetrun import _native

        return _native.QueueDataset(slots=self._checked_slots(), pipe_command=self._pipe_command,
                                    batch_size=batch_size, threads=threads, files=self._files, **prefixes)

    def _checked_slots(self):
        """The slots. Throws: Error(config) where there are none."""
        if not self._slots:
            raise Error("config", "the dataset has no variables", "give it use_var=[...] in dataset.init")
        return self._slots

    def _count(self, name, value):
        if int(value) != value or value < 1:
            raise Error("config", f"{type(self).__name__}: {name}={value!r}", "it is a number above 0")
        return int(value)


def _slot(variable):
    """(name, type, dense, width) of an input variable."""
    dtype = variable.dtype.name
    if dtype not in (dtypes.float32.name, dtypes.int64.name):
        raise Error("config", f"use_var: {variable.name} has the type {dtype}, a slot is float32 or int64")
    width = math.prod(size for size in variable.shape if size > 0)
    return (variable.name, dtype, variable.lod_level == 0, width)
