"""Writes MultiSlot text from Python: what a pipe command such as `python reader.py` runs.

A subclass says what one input line becomes (generate_sample) and, if it wants, what a batch of samples
becomes (generate_batch); run_from_stdin() and run_from_memory() do the rest. Standard library only: such a
program is started once per data file.

The bytes and the exceptions are Paddle's (tests/oracles/generator_parity.py); what an exception's text leaves
open is said in a note below it. A reader that goes away (`| head`, a trainer that stops) ends the program
with status 141, as SIGPIPE would, and without a traceback.
"""

import os
import sys

from fleetrun.distributed.fleet._generator_errors import noted, other_name

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

try:
    import fleetrun._multi_slot_text as _multi_slot_text
except ImportError:
    # `python reader.py` may be run by another Python than the one that the package was built for.
    _multi_slot_text = None  # type: ignore[assignment]

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

_CLOSED_PIPE_STATUS = 141


class DataGenerator:
    """Reads lines, makes samples, writes text; the text's format is the subclass's."""

    def __init__(self) -> None:
        self._proto_info: Any = None
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Samples that generate_batch() gets at a time; the last time may be fewer."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: "str | None") -> "Callable[[], Iterable[Any]]":
        """Override: returns a function without arguments that iterates over the samples of `line`.

        A sample is [(name, [value, ...]), ...], as a list, tuple or zip; None is left out. `line` is a line
        of standard input with its end, or None under run_from_memory().
        """
        raise noted(
            NotImplementedError(
                "Please rewrite this function to return a list or tuple: [(name, [feasign, ...]), ...] "
                "or ((name, [feasign, ...]), ...)"
            ),
            f"{type(self).__name__} does not define generate_sample(line)",
        )

    def generate_batch(self, samples: "list[Any]") -> "Callable[[], Iterable[Any]]":
        """May be overridden: returns a function that iterates over the samples to write for these."""

        def iterate():
            yield from samples

        return iterate

    def run_from_stdin(self, processes: "int | None" = None) -> None:
        """Writes the samples of every line of standard input to standard output.

        processes: how many share the work; without it the variable FLEETRUN_READER_PROCESSES, or 1. The text
        is the same, in the same order, whatever their number; generate_sample() must not remember other
        lines, and if generate_batch() is overridden, each line must give one sample.
        """
        if processes is None:
            processes = _processes_wanted()
        if processes == 1:
            with _quiet_at_closed_pipe():
                self._run(sys.stdin)
        else:
            from fleetrun.distributed.fleet import _reader_processes

            with _quiet_at_closed_pipe():
                _reader_processes.run(self, processes)

    def run_from_memory(self) -> None:
        """Writes the samples of generate_sample(None) to standard output."""
        with _quiet_at_closed_pipe():
            self._run([None])

    def _run(self, lines):
        rest = self._write_full_batches(lines)
        if rest:
            self._write_batch(rest)

    def _write_full_batches(self, lines):
        """Returns the samples that are left over."""
        batch = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                batch.append(sample)
                if len(batch) == self.batch_size_:
                    self._write_batch(batch)
                    batch = []
        return batch

    def _write_batch(self, batch):
        if self._changes_batches():
            for sample in self.generate_batch(batch)():
                sys.stdout.write(self._gen_str(sample))
        else:
            for text in self._texts(batch):
                sys.stdout.write(text)

    def _changes_batches(self):
        return type(self).generate_batch is not DataGenerator.generate_batch

    def _texts(self, samples):
        """The text of `samples`, in pieces of one or many."""
        return map(self._gen_str, samples)

    def _gen_str(self, line):
        raise noted(
            NotImplementedError("pls use MultiSlotDataGenerator or PairWiseDataGenerator"),
            "or MultiSlotStringDataGenerator, or define _gen_str(line)",
        )


