"""Paddle 3 (dygraph) on parameter servers: embeddings whose rows lie there. Importing this module imports
the installed Paddle, and changes what step() of its optimizers does with such a layer.

from fleetrun.paddle import Embedding                     # was: paddle.nn.Embedding
self.embedding = Embedding(1000001, 9, weight_attr=paddle.ParamAttr(initializer=Uniform()))

run as `fleetrun --server_num=2 --trainer_num=2 train.py`. The script makes its model and its optimizer;
at the first forward a trainer connects, and a process that fleetrun started as a server serves until all
trainers are done, and ends. Without fleetrun the rows are in this process. fleetrun-ps(7) explains modes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy

try:
    import paddle
    from paddle.base.framework import EagerParamBase
    from paddle.nn import functional
    from paddle.optimizer import Optimizer
except ImportError as error:
    raise ImportError(
        "fleetrun.paddle needs PaddlePaddle 3 (python -m pip install paddlepaddle); with --compat=paddle, "
        "`import paddle` is fleetrun itself, which has layers on servers without it"
    ) from error

from fleetrun._error import Error
from fleetrun._paddle_job import the_job
from fleetrun._rows import Part, Request, distinct, note_change, push

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetrun.ps import Client, Initializer, Rule

__all__ = ["Embedding", "client", "prefetch", "use_mode"]

# A layer whose matrix has more values than this is not in state_dict(): 1 GiB.
_STATE_LIMIT = 2**28


def use_mode(mode: str) -> None:
    """The consistency of this job's servers, "async" (when nothing is said), "sync", "half_async" or "geo";
    before the first forward."""
    the_job.use_mode(mode)


def client() -> Client:
    """The connection to the servers: to save and load all rows, or to look at them. The first forward makes
    it, or this."""
    return the_job.client


class _Weight(EagerParamBase):
    """What an optimizer, a gradient scaler and clipping see of a layer: its gradient, float32 [rows,
    width], is that of the distinct rows that backward passes have touched since the last step. Its own
    values are not a number, and so is what is computed with them."""

    layer: Any  # a weak reference to the Embedding

    def _grad_ivar(self) -> Any:
        self.layer()._merge()
        return super()._grad_ivar()

    @property
    def grad(self) -> Any:
        """Of the rows that wait, None without any."""
        return self._grad_ivar()

    @grad.setter
    def grad(self, value: Any) -> None:
        EagerParamBase.grad.__set__(self, value)

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Drops them."""
        self.layer()._drop()

    clear_grad = clear_gradient

    def set_value(self, value: Any) -> None:
        """Sets all rows. Shape: value [num_embeddings, width]. Throws: ValueError for another."""
        self.layer()._set_rows(value)


class _Pulled(paddle.autograd.PyLayer):
    """Rows as autograd knows them: backward leaves their gradients with the layer."""

    @staticmethod
    def forward(context: Any, weight: Any, rows: Any, layer: Embedding, keys: Any) -> Any:
        """The rows."""
        context.layer, context.keys = layer, keys
        return rows.clone()

    @staticmethod
    def backward(context: Any, gradients: Any) -> Any:
        """No gradient of its inputs."""
        context.layer._keep(context.keys, gradients)
        return None, None


