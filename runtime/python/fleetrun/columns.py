"""Columnar files (.frc, fleetrun-columns(5)) as numpy arrays and pandas frames, and to Parquet.

fleetrun.columns.read("part-0.frc")                  # {"label": array [rows, 1], "C1": Ragged, …}
fleetrun.columns.read_pandas("part-*.frc")           # a DataFrame
fleetrun.columns.to_parquet("part-0.frc", "part-0.parquet")
"""

from __future__ import annotations

import glob
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from fleetrun import _native
from fleetrun._error import Error

__all__ = ["Ragged", "Slot", "batches", "read", "read_pandas", "slots", "to_parquet"]

_END = struct.Struct("<QQ8s")  # bytes of the footer, digest, mark
_FOOTER = struct.Struct("<IIQ")  # slots, rows of a block, rows
_SLOT = struct.Struct("<BBHIQ")  # type, dense, 0, bytes of the name, width
_ROWS = 65536


class Slot(NamedTuple):
    """A column of a file. width: values of each row where dense, else 0."""

    name: str
    type: str
    dense: bool
    width: int


class Ragged(NamedTuple):
    """Rows of different lengths: row i is values[offsets[i]:offsets[i + 1]]."""

    values: numpy.ndarray
    offsets: numpy.ndarray

    def rows(self) -> list[numpy.ndarray]:
        """The rows, as views."""
        return numpy.split(self.values, self.offsets[1:-1]) if len(self.offsets) > 1 else []


def slots(path: str | os.PathLike[str]) -> list[Slot]:
    """The slots of a file, in its order. Throws: Error(data) for what is no columnar file."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END.size))
        end = file.read()
        if len(end) == _END.size and (found := _END.unpack(end))[2] == b"FRCOLEND" and found[0] <= size:
            file.seek(size - _END.size - found[0])
            return _slots_of(file.read(found[0]), path)
    raise Error("data", f"{os.fspath(path)}: is not a columnar file", "fleetrun data convert writes them")


def batches(
    files: str | os.PathLike[str] | Sequence[Any], names: Sequence[str] | None = None, rows: int = _ROWS
) -> Iterator[dict[str, Any]]:
    """Up to `rows` rows at a time, in the files' order: arrays of shape [rows, width] for dense slots, Ragged
    for others. files: a name, a pattern or a list of them. names: slots wanted, all of the first file when
    not given. Checksums are verified. Throws: Error(data) naming file, block and slot; Error(config)."""
    paths = _paths(files)
    wanted = slots(paths[0])
    if names is not None:
        known = {slot.name: slot for slot in wanted}
        missing = [name for name in names if name not in known]
        if missing:
            raise Error("config", f"{paths[0]} has no slot {missing[0]!r}", f"it has {', '.join(known)}")
        wanted = [known[name] for name in names]
    options = _native.DatasetOptions()
    options.slots = [(*slot, True) for slot in wanted]
    options.files, options.batch_size, options.threads = paths, rows, 1
    source = _native.ColumnarDataset(options)
    _native.start_reading(source, True)
    try:
        while (batch := _native.read_batch(source, 0)) is not None:
            yield {slot.name: _column(slot, *found) for slot, found in zip(wanted, batch)}
    finally:
        _native.stop_reading(source)


def read(files: str | os.PathLike[str] | Sequence[Any], names: Sequence[str] | None = None) -> dict[str, Any]:
    """All rows of the files: as batches(). Throws: as batches()."""
    parts = list(batches(files, names))
    if not parts:
        wanted = {slot.name: slot for slot in slots(_paths(files)[0])}
        return {name: _no_rows(wanted[name]) for name in names or wanted}
    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def read_pandas(files: str | os.PathLike[str] | Sequence[Any], names: Sequence[str] | None = None) -> Any:
    """A pandas.DataFrame: a dense slot of width 1 is a column of numbers, others are columns of arrays.
    Throws: as batches(); ImportError without pandas."""
    import pandas

    return pandas.DataFrame({name: _series(column) for name, column in read(files, names).items()})


def to_parquet(
    files: str | os.PathLike[str] | Sequence[Any],
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
) -> int:
    """Writes the rows to one Parquet file, which gets its name when it is whole, and returns their number.
    A dense slot of width 1 becomes a column of numbers, another dense one of lists of fixed size, others of
    lists. Throws: as batches(); Error(config) without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        what = "Parquet needs pyarrow, which is not installed"
        raise Error("config", what, "pip install pyarrow") from error
    rows, partial, writer = 0, f"{os.fspath(path)}.partial", None
    try:
        for batch in batches(files, names):
            table = pyarrow.table({name: _arrow(column, pyarrow) for name, column in batch.items()})
            writer = writer or pyarrow.parquet.ParquetWriter(partial, table.schema)
            writer.write_table(table)
            rows += table.num_rows
        if writer is None:
            empty = {name: _arrow(column, pyarrow) for name, column in read(files, names).items()}
            writer = pyarrow.parquet.ParquetWriter(partial, pyarrow.table(empty).schema)
        writer.close()
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    return rows


def _paths(files):
    if isinstance(files, (str, os.PathLike)):
        name = os.fspath(files)
        files = [name] if os.path.exists(name) else sorted(glob.glob(name))
        if not files:
            raise Error("data", f"{name}: no such file", "name a file, a pattern or a list of them")
    paths = [os.fspath(file) for file in files]
    if not paths:
        raise Error("config", "no file was named", "name a file, a pattern or a list of them")
    return paths


def _slots_of(footer, path):
    try:
        count, _, _ = _FOOTER.unpack_from(footer)
        at, found = _FOOTER.size, []
        for _ in range(count):
            kind, dense, _, length, width = _SLOT.unpack_from(footer, at)
            name = footer[at + _SLOT.size : at + _SLOT.size + length].decode()
            found.append(Slot(name, ("int64", "float32")[kind], bool(dense), width if dense else 0))
            at += _SLOT.size + length
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise Error("data", f"{os.fspath(path)}: its footer is damaged", "write the file again") from error
    return found


def _column(slot, values, offsets):
    array = numpy.array(values)
    return array.reshape([-1, slot.width]) if slot.dense else Ragged(array.ravel(), numpy.array(offsets))


def _no_rows(slot):
    values = numpy.zeros(0, slot.type)
    return values.reshape([0, slot.width]) if slot.dense else Ragged(values, numpy.zeros(1, "uint64"))


def _joined(columns):
    if not isinstance(columns[0], Ragged):
        return numpy.concatenate(columns)
    ends = numpy.cumsum([len(column.values) for column in columns])
    offsets = [columns[0].offsets]
    offsets += [column.offsets[1:] + end for column, end in zip(columns[1:], ends.astype(offsets[0].dtype))]
    return Ragged(numpy.concatenate([column.values for column in columns]), numpy.concatenate(offsets))


def _series(column):
    if isinstance(column, Ragged):
        return column.rows()
    return column[:, 0] if column.shape[1] == 1 else list(column)


def _arrow(column, pyarrow):
    if isinstance(column, Ragged):
        return pyarrow.ListArray.from_arrays(column.offsets.astype("int32"), column.values)
    if column.shape[1] == 1:
        return pyarrow.array(column[:, 0])
    return pyarrow.FixedSizeListArray.from_arrays(column.ravel(), column.shape[1])


if __name__ == "__main__":
    # What `fleetrun data convert --out=FILE.parquet` runs.
    try:
        to_parquet(sys.argv[1], sys.argv[2])
    except Error as failure:
        sys.exit(str(failure))
