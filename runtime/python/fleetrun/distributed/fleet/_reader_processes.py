"""A data generator's work shared by several processes: run_from_stdin(processes=N).

    feeder ── block k ──▶ worker k % N ── answer k ──▶ this process ──▶ standard output

The feeder cuts standard input into blocks of lines, and the answers are written in the order of the blocks.
Feeder and workers are forked from this process, so they have the generator, and what was read ahead of
standard input, as they are. What connects them are pipes, so nobody runs ahead by more than a block or two.
They end when their pipe does, and by SIGKILL when this process dies or is done.
"""

import ctypes
import io
import marshal
import os
import signal
import sys
import traceback
from typing import Any

from fleetrun._error import Error
from fleetrun.distributed.fleet._generator_errors import noted, other_name

_BLOCK_CHARACTERS = 1 << 18
_LENGTH_BYTES = 8
_PR_SET_PDEATHSIG = 1


def run(generator, processes):
    """Throws: Error(spawn) for a process that was killed. What generate_sample() ends with is shown as it is
    where it happened, and ends this process with the same status."""
    if not isinstance(processes, int) or processes < 1:
        raise ValueError(f"processes={processes!r} is not a number of processes, 1 or more")
    sys.stdout.flush()
    sys.stderr.flush()
    children = []
    try:
        workers = []
        for number in range(processes):
            workers.append(_Worker(number))
            children.append(_fork(_work, generator, workers))
            os.close(workers[-1].blocks_out)
            os.close(workers[-1].answers_in)
        children.append(_fork(_feed, workers, max(1, generator.batch_size_)))
        for worker in workers:
            os.close(worker.blocks_in)
        _write_answers(generator, workers, children)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


class _Worker:
    """Both pipes of a worker: its end of each is closed here as soon as it is forked."""

    def __init__(self, number):
        self.number = number
        self.blocks_out, self.blocks_in = os.pipe()
        self.answers_out, self.answers_in = os.pipe()


def _fork(function, *arguments):
    """The id of a process that calls `function` and ends: by SIGKILL when its parent dies, also if it just
    has."""
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to act on; it ends its children
        if os.getppid() == parent:
            function(*arguments)
    except BrokenPipeError:
        pass  # whoever reads this has ended, and the parent sees it
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


# ---- This process ----


def _write_answers(generator, workers, children):
    answers = [io.FileIO(worker.answers_out) for worker in workers]
    turn = 0
    kind = "text"
    while kind != "last":
        worker = workers[turn % len(workers)]
        message = _receive(answers[worker.number])
        if message is None:
            raise _death(children.pop(worker.number))
        kind, proto, text, rest = marshal.loads(message)
        if proto:
            _merge(generator, proto)
        _write(text)
        if kind == "failed":
            sys.stdout.flush()
            sys.stderr.write(rest)
            raise SystemExit(1)
        if kind == "exit":
            raise SystemExit(rest)
        turn += 1


def _death(pid):
    """Waits for a process that sent no answer."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    how = (
        f"was ended by signal {-code} ({signal.strsignal(-code)})"
        if code < 0
        else f"ended with status {code}"
    )
    return Error(
        "spawn",
        f"process {pid}, which made samples for this one, {how}",
        "memory may be short, or something that generate_sample() uses does not survive a fork(): try "
        "processes=1",
    )


def _merge(generator, proto):
    """Makes a worker's slots this generator's; they must be those that the blocks before had."""
    known = generator._proto_info
    if known is None:
        generator._proto_info = proto
        return
    if len(known) != len(proto):
        raise noted(
            ValueError("the complete field set of two given line are inconsistent."),
            f"a sample has {len(proto)} slots, those before it had {len(known)}",
        )
    for index, ((expected, _), (name, kind)) in enumerate(zip(known, proto)):
        if name != expected:
            raise ValueError(other_name(expected, name))
        if kind == "float":
            known[index] = (expected, kind)


def _write(text):
    out = getattr(sys.stdout, "buffer", None)
    if out is None:  # something that stands in for standard output
        sys.stdout.write(text.decode())
    else:
        out.write(text)


# ---- The feeder ----


def _feed(workers, lines_together):
    """Sends (whether it is the last, lines, failure) to each worker in turn; blocks but the last have a
    multiple of `lines_together` lines, so that a batch ends with its block where each line gives one
    sample."""
    for worker in workers:
        os.close(worker.answers_out)
    turn = 0
    left: list[Any] = []
    while True:
        failure = None
        try:
            more = sys.stdin.readlines(_BLOCK_CHARACTERS)
        except BaseException:  # not text: the traceback goes the way of the block that was to come
            more, failure = [], traceback.format_exc()
        lines = left + more
        whole = len(lines) - len(lines) % lines_together if more else len(lines)
        left = lines[whole:]
        _send(workers[turn % len(workers)].blocks_in, (not more, lines[:whole], failure))
        if not more:
            return
        turn += 1


# ---- A worker ----


def _work(generator, workers):
    """Answers every block with (kind, slots if they changed, text, failure or status)."""
    for worker in workers:  # those before it too: a pipe ends when nobody holds its other end
        os.close(worker.blocks_in)
        os.close(worker.answers_out)
    own = workers[-1]
    blocks = io.FileIO(own.blocks_out)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    output = _Output()
    told = None
    while (message := _receive(blocks)) is not None:
        last, lines, failure = marshal.loads(message)
        kind, rest = "last" if last else "text", None
        try:
            _write_block(generator, last, lines)
        except SystemExit as leaving:
            kind, rest = "exit", leaving.code if isinstance(leaving.code, (int, str)) else None
        except BaseException:
            kind, rest = "failed", traceback.format_exc()
        if failure and kind == "last":
            kind, rest = "failed", failure
        proto = [(str(name), str(type_name)) for name, type_name in generator._proto_info or []]
        _send(own.answers_in, (kind, proto if proto != told else None, output.take(), rest))
        told = proto


def _write_block(generator, last, lines):
    rest = generator._write_full_batches(lines)
    if not rest:
        return
    if generator._changes_batches() and not last:
        raise noted(
            ValueError("generate_batch() would get samples in other groups than with one process"),
            f"with several processes each line must give one sample; {len(lines)} lines gave some more or "
            "less",
        )
    generator._write_batch(rest)


class _Output:
    """Standard output of a worker: kept, to go with its answer."""

    def __init__(self):
        self._kept = io.BytesIO()
        sys.stdout = io.TextIOWrapper(self._kept, sys.stdout.encoding, sys.stdout.errors)

    def take(self):
        sys.stdout.flush()
        text = self._kept.getvalue()
        self._kept.seek(0)
        self._kept.truncate()
        return text


# ---- Messages: a length, and what marshal makes of a value ----


def _send(descriptor, value):
    message = marshal.dumps(value)
    view = memoryview(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
    while view:
        view = view[os.write(descriptor, view) :]


def _receive(source):
    """The next message; None at the end of the pipe."""
    head = _read(source, _LENGTH_BYTES)
    return None if head is None else _read(source, int.from_bytes(head, "little"))


def _read(source, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = source.readinto(view)
        if not got:
            return None
        view = view[got:]
    return data