class MultiSlotStringDataGenerator(DataGenerator):
    """For values that are text already: nothing is checked, so it is the faster one."""

    def _gen_str(self, line):
        slots = _slots_of(line, "Examples: [('words', ['1926', '08', '17']), ('label', ['1'])]")
        return " ".join([" ".join([str(len(elements)), *elements]) for _, elements in slots]) + "\n"

    def _texts(self, samples):
        if _multi_slot_text is None or type(self)._gen_str is not MultiSlotStringDataGenerator._gen_str:
            yield from super()._texts(samples)
            return
        done = 0
        while done < len(samples):
            text, done = _multi_slot_text.join_strings(samples, done)
            yield text
            if done < len(samples):
                yield self._gen_str(samples[done])
                done += 1


class MultiSlotDataGenerator(DataGenerator):
    """For ints and floats. The first sample fixes the slots' names and order; a slot is an id slot ("uint64")
    until its first float makes it a float slot, whose values are not checked from then on."""

    def _gen_str(self, line):
        slots = _slots_of(line, "Example: [('words', [1926, 08, 17]), ('label', [1])]")
        first = self._proto_info is None
        if first:
            self._proto_info = []
        elif len(slots) != len(self._proto_info):
            raise noted(
                ValueError("the complete field set of two given line are inconsistent."),
                f"this sample has {len(slots)} slots, those before it had {len(self._proto_info)}",
            )
        words = []
        for index, (name, elements) in enumerate(slots):
            _check_slot(name, elements)
            if first:
                self._proto_info.append((name, "uint64"))
            elif name != self._proto_info[index][0]:
                raise ValueError(other_name(self._proto_info[index][0], name))
            words.append(str(len(elements)))
            for element in elements:
                if first or self._proto_info[index][1] != "float":
                    self._note_type(index, name, element)
                words.append(str(element))
        return " ".join(words) + "\n"

    def _note_type(self, index, name, element):
        if isinstance(element, float):
            self._proto_info[index] = (name, "float")
        elif not isinstance(element, int):
            raise noted(
                ValueError(f"the type of element{type(element)} must be in int or float"),
                f"a value of slot '{name}': {element!r}",
            )

    def _texts(self, samples):
        if _multi_slot_text is None or type(self)._gen_str is not MultiSlotDataGenerator._gen_str:
            yield from super()._texts(samples)
            return
        done = 0
        while done < len(samples):
            if type(self._proto_info) is list:
                text, done = _multi_slot_text.join_numbers(samples, done, self._proto_info)
                yield text
            if done < len(samples):
                yield self._gen_str(samples[done])
                done += 1


def _check_slot(name, elements):
    if not isinstance(name, str):
        raise ValueError(f"name{type(name)} must be in str type")
    if not isinstance(elements, list):
        raise noted(
            ValueError(f"elements{type(elements)} must be in list type"), f"the values of slot '{name}'"
        )
    if not elements:
        raise noted(
            ValueError("the elements of each field can not be empty, you need padding it in process()."),
            f"slot '{name}' has no values: generate_sample() must give it at least one",
        )


def _slots_of(line, example):
    """`line` as a list or tuple of slots."""
    if isinstance(line, zip):
        return list(line)
    if not isinstance(line, (list, tuple)):
        raise noted(
            ValueError("the output of process() must be in list or tuple type" + example),
            f"generate_sample() gave a sample of {type(line)}",
        )
    return line


def _processes_wanted():
    text = os.environ.get("FLEETRUN_READER_PROCESSES", "1")
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"FLEETRUN_READER_PROCESSES={text} is not a number of processes, 1 or more")
    return int(text)


class _quiet_at_closed_pipe:
    """Flushes standard output at the end; when nobody reads it any more, ends the program as SIGPIPE
    would."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            try:
                sys.stdout.flush()
                return
            except BrokenPipeError:
                pass
        elif not issubclass(kind, BrokenPipeError):
            return
        _discard_output()
        raise SystemExit(_CLOSED_PIPE_STATUS) from None


def _discard_output():
    """Nobody reads standard output any more: keeps the interpreter from complaining when it flushes it at
    exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