class Embedding(paddle.nn.Layer):
    """paddle.nn.Embedding, with its arguments, whose rows are on servers. Rows' gradients wait for step() of
    the optimizer that has model.parameters(): unscaled by a GradScaler, clipped with the others, added up
    over backward passes, dropped by clear_grad(). The servers' rule is that of the optimizer, with its
    learning rate of each step; it moves only rows that a step has touched, as lazy_mode=True does.

    A row is made when it is first used: memory is that of the ids that there are. num_embeddings None:
    any int64 is an id. state_dict() has the rows as paddle.nn.Embedding has them, set_state_dict() takes
    them; not of more than 2**28 values (client().save(directory) then). initializer, rule: a
    fleetrun.ps.Initializer and Rule instead of those that weight_attr and the optimizer say. Throws:
    Error(config) for an argument or an optimizer that servers do not know, and from forward as
    ps.Client.pull; ValueError for an id that is not below num_embeddings.
    """

    def __init__(
        self,
        num_embeddings: int | None,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        scale_grad_by_freq: bool = False,
        sparse: bool = True,
        weight_attr: Any = None,
        name: str | None = None,
        dtype: Any = None,
        initializer: Initializer | None = None,
        rule: Rule | None = None,
    ) -> None:
        super().__init__()
        if max_norm is not None:
            raise Error("config", f"max_norm={max_norm} of an Embedding on servers, which do not renormalize")
        if padding_idx is not None and num_embeddings is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"padding_idx must be within [-{num_embeddings}, {num_embeddings})")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.scale_grad_by_freq = scale_grad_by_freq
        made = self.create_parameter(
            [1, embedding_dim],
            attr=_without_initializer(weight_attr),
            dtype="float32",
            default_initializer=paddle.nn.initializer.Constant(0.0),
        )
        self.table = made.name
        weight = _Weight.from_tensor(
            paddle.to_tensor(numpy.full((1, embedding_dim), numpy.nan, dtype="float32")),
            trainable=made.trainable,
            name=made.name,
        )
        weight.optimize_attr, weight.regularizer = made.optimize_attr, made.regularizer
        weight.need_clip = made.need_clip
        # For paddle.DataParallel: nothing to average or to broadcast, servers add up what trainers push.
        weight.no_sync = weight.is_distributed = True
        weight.layer = weakref.ref(self)
        self.weight = weight
        self._waiting: list[tuple[numpy.ndarray, numpy.ndarray]] = []
        self._keys = numpy.empty(0, dtype=numpy.int64)  # whose gradients the weight's has, in order
        self._ahead: tuple[numpy.ndarray, Any] | None = None
        self._matrix: Any = None  # to assign when the servers are there
        self._is_used = False
        the_job.add(self, weight_attr, initializer, rule)

    def extra_repr(self) -> str:
        """Shown in the model's text."""
        return f"{self.num_embeddings}, {self.embedding_dim}, table={self.table!r}"

    # ---- a step ----

    def forward(self, x: Any) -> Any:
        """Shape: x any shape of integers; returns float32 [*x.shape, embedding_dim]."""
        ids = self._ids(x)
        if not self._is_used:
            self._expect_no_values()
            self._is_used = True
        learns = paddle.is_grad_enabled() and not self.weight.stop_gradient
        ahead, self._ahead = self._ahead, None
        if ahead is None or not ahead[1][1].is_fresh(learns) or not numpy.array_equal(ahead[0], ids):
            ahead = ids, self._ask(Request(self._connected(), learns), ids)
        places, part = ahead[1]
        pulled, padding = part.rows(), None
        if self.padding_idx is not None:
            found = numpy.flatnonzero(part.keys == self.padding_idx)
            if len(found):
                padding = int(found[0])
                pulled = pulled.copy()
                pulled[padding] = 0.0
        rows = paddle.to_tensor(pulled, place=x.place)
        if learns:
            rows = _Pulled.apply(self.weight, rows, self, part.keys)
        return functional.embedding(
            paddle.to_tensor(places.reshape(ids.shape), place=x.place),
            rows,
            padding_idx=padding,
            scale_grad_by_freq=self.scale_grad_by_freq,
        )

    def _ids(self, x: Any) -> numpy.ndarray:
        ids = x.numpy()
        if ids.dtype.kind not in "iu":
            raise Error("config", f"the ids of an Embedding are {ids.dtype}, not integers")
        if self.num_embeddings is not None and ids.size:
            for id in (ids.min(), ids.max()):
                if not 0 <= id < self.num_embeddings:
                    raise ValueError(
                        f"id {id} of the table '{self.table}' is not within [0, {self.num_embeddings})"
                    )
        return ids.astype(numpy.int64)

    def _ask(self, request: Request, ids: numpy.ndarray) -> tuple[numpy.ndarray, Part]:
        keys, places, _ = distinct(ids.reshape(-1), [ids.size])
        return places, request.add(self.table, keys)

    def _keep(self, keys: numpy.ndarray, gradients: Any) -> None:
        self._waiting.append((keys, gradients.astype("float32").numpy()))

    def _merge(self) -> None:
        """Makes what backward passes have left the weight's gradient."""
        if not self._waiting:
            return
        parts, self._waiting = self._waiting, []
        before = EagerParamBase._grad_ivar(self.weight)
        if before is not None:
            parts.insert(0, (self._keys, before.numpy()))
        self._keys, gradients = _summed(parts, self.padding_idx)
        EagerParamBase.grad.__set__(self.weight, paddle.to_tensor(gradients))

    def _drop(self) -> None:
        self._waiting = []
        EagerParamBase.clear_gradient(self.weight, False)

    def _take(self, gradient: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
        """(keys, gradients) to push; none waits any more. gradient: the weight's, clipped."""
        self._expect_no_values()
        taken = self._keys, gradient.astype("float32").numpy()
        self._drop()
        return taken

    def _expect_no_values(self) -> None:
        """Of the weight: an initializer that is called with it, or fill_(), reaches no row."""
        if not numpy.isnan(self.weight.astype("float32").numpy()).all():
            raise Error(
                "config",
                f"the weight of table '{self.table}' was given values, and its rows are on servers",
                "give the Embedding a weight_attr with an initializer, or all rows to weight.set_value() or "
                "set_state_dict(), or some to assign()",
            )

    # ---- the rows ----

    def _connected(self) -> Client:
        connected = the_job.client
        if self._matrix is not None:
            matrix, self._matrix = self._matrix, None
            if connected.trainer == 0:
                self.assign(numpy.arange(len(matrix)), matrix)
            connected.barrier()
        return connected

    def assign(self, keys: Any, rows: Any) -> None:
        """Sets the rows of `keys`, each key once, on the servers. One trainer does, and all meet at
        client().barrier() before they train.

        Shape: keys any shape of integers, rows [*keys.shape, embedding_dim]. Throws: as ps.Client.assign.
        """
        keys, rows = numpy.asarray(keys), numpy.asarray(rows)
        self._connected().assign(self.table, keys, rows)
        self._ahead = None
        note_change(the_job.client)

    def _rows(self) -> numpy.ndarray:
        """All rows, first values of those that there are not: [num_embeddings, embedding_dim]."""
        assert self.num_embeddings is not None
        if self._matrix is not None:
            return numpy.asarray(self._matrix)
        keys = numpy.arange(self.num_embeddings)
        rows = the_job.rows(self.table, keys)
        if self.padding_idx is not None:
            rows[self.padding_idx] = 0.0
        return rows

    def _state_dict_impl(
        self,
        destination: Any = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        *arguments: Any,
        **named: Any,
    ) -> Any:
        """The rows, as paddle.nn.Embedding has them."""
        destination = {} if destination is None else destination
        if self.num_embeddings is None or self.num_embeddings * self.embedding_dim > _STATE_LIMIT:
            the_job.warn_of_state(self.table)
            return destination
        rows = EagerParamBase.from_tensor(paddle.to_tensor(self._rows()), name=self.table)
        rows.set_value = self._set_rows
        destination[structured_name_prefix + "weight"] = rows
        return destination

    def _set_rows(self, values: Any) -> None:
        matrix = values.numpy() if isinstance(values, paddle.Tensor) else numpy.asarray(values)
        rows = len(matrix) if self.num_embeddings is None else self.num_embeddings
        if matrix.shape != (rows, self.embedding_dim):
            raise ValueError(
                f"values of shape {list(matrix.shape)} for the table '{self.table}' of shape "
                f"{[self.num_embeddings, self.embedding_dim]}"
            )
        if the_job.is_connected:
            if the_job.client.trainer == 0:
                self.assign(numpy.arange(len(matrix)), matrix)
            the_job.client.barrier()
        else:
            self._matrix = matrix


def prefetch(batch: Mapping[Embedding, Any]) -> None:
    """Asks for the rows of the next forward of several layers in one message to each server. batch: the ids
    that each layer will be called with; for others it pulls by itself. Mode async: at once, in a thread; mode
    sync: in the first of these forwards. Throws: as forward."""
    requests: dict[bool, Request] = {}
    for layer, x in batch.items():
        learns = paddle.is_grad_enabled() and not layer.weight.stop_gradient
        ids = layer._ids(x)
        request = requests.setdefault(learns, Request(layer._connected(), learns))
        layer._ahead = ids, layer._ask(request, ids)
    for request in requests.values():
        request.start()


def _without_initializer(attr: Any) -> Any:
    attr = paddle.ParamAttr._to_attr(attr)
    if isinstance(attr, paddle.ParamAttr):
        attr = paddle.ParamAttr(**{**vars(attr), "initializer": None})
    return attr


def _summed(parts: list[Any], padding: int | None) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Distinct keys, and the sums of their gradients."""
    every, gradients = (numpy.concatenate(part) for part in zip(*parts))
    if padding is not None:
        kept = every != padding
        every, gradients = every[kept], gradients[kept]
    if len(parts) == 1:
        return every, gradients
    order = numpy.argsort(every, kind="stable")
    keys, begins = numpy.unique(every[order], return_index=True)
    if not len(keys):
        return keys, gradients
    return keys, numpy.add.reduceat(gradients[order], begins, axis=0)


_make, _apply = Optimizer.__init__, Optimizer._apply_optimize


def _made(optimizer: Any, *arguments: Any, **named: Any) -> None:
    """Optimizer.__init__, after which its rows know it."""
    _make(optimizer, *arguments, **named)
    groups = optimizer._parameter_list or []
    every = [each for group in groups for each in (group["params"] if isinstance(group, dict) else [group])]
    the_job.note_optimizer(optimizer, [each.layer() for each in every if isinstance(each, _Weight)])


def _apply_but_rows(
    optimizer: Any, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: int = 0
) -> Any:
    """Optimizer._apply_optimize, which clips, decays and updates: rows are clipped with others, and
    pushed."""
    is_group = isinstance(params_grads, dict)
    pairs = params_grads["params"] if is_group else params_grads
    if not any(isinstance(parameter, _Weight) for parameter, _ in pairs):
        return _apply(optimizer, loss, startup_program, params_grads, param_group_idx)
    clip = params_grads["grad_clip"] if is_group else optimizer._grad_clip
    if clip is not None:
        pairs = clip(pairs)
    rows = [pair for pair in pairs if isinstance(pair[0], _Weight)]
    others = [pair for pair in pairs if not isinstance(pair[0], _Weight)]
    connected = the_job.client
    tables = {}
    for layer, gradient in ((weight.layer(), gradient) for weight, gradient in rows):
        the_job.require_rule(optimizer, layer)
        tables[layer.table] = [layer._take(gradient)]
    connected.set_rate(optimizer.get_lr())
    push(connected, tables)
    if not others:
        return None
    left = {**params_grads, "params": others, "grad_clip": None} if is_group else others
    kept, optimizer._grad_clip = optimizer._grad_clip, None
    try:
        return _apply(optimizer, loss, startup_program, left, param_group_idx)
    finally:
        optimizer._grad_clip = kept


Optimizer.__init__, Optimizer._apply_optimize = _made, _apply_but_rows
