"""A Parquet file as MultiSlot text: what datasets run for files whose names end in .parquet.

usage: python _parquet.py NAME:TYPE…  < FILE      text of these slots
       python _parquet.py --slots     < FILE      a slot for each column, as JSON

A process of its own, so that what pyarrow needs in memory and threads is not the trainer's. It imports
nothing of fleetrun. Columns become slots by their names: numbers one value, lists as many as they have.
"""

import json
import sys

_ROWS = 16384


def text_of(batch, slots, pyarrow):
    """The lines of a batch of rows, as a buffer."""
    compute = pyarrow.compute
    words = [_words(batch.column(name), name, type_, pyarrow) for name, type_ in slots]
    lines = compute.binary_join_element_wise(compute.binary_join_element_wise(*words, " "), "", "\n")
    lines = lines.cast(pyarrow.large_string())
    first, last = (
        lines.buffers()[1][8 * at : 8 * at + 8].to_pybytes()
        for at in (lines.offset, lines.offset + len(lines))
    )
    return memoryview(lines.buffers()[2])[int.from_bytes(first, "little") : int.from_bytes(last, "little")]


def _words(column, name, type_, pyarrow):
    """Of each row the count of its values, and these."""
    kinds, compute = pyarrow.types, pyarrow.compute
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        sys.exit(f"column {name!r} has {column.null_count} nulls: fill them before")
    if not (
        kinds.is_list(column.type)
        or kinds.is_large_list(column.type)
        or kinds.is_fixed_size_list(column.type)
    ):
        return compute.binary_join_element_wise("1", _strings(column, name, type_, pyarrow), " ")
    counts = compute.list_value_length(column).cast(pyarrow.int64())
    values = compute.list_flatten(column)
    if values.null_count:
        sys.exit(f"column {name!r} has {values.null_count} nulls in its lists: fill them before")
    ends = [0, *compute.cumulative_sum(counts).to_pylist()]
    lists = pyarrow.LargeListArray.from_arrays(
        pyarrow.array(ends, pyarrow.int64()), _strings(values, name, type_, pyarrow)
    )
    return compute.binary_join_element_wise(
        counts.cast(pyarrow.string()), compute.binary_join(lists, " "), " "
    )


def _strings(values, name, type_, pyarrow):
    kinds = pyarrow.types
    is_whole = kinds.is_integer(values.type) or kinds.is_boolean(values.type)
    if not is_whole and not (kinds.is_floating(values.type) and type_ == "float32"):
        sys.exit(f"column {name!r} has values of type {values.type}; its slot wants {type_}")
    if kinds.is_boolean(values.type):
        values = values.cast(pyarrow.int8())
    # Text of ids has all numbers of 64 bits, signed or unsigned; a double is rounded, as text is.
    if type_ == "float32":
        values = values.cast(pyarrow.float32(), safe=False)
    return values.cast(pyarrow.string())


def slots_of(schema, pyarrow):
    """[{"name", "type", "width"}] of the columns; a list that is not of a fixed size has no width."""
    kinds, found = pyarrow.types, []
    for field in schema:
        type_, slot = field.type, {"name": field.name, "width": 1}
        if kinds.is_fixed_size_list(type_):
            slot["width"] = type_.list_size
        elif kinds.is_list(type_) or kinds.is_large_list(type_):
            del slot["width"]
        type_ = getattr(type_, "value_type", type_)
        if not (kinds.is_integer(type_) or kinds.is_boolean(type_) or kinds.is_floating(type_)):
            sys.exit(f"column {field.name!r} has values of type {type_}: name the slots that are wanted")
        found.append({**slot, "type": "float32" if kinds.is_floating(type_) else "int64"})
    return found


def _opened(pyarrow):
    """Standard input: a file, or, where that is downloaded, all its bytes."""
    if sys.stdin.buffer.seekable():
        return sys.stdin.buffer
    return pyarrow.BufferReader(sys.stdin.buffer.read())


def main(arguments):
    """Prints the text of the slots `NAME:TYPE`…"""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        sys.exit("Parquet needs pyarrow, which is not installed: pip install pyarrow")
    slots = [tuple(word.rsplit(":", 1)) for word in arguments if word != "--slots"]
    try:
        file = pyarrow.parquet.ParquetFile(_opened(pyarrow))
        if arguments == ["--slots"]:
            return print(json.dumps(slots_of(file.schema_arrow, pyarrow)))
        missing = [name for name, _ in slots if name not in file.schema_arrow.names]
        if missing:
            sys.exit(f"there is no column {missing[0]!r}; there are {', '.join(file.schema_arrow.names)}")
        for batch in file.iter_batches(_ROWS, columns=[name for name, _ in slots]):
            sys.stdout.buffer.write(text_of(batch, slots, pyarrow))
    except pyarrow.ArrowException as error:
        sys.exit(f"not to be read as Parquet: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
