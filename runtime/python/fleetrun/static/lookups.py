"""What a program's sparse_embedding calls say about their tables, and from that the native TableChoices of a
training."""

from __future__ import annotations

from fleetrun import _native
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Callable, Mapping, Program
from fleetrun.distributed.entries import EntryAttr
from fleetrun.static.training import Training, is_trained, shared_with, tables_of
from fleetrun.static.undone import rebuild

__all__ = ["choices_of", "follow", "Lookup", "LOOKUPS", "note", "TABLE_CLASSES", "tables_of_run"]

TABLE_CLASSES = ("MemorySparseTable", "SSDSparseTable", "MemorySparseGeoTable")


# {parameter: Lookup} of each program.
LOOKUPS: SideTable[dict[str, Lookup]] = SideTable("lookups", dict, copied=dict)
# Of a program that nobody trains, when it was last asked for rows of the shared training: what it was then,
# so that a step need not look through its operators.
_ASKED: SideTable[tuple[Any, ...]] = SideTable("asked_lookups", tuple)


class Lookup:
    """The entry, table class and slot of one parameter's lookups."""

    def __init__(self, entry: EntryAttr | None, table_class: str, slot: int | None) -> None:
        self.entry = entry
        self.table_class = table_class
        self.slot = slot

    def __eq__(self, other):
        return isinstance(other, Lookup) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"entry={self.entry!r}, table_class={self.table_class!r}, slot={self.slot!r}"


def note(
    program: Program, parameter: str, entry: EntryAttr | None, table_class: str, slot: int | None
) -> None:
    """Remembers what a sparse_embedding says. Throws: Error(config) when an earlier one of the parameter said
    otherwise."""
    from fleetrun.distributed.entries import EntryAttr

    call = "paddle.static.nn.sparse_embedding"
    if entry is not None and not isinstance(entry, EntryAttr):
        raise Error(
            "config",
            f"{call}(entry={entry!r}) is not an entry",
            "use paddle.distributed.CountFilterEntry, ProbabilityEntry or ShowClickEntry",
        )
    if table_class not in TABLE_CLASSES:
        raise Error(
            "config",
            f'{call}(table_class="{table_class}") is not known',
            f"use one of {', '.join(TABLE_CLASSES)}",
        )
    if slot is not None and not (isinstance(slot, int) and 0 <= slot < 65536):
        raise Error("config", f"{call}(slot={slot!r})", "a slot is a number from 0 to 65535")
    lookup = Lookup(entry, table_class, slot)
    known = LOOKUPS.of(program).setdefault(parameter, lookup)
    if known != lookup:
        raise Error(
            "config",
            f"parameter {parameter} is looked up with {known} and with {lookup}",
            "give one parameter's lookups the same entry, table_class and slot",
        )


def choices_of(
    program: Program,
    tables: Mapping[str, Callable[[_native.TableChoice, int, Any], object]],
    mode: str,
    optimizer: Any,
) -> dict[str, _native.TableChoice]:
    """{parameter: TableChoice} of the program's lookups and of `tables`, the strategy's ({parameter:
    function(choice, width, optimizer)}).

    Throws: Error(config) for a MemorySparseGeoTable outside of geo mode, and what the functions throw.
    """
    from fleetrun import _native

    choices, lookups = {}, LOOKUPS.of(program)
    for parameter in {**lookups, **tables}:
        choice = choices[parameter] = _native.TableChoice()
        if parameter in tables:
            width = program.native.variable(parameter).shape[-1] if program.has_var(parameter) else 0
            tables[parameter](choice, width, optimizer)
        lookup = lookups.get(parameter)
        if lookup is None:
            continue
        if lookup.table_class == "MemorySparseGeoTable" and mode != "geo":
            raise Error(
                "config",
                f'parameter {parameter}: table_class="MemorySparseGeoTable" in {mode} mode',
                "use MemorySparseTable, or geo mode: strategy.a_sync = True and a_sync_configs k_steps > 0",
            )
        if lookup.table_class == "SSDSparseTable":
            choice.on_disk = True
        if lookup.slot is not None:
            choice.slot = lookup.slot
        if lookup.entry is not None and _has_what_it_names(program, lookup.entry):
            lookup.entry.choose(choice)
    return choices


def tables_of_run(program: Program) -> Training | None:
    """tables_of(), after the lookups of a program that is not trained were moved to where the rows are now:
    of a copy of the one that is, and of another program with the same parameters."""
    if is_trained(program):
        return tables_of(program)
    shared = shared_with(program)
    if shared is not None and _ASKED.of(program) != (_age(program), shared):
        if _reads_rows(program, shared):
            follow(program, shared.main)
        _ASKED.put(program, (_age(program), shared))
    training = tables_of(program)
    if training is not None and training.distributed:
        program.follow_origin()
    return training


def _age(program):
    """Something else when the program has become another."""
    return program.native, program.native.operator_count()


def _reads_rows(program, training):
    """Whether it looks up, as in a variable of its own, what the training has in a table of rows."""
    rows = {entry.parameter for entry in training.plan.entries() if entry.table.sparse}
    return any(op.type == "embedding" and op.inputs[0] in rows for op in program.ops)


def follow(program: Program, trained: Program, chosen: set[str] | None = None) -> None:
    """Lets `program`, which is run forward only, look its rows up where `trained` does: in the tables of its
    sparse parameters, or of the `chosen` ones, which a program that is trained does not move."""
    tables = {
        op.attributes["parameter"]: op.attributes
        for op in trained.ops
        if op.type == "sparse_embedding" and (chosen is None or op.attributes["parameter"] in chosen)
    }

    def moved(op: Any) -> tuple[Any, ...]:
        kind, inputs, attributes = op.type, op.inputs, op.attributes
        parameter = inputs[0] if kind == "embedding" else attributes.get("parameter")
        if kind not in ("embedding", "sparse_embedding") or parameter not in tables:
            return kind, inputs, attributes
        padding = attributes.get("padding_idx", -1)
        return "sparse_embedding", inputs[-1:], {**tables[parameter], "padding_idx": padding, "is_test": True}

    rebuild(program, (), moved)


def _has_what_it_names(program, entry):
    """Whether the program has the variables of a ShowClickEntry; without them it has no effect, as in Paddle,
    which is said."""
    names = [name for name in (getattr(entry, "show_name", None), getattr(entry, "click_name", None)) if name]
    missing = [name for name in names if not program.has_var(name)]
    if missing:
        warn_once(
            f"ShowClickEntry {missing[0]}",
            f"ShowClickEntry has no effect: the program has no variable '{missing[0]}'",
        )
    return not missing
