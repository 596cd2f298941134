"""What fleetrun.paddle knows of its job: tables of the layers and rules of the optimizers, until the first
forward connects to the servers, or makes this process one."""

from __future__ import annotations

import math
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun import _native, ps
from fleetrun._ends import at_end
from fleetrun._error import Error

if TYPE_CHECKING:
    from collections.abc import Callable


def _normal(initializer: Any) -> tuple[float, float]:
    return initializer._mean, initializer._std_dev


# Names of Paddle's initializers, and how a row of a [rows, width] matrix gets its first values by them.
_INITIALIZERS: dict[str, Callable[[Any, int | None, int], ps.Initializer]] = {
    "Constant": lambda made, rows, width: ps.Constant(made._value),
    "Uniform": lambda made, rows, width: ps.Uniform(made._low, made._high, made._seed),
    "Normal": lambda made, rows, width: ps.Normal(*_normal(made), made._seed),
    "TruncatedNormal": lambda made, rows, width: ps.TruncatedNormal(*_normal(made), made._seed),
    "XavierUniform": lambda made, rows, width: _xavier(made, rows, width, ps.Uniform, 6.0),
    "XavierNormal": lambda made, rows, width: _xavier(made, rows, width, ps.Normal, 2.0),
}
# Paddle's optimizers: the rule, and which of its numbers they have by which name.
_RULES: dict[str, tuple[str, dict[str, str]]] = {
    "SGD": ("sgd", {}),
    "Momentum": ("momentum", {"momentum": "_momentum", "nesterov": "_use_nesterov"}),
    "Adagrad": ("adagrad", {"epsilon": "_epsilon", "initial_accumulator": "initial_accumulator_value"}),
    "Adam": ("adam", {"beta1": "_beta1", "beta2": "_beta2", "epsilon": "_epsilon"}),
    "AdamW": (
        "adam",
        {"beta1": "_beta1", "beta2": "_beta2", "epsilon": "_epsilon", "own_decay": "_weight_decay"},
    ),
    "Adamax": ("adamax", {"beta1": "_beta1", "beta2": "_beta2", "epsilon": "_epsilon"}),
    "Adadelta": ("adadelta", {"rho": "_rho", "epsilon": "_epsilon"}),
    "RMSProp": (
        "rmsprop",
        {"rho": "_rho", "epsilon": "_epsilon", "momentum": "_momentum", "centered": "_centered"},
    ),
}


def _xavier(made: Any, rows: int | None, width: int, kind: Any, scale: float) -> ps.Initializer:
    if rows is None and made._fan_in is None:
        raise Error(
            "config",
            f"{type(made).__name__} of an Embedding without num_embeddings, on which its values depend",
            "give num_embeddings, or initializer=fleetrun.ps.Uniform(low, high)",
        )
    total = (made._fan_in or rows or 0) + (made._fan_out or width)
    bound = made._gain * math.sqrt(scale / total)
    return kind(-bound if kind is ps.Uniform else 0.0, bound, made._seed)


def initializer_of(attr: Any, rows: int | None, width: int, table: str) -> ps.Initializer:
    """That of a ParamAttr, or XavierUniform. Throws: Error(config) for one that servers do not know."""
    import paddle

    made = getattr(paddle.ParamAttr._to_attr(attr), "initializer", None)
    if made is None:
        made = paddle.nn.initializer.XavierUniform()
    name = type(made).__name__.removesuffix("Initializer")
    if name not in _INITIALIZERS:
        raise Error(
            "config",
            f"table '{table}': servers do not know {type(made).__name__}",
            f"they know {', '.join(_INITIALIZERS)}; or give initializer=fleetrun.ps.Uniform(low, high), "
            "and the rows to set_state_dict() or assign()",
        )
    return _INITIALIZERS[name](made, rows, width)


def check_optimizer(optimizer: Any, table: str) -> None:
    """Throws: Error(config) for an optimizer that servers do not know."""
    name = type(optimizer).__name__
    if name in _RULES and not getattr(optimizer, "_amsgrad", False):
        return
    what = f"{name}(amsgrad=True)" if name in _RULES else name
    raise Error(
        "config",
        f"table '{table}' is in an optimizer that servers do not know: {what}",
        f"use one of {', '.join(_RULES)}, or give rule=fleetrun.ps.Rule(...) to the Embedding",
    )


