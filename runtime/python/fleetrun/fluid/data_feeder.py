"""paddle.fluid.data_feeder: batches of a reader as what Executor.run is fed, and checks of arguments."""

from __future__ import annotations

import itertools

from fleetrun import _dtypes, _lazy, framework
from fleetrun._error import Error
from fleetrun._places import cpu_num
from fleetrun._types import Any, Iterable, Iterator, Program, Sequence, Variable
from fleetrun.lod_tensor import LoDTensor

__all__ = [
    "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype", "DataFeeder",
]  # fmt: skip

convert_dtype = _dtypes.name_of


class DataFeeder:
    """feed(examples) gives {name: LoDTensor} of the variables feed_list, of which each example has a part.
    place: accepted."""

    def __init__(
        self, feed_list: Sequence[Variable | str], place: Any = None, program: Program | None = None
    ) -> None:
        program = program or framework.default_main_program()
        self.variables = [program.var(one) if isinstance(one, str) else one for one in feed_list]
        self.feed_names = [variable.name for variable in self.variables]
        self.place = place

    def feed(self, iterable: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """{name: LoDTensor} of a batch. A variable with lod_level=1 takes any number of values per example,
        with lod_level=2 any number of sequences.
        Throws: Error(data) for an example with another number of parts, or of another shape."""
        examples = list(iterable)
        for example in examples:
            if len(example) != len(self.variables):
                raise Error(
                    "data",
                    f"an example has {len(example)} parts, feed_list has {len(self.variables)}: "
                    f"{', '.join(self.feed_names)}",
                    "let each example have a part for each variable, in the order of feed_list",
                )
        return {
            variable.name: _tensor(variable, [example[place] for example in examples])
            for place, variable in enumerate(self.variables)
        }

    def feed_parallel(
        self, iterable: Iterable[Any], num_places: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """feed() of each batch of `iterable`, one for each of num_places (CPU_NUM where it is not given).
        Throws: ValueError for another number of batches."""
        batches, places = list(iterable), num_places or cpu_num()
        if len(batches) != places:
            raise ValueError(f"DataFeeder.feed_parallel: {len(batches)} batches for {places} places")
        yield from map(self.feed, batches)

    def decorate_reader(
        self, reader: Any, multi_devices: bool = False, num_places: int | None = None, drop_last: bool = True
    ) -> Any:
        """A reader of what feed() gives for the batches of `reader`; with multi_devices of lists of as many
        of these as there are places (CPU_NUM where it is not given), a batch for each replica. drop_last:
        the last batches are left out where there is not one for each; without it they raise ValueError."""

        def batches() -> Iterator[Any]:
            for batch in reader():
                yield self.feed(batch)

        def steps() -> Iterator[Any]:
            places, fed = num_places or cpu_num(), batches()
            while step := list(itertools.islice(fed, places)):
                if len(step) == places:
                    yield step
                elif not drop_last:
                    raise ValueError(f"DataFeeder.decorate_reader: {len(step)} batches left, {places} places")

        return steps if multi_devices else batches


def _tensor(variable: Variable, values: list[Any]) -> LoDTensor:
    """The values of one variable: its type, and its shape where one size at most is not known."""
    import numpy

    lengths = []
    for _ in range(variable.lod_level):
        lengths.append([len(one) for one in values])
        values = [value for one in values for value in one]
    array = numpy.array(values, dtype=variable.dtype.name)
    shape = variable.shape
    if array.ndim != len(shape) and sum(size < 0 for size in shape) <= 1:
        try:
            array = array.reshape(shape)
        except ValueError:
            raise Error(
                "data",
                f"a batch for {variable.name} has the shape {list(array.shape)}, the variable {list(shape)}",
                "let the examples have the variable's shape without its first size",
            ) from None
    made = LoDTensor(array)
    made.set_recursive_sequence_lengths(lengths)
    return made


def check_type(
    input: Any, input_name: str, expected_type: Any, op_name: str, extra_message: str = ""
) -> None:
    """Throws: TypeError when `input` is not of the type."""
    if not isinstance(input, expected_type):
        raise TypeError(
            f"The type of '{input_name}' in {op_name} must be {expected_type}, but received {type(input)}. "
            f"{extra_message}"
        )


def check_dtype(
    input_dtype: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = ""
) -> None:
    """Throws: TypeError when the type is not one of expected_dtype."""
    known = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    if convert_dtype(input_dtype) not in known:
        raise TypeError(
            f"The data type of '{input_name}' in {op_name} must be {known}, but received {input_dtype}. "
            f"{extra_message}"
        )


def check_variable_and_dtype(
    input: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = ""
) -> None:
    """check_type() of a variable, and check_dtype() of its type."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


__getattr__, __dir__ = _lazy.attach(__name__)
