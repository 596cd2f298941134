"""Writes MultiSlot text from Python: what a pipe command such as `python reader.py` runs.

A subclass says what one input line becomes (generate_sample) and, if it wants, what a batch of samples becomes
(generate_batch); run_from_stdin() and run_from_memory() do the rest. Standard library only: such a program is
started once per data file.

A reader that goes away (`| head`, a trainer that stops) ends the program with status 141, as SIGPIPE would, and
without a traceback.
"""

import sys

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

_CLOSED_PIPE_STATUS = 141
_WRITE_LINES = 256
_INT = {int}


class DataGenerator:
    """Reads lines, makes samples, writes text; the text's format is the subclass's."""

    def __init__(self):
        self._proto_info = None
        self.batch_size_ = 32

    def set_batch(self, batch_size):
        """Samples that generate_batch() gets at a time; the last time may be fewer."""
        self.batch_size_ = batch_size

    def generate_sample(self, line):
        """Override: returns a function without arguments that iterates over the samples of `line`.

        A sample is [(name, [value, ...]), ...], as a list, tuple or zip; None is left out. `line` is a line of
        standard input with its end, or None under run_from_memory().
        """
        raise NotImplementedError(f"{type(self).__name__} does not define generate_sample(line): it returns a function that "
                                  "yields [(name, [value, ...]), ...]")

    def generate_batch(self, samples):
        """May be overridden: returns a function that iterates over the samples to write for these."""

        def iterate():
            yield from samples

        return iterate

    def run_from_stdin(self):
        """Writes the samples of every line of standard input to standard output."""
        self._write(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def run_from_memory(self):
        """Writes the samples of generate_sample(None) to standard output."""
        self._write(self.generate_sample(None)())

    def _gen_str(self, line):
        raise NotImplementedError("use MultiSlotDataGenerator or MultiSlotStringDataGenerator, or define _gen_str(line)")

    def _batched(self, samples):
        """The samples as generate_batch() leaves them."""
        if type(self).generate_batch is DataGenerator.generate_batch:
            yield from samples
            return
        batch = []
        for sample in samples:
            batch.append(sample)
            if len(batch) == self.batch_size_:
                yield from self.generate_batch(batch)()
                batch = []
        if batch:
            yield from self.generate_batch(batch)()

    def _write(self, samples):
        write = sys.stdout.write
        to_text = self._gen_str
        lines = []
        try:
            for sample in self._batched(sample for sample in samples if sample is not None):
                lines.append(to_text(sample))
                if len(lines) == _WRITE_LINES:
                    write("".join(lines))
                    lines.clear()
            write("".join(lines))
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            raise SystemExit(_CLOSED_PIPE_STATUS) from None


class MultiSlotStringDataGenerator(DataGenerator):
    """For values that are text already: nothing is checked, so it is the faster one."""

    def _gen_str(self, line):
        slots = _slots_of(line, "[('words', ['1926', '08', '17']), ('label', ['1'])]")
        return " ".join([" ".join([str(len(elements)), *elements]) for _, elements in slots]) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """For ints and floats. The first sample fixes the slots' names and order; a slot is an id slot ("uint64")
    until its first float makes it a float slot."""

    def _gen_str(self, line):
        slots = _slots_of(line, "[('words', [1926, 8, 17]), ('label', [1])]")
        first = self._proto_info is None
        if first:
            self._proto_info = []
        elif len(slots) != len(self._proto_info):
            raise ValueError(f"a sample has {len(slots)} slots, the ones before it had {len(self._proto_info)}")
        proto = self._proto_info
        words = []
        for index, (name, elements) in enumerate(slots):
            if not isinstance(name, str):
                raise ValueError(f"a slot's name must be a str, not {type(name)}")
            if not isinstance(elements, list):
                raise ValueError(f"the values of slot '{name}' must be a list, not {type(elements)}")
            if not elements:
                raise ValueError(f"slot '{name}' has no values: pad it in generate_sample()")
            if first:
                proto.append((name, "uint64"))
            elif name != proto[index][0]:
                raise ValueError(f"slot {index} is named '{name}', in the samples before '{proto[index][0]}'")
            if (first or proto[index][1] != "float") and set(map(type, elements)) != _INT:
                self._note_types(index, name, elements, first)
            words.append(len(elements))
            words += elements
        return " ".join(map(str, words)) + "\n"

    def _note_types(self, index, name, elements, first):
        for element in elements:
            if isinstance(element, float):
                self._proto_info[index] = (name, "float")
                if not first:
                    return
            elif not isinstance(element, int):
                raise ValueError(f"a value of slot '{name}' must be an int or a float, not {type(element)}")


def _slots_of(line, example):
    """`line` as a list or tuple of slots."""
    if isinstance(line, zip):
        return list(line)
    if not isinstance(line, (list, tuple)):
        raise ValueError(f"a sample must be a list or a tuple such as {example}, not {type(line)}")
    return line


def _discard_output():
    """Nobody reads standard output any more: keeps the interpreter from complaining when it flushes it at exit."""
    import os

    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