def rule_of(optimizer: Any, weight: Any, table: str) -> ps.Rule:
    """The rule that moves rows as the optimizer moves parameters. Its rate is that of each push.
    Throws: Error(config) for an optimizer that servers do not know."""
    check_optimizer(optimizer, table)
    kind, numbers = _RULES[type(optimizer).__name__]
    attributes = {ours: getattr(optimizer, theirs) for ours, theirs in numbers.items()}
    factor = (weight.optimize_attr or {}).get("learning_rate", 1.0)
    decay = getattr(weight, "regularizer", None) or optimizer.regularization
    if decay is not None:
        which = "l1_decay" if "L1" in type(decay).__name__ else "l2_decay"
        attributes[which] = getattr(decay, "_coeff", None) or getattr(decay, "_regularization_coeff", 0.0)
    return ps.Rule(kind, learning_rate=factor, scheduled=True, **attributes)


class Job:
    """Layers in the order in which they were made, which is that of the tables on every process."""

    def __init__(self) -> None:
        self._mode = "async"
        self._client: ps.Client | None = None
        self._layers: list[tuple[str, int, Any, Any]] = []
        self._optimizers: dict[str, tuple[Any, Any]] = {}  # by table: with the weight
        self._rules: dict[str, ps.Rule] = {}  # that servers have
        self._told = False

    @property
    def is_connected(self) -> bool:
        """Whether there is a client."""
        return self._client is not None

    def use_mode(self, mode: str) -> None:
        """Throws: Error(config) when it is too late."""
        if self._client is not None and mode != self._client.mode:
            raise Error(
                "config", f"use_mode({mode!r}) after the first forward, which was in mode {self._mode}"
            )
        if mode not in ps.MODES:
            raise Error("config", f"there is no mode {mode!r}", f"there are {', '.join(ps.MODES)}")
        self._mode = mode

    def add(self, layer: Any, attr: Any, initializer: Any, rule: Any) -> None:
        """A new layer. Throws: Error(config) after the first forward."""
        if initializer is None:
            initializer = initializer_of(attr, layer.num_embeddings, layer.embedding_dim, layer.table)
        if self._client is not None:
            raise Error(
                "config",
                f"the Embedding of table '{layer.table}' was made after the first forward, when the servers "
                "knew all tables",
                "make all layers first",
            )
        self._layers.append((layer.table, layer.embedding_dim, initializer, rule))

    def note_optimizer(self, optimizer: Any, layers: list[Any]) -> None:
        """An optimizer that is being made has these. Throws: Error(config) for one that servers do not
        know."""
        for layer in layers:
            if self._given(layer.table) is None:
                check_optimizer(optimizer, layer.table)
            self._optimizers[layer.table] = optimizer, layer.weight

    def require_rule(self, optimizer: Any, layer: Any) -> None:
        """Throws: Error(config) when the servers move the rows by the rule of another optimizer."""
        if self._given(layer.table) is not None:
            return
        if rule_of(optimizer, layer.weight, layer.table) != self._rules[layer.table]:
            raise Error(
                "config",
                f"table '{layer.table}' was used before its {type(optimizer).__name__} was made",
                "make the optimizer before the first forward, or give rule=fleetrun.ps.Rule(...)",
            )

    def _given(self, table: str) -> Any:
        return next(rule for name, _, _, rule in self._layers if name == table)

    def _tables(self) -> list[ps.SparseTable]:
        for name, _, _, rule in self._layers:
            by = self._optimizers.get(name)
            self._rules[name] = rule or (ps.Rule("sgd") if by is None else rule_of(*by, name))
        return [
            ps.SparseTable(name, width, rule=self._rules[name], initializer=initializer)
            for name, width, initializer, _ in self._layers
        ]

    @property
    def client(self) -> ps.Client:
        """Connects when it is asked for first. A process that is a server does not come back from here."""
        if self._client is None:
            tables = self._tables()
            if not tables:
                raise Error("config", "there is no fleetrun.paddle.Embedding, so that servers have no table")
            if ps.is_server():
                ps.Server(tables, mode=self._mode).wait()
                sys.exit(0)
            self._client = ps.Client(tables, mode=self._mode)
            self._client.begin_pass()
            at_end(self._leave, lambda: [self._client])
        return self._client

    def rows(self, table: str, keys: numpy.ndarray) -> numpy.ndarray:
        """Of servers, or before there are any the first values; none is made. Shape: float32 [keys,
        width]."""
        if self._client is not None:
            return self._client.pull(table, keys, create=False)
        mine = next(each for each in self._tables() if each.name == table)
        alone = _native.make_in_process("async", ps._configs([mine]))
        return numpy.asarray(
            _native.ps_pull_many(alone, [(0, keys.astype(numpy.uint64), mine.width)], False)[0]
        )

    def _leave(self) -> None:
        if self._client is not None:
            self._client.leave_pass()
            self._client.goodbye()

    def warn_of_state(self, table: str) -> None:
        """Once."""
        if not self._told:
            warnings.warn(
                f"state_dict() has no rows of table '{table}', which are many: "
                "fleetrun.paddle.client().save(directory) writes them",
                stacklevel=3,
            )
        self._told = True


the_job = Job()
