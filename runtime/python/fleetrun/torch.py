"""PyTorch on parameter servers: embeddings whose rows lie there. Importing this module imports torch.

from fleetrun import ps
from fleetrun.torch import Embedding

client = ps.Client([ps.SparseTable("emb", 16, rule=ps.Rule("adagrad", learning_rate=0.05))])
model = torch.nn.Sequential(Embedding(client, "emb"), ...)
optimizer = torch.optim.Adam(model.parameters())  # its step() pushes the rows' gradients, too
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy

try:
    import torch
except ImportError as error:
    raise ImportError(
        "fleetrun.torch needs PyTorch, which is not installed: python -m pip install torch"
    ) from error

from torch.nn import functional

try:
    from torch.optim.optimizer import register_optimizer_step_pre_hook as _before_steps
except ImportError:  # before PyTorch 2.1
    _before_steps = None

from fleetrun._error import Error
from fleetrun._row_weight import Weight, plainly, refuse_matrix, refuse_pickle
from fleetrun._rows import Request, distinct, note_change, push
from fleetrun.distributed.parallel.recoverable import Recoverable, recoverable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import torch

    from fleetrun._rows import Part
    from fleetrun.ps import Client

__all__ = ["Embedding", "EmbeddingBag", "prefetch", "recoverable", "Recoverable", "RowOptimizer"]

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
# Steps of optimizers that leave a layer with gradients out, until its user is told.
_LEFT_OUT = 10
# Layers whose rows have gradients that are not pushed yet.
_waiting: weakref.WeakSet[_Layer] = weakref.WeakSet()


class _Pulled(torch.autograd.Function):
    """Rows as autograd knows them: backward leaves their gradients with the layer."""

    @staticmethod
    def forward(context: Any, weight: Weight, layer: _Layer, ids: Any, rows: Any) -> Any:
        context.layer, context.ids = layer, ids
        return rows.view_as(rows)

    @staticmethod
    def backward(context: Any, gradients: Any) -> Any:
        context.layer._keep(context.ids, gradients.detach())
        return None, None, None, None


class _Kept:
    """What a layer keeps from call to call; a module's own attributes are slow to set."""

    __slots__ = ("ahead", "ids", "is_pushed", "left_out", "said_decay")

    def __init__(self) -> None:
        self.ids = torch.empty(0, dtype=torch.int64)  # whose gradients weight.grad has, in order
        self.ahead: _Ahead | None = None
        self.is_pushed = _before_steps is not None  # some optimizer's step is known to push
        self.left_out, self.said_decay = 0, False


class _Layer(torch.nn.Module):
    """A table as a layer. Rows' gradients wait in `weight.grad` for an optimizer's step."""

    def __init__(self, client: Client, table: str, padding_idx: int | None, scale_grad_by_freq: bool) -> None:
        super().__init__()
        _, entry, pulled = client._table(table, True)
        if pulled != entry.width:
            raise Error(
                "config",
                f"table '{table}': a pull gives show and click before the values",
                f"use an accessor of kind 'sparse' or 'plain' for an {type(self).__name__}",
            )
        self.client, self.table, self.padding_idx = client, table, padding_idx
        self.embedding_dim, self.scale_grad_by_freq = entry.width, scale_grad_by_freq
        self.weight = Weight(torch.empty(0, entry.width))
        self.weight.layer = weakref.ref(self)
        self._kept = _Kept()

    def extra_repr(self) -> str:
        """Shown in the model's text."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.table!r}, {self.embedding_dim}{padding}"

    def __deepcopy__(self, memo: dict[int, Any]) -> _Layer:
        """Another layer of the same table, without gradients: the rows are the servers'."""
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        _Layer.__init__(other, self.client, self.table, self.padding_idx, self.scale_grad_by_freq)
        for name, value in self.__dict__.items():
            if not name.startswith("_"):
                other.__dict__[name] = value
        weight = other._parameters["weight"]
        with plainly():
            weight.set_values(torch.Tensor.detach(self._parameters["weight"])[:0].clone())
        memo[id(self.weight)] = weight
        return other.requires_grad_(self.weight.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Throws: Error(config)."""
        refuse_pickle(self)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, **more: Any
    ) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """None when asked for this module's alone, as DistributedDataParallel does to find what it averages;
        an optimizer asks for those of all modules, and gets `weight`."""
        return super().named_parameters(prefix, recurse, **more) if recurse else iter(())

    def register_parameter(self, name: str, param: torch.nn.Parameter | None) -> None:
        """Refuses another weight. Throws: Error(config)."""
        if name == "weight" and not isinstance(param, Weight):
            refuse_matrix(self, param)
        super().register_parameter(name, param)

    def _save_to_state_dict(self, *arguments: Any, **named: Any) -> None:
        """Nothing: ps.Client.save writes the rows."""

    def _load_from_state_dict(
        self,
        state: Any,
        prefix: str,
        metadata: Any,
        strict: bool,
        missing: Any,
        unexpected: list[str],
        *_: Any,
    ) -> None:
        """Nothing: ps.Client.load reads the rows. Those of a matrix have no place here."""
        unexpected.extend(key for key in state if key.startswith(prefix))

    def assign(self, keys: Any, rows: Any) -> None:
        """Sets the rows of `keys`, each key once, on the servers; gradients that wait stay. One trainer does,
        and all meet at client.barrier() before they train.

        Shape: keys any shape of integers, rows [*keys.shape, width]; tensors or arrays. Throws: as
        ps.Client.assign.
        """
        values = _array(rows, torch.float32)
        self.client.assign(self.table, _array(keys), values)
        self._kept.ahead = None
        note_change(self.client)

    @classmethod
    def from_pretrained(
        cls, client: Client, table: str, embeddings: Any, freeze: bool = True, **options: Any
    ) -> Any:
        """A layer whose ids 0, 1 … have the rows of a matrix, as torch.nn's; others have those of the table.
        Trainer 0 assigns them, and all meet. options: the constructor's.

        Shape: embeddings [ids, width], a tensor or an array. Throws: Error(config) for another shape.
        """
        if (options.get("padding_idx") or 0) < 0:  # counted from the matrix's end, as torch.nn's
            options["padding_idx"] += len(embeddings)
        layer = cls(client, table, **options)
        if embeddings.ndim != 2 or embeddings.shape[1] != layer.embedding_dim:
            raise Error(
                "config",
                f"table '{table}' has rows of {layer.embedding_dim} values, and the matrix has the shape "
                f"{list(embeddings.shape)}",
                f"give a matrix [ids, {layer.embedding_dim}]",
            )
        if client.trainer == 0:
            layer.assign(numpy.arange(len(embeddings)), embeddings)
        client.barrier()
        return layer.requires_grad_(not freeze)

    def _local(self, ids: Any) -> tuple[Any, Any, int | None]:
        """(rows of the distinct ids, with gradients where they are wanted; where each id is among them, in
        the shape of ids; where the padding is)."""
        ahead, self._kept.ahead = self._kept.ahead, None
        weight, padding = self._parameters["weight"], None
        with plainly():
            learns = weight.requires_grad and torch.is_grad_enabled()
            if ahead is None or not ahead.fits(ids, learns):
                (ahead,) = _look_ahead(Request(self.client, learns), [self], [ids])
            rows = torch.from_numpy(ahead.part.rows()).to(ids.device, weight.dtype)
            if self.padding_idx is not None:
                found = (ahead.distinct == self.padding_idx).nonzero()
                if len(found):
                    padding = int(found)
                    rows[padding] = 0.0
            if learns:
                rows = _Pulled.apply(weight, self, ahead.distinct, rows)
        return rows, ahead.places.to(ids.device), padding

    def _learns(self) -> bool:
        with plainly():
            return torch.is_grad_enabled() and self._parameters["weight"].requires_grad

    def _keep(self, ids: Any, gradients: Any) -> None:
        """Adds gradients [rows, width] of distinct ids to those that wait."""
        kept, weight = self._kept, self._parameters["weight"]
        if not kept.is_pushed:
            raise Error(
                "config",
                f"PyTorch {torch.__version__} does not tell when an optimizer's step begins",
                f"give the parameters of the {type(self).__name__} to fleetrun.torch.RowOptimizer, the "
                "others to theirs; or install PyTorch 2.1 or later",
            )
        if self.padding_idx is not None:
            others = ids != self.padding_idx
            ids, gradients = ids[others], gradients[others.to(gradients.device)]
        with plainly():
            gradients = gradients.to(weight.device, weight.dtype)
            # zero_grad(set_to_none=False) leaves zeros: what waited is dropped then, too.
            if weight.grad is not None and weight.grad.any():
                ids, places = torch.unique(torch.cat((kept.ids, ids)), return_inverse=True)
                several = torch.cat((weight.grad, gradients))
                gradients = several.new_zeros(len(ids), self.embedding_dim).index_add_(
                    0, places.to(several.device), several
                )
            kept.ids, weight.grad = ids, None
            # The values are nobody's: one number in the shape that the gradient has to have.
            weight.set_values(weight.new_zeros(()).expand(len(ids), self.embedding_dim))
            weight.grad = gradients.contiguous()
        _waiting.add(self)

    def _take(self) -> tuple[Any, Any]:
        """(ids, gradients) that wait, which wait no longer."""
        kept, weight = self._kept, self._parameters["weight"]
        gradients = weight.grad
        weight.grad, kept.left_out = None, 0
        _waiting.discard(self)
        if gradients is None:
            return kept.ids[:0], torch.empty(0, self.embedding_dim)
        return kept.ids, gradients


def _array(values: Any, dtype: Any = None) -> Any:
    """A tensor as an array; bfloat16, which numpy has not, by way of float32."""
    return values.detach().to("cpu", dtype).numpy() if isinstance(values, torch.Tensor) else values


class _Ahead:
    """What one forward of a layer asks for. The distinct ids and their places are the processor's."""

    __slots__ = ("distinct", "ids", "part", "places")

    def __init__(self, ids: Any, distinct: Any, places: Any, part: Part) -> None:
        self.ids, self.distinct, self.places, self.part = ids, distinct, places, part

    def fits(self, ids: Any, learns: bool) -> bool:
        """Whether it is what a forward of these ids would ask for."""
        same = self.ids.shape == ids.shape and torch.equal(self.ids, ids.to("cpu", torch.int64))
        return same and self.part.is_fresh(learns)


def _look_ahead(request: Request, layers: list[_Layer], several: list[Any]) -> list[_Ahead]:
    """Adds a part for each layer. several: the ids of each."""
    for layer, ids in zip(layers, several):
        if ids.dtype not in _INTEGERS:
            raise Error("config", f"the ids of an {type(layer).__name__} are {ids.dtype}, not integers")
    sizes = [ids.numel() for ids in several]
    # A copy: what is called with is compared with it.
    every = torch.cat([ids.reshape(-1).to("cpu", torch.int64) for ids in several])
    found, places, counts = distinct(every.numpy(), sizes)
    parts = zip(
        layers, several, every.split(sizes), torch.from_numpy(places).split(sizes),
        torch.from_numpy(found).split(counts),
    )  # fmt: skip
    return [
        _Ahead(own.view(ids.shape), keys, where.view(ids.shape), request.add(layer.table, keys.numpy()))
        for layer, ids, own, where, keys in parts
    ]


def prefetch(batch: Mapping[Embedding | EmbeddingBag, torch.Tensor]) -> None:
    """Asks for the rows of the next forward of several layers in one message to each server. batch: the ids
    that each layer will be called with; for others it pulls by itself.

    Mode async and others: at once, in a thread, while the script goes on; rows are as they are then, without
    the pushes of this trainer that come before the forward. Mode sync: in the first of these forwards, so
    that the numbers are those without prefetch().
    Throws: Error(config) for ids that are not integers; the forward throws what the pull threw.
    """
    together: dict[Any, list[_Layer]] = {}
    for layer in batch:
        together.setdefault((layer.client, layer._learns()), []).append(layer)
    for key, layers in together.items():
        request = Request(*key)
        for layer, ahead in zip(layers, _look_ahead(request, layers, [batch[each] for each in layers])):
            layer._kept.ahead = ahead
        request.start()


class Embedding(_Layer):
    """Rows of a sparse table as torch.nn.Embedding gives rows of a matrix: forward pulls them, and step() of
    the optimizer that has model.parameters() pushes their gradients: unscaled by a GradScaler, clipped with
    the others, added up over backward passes, dropped by zero_grad(). The table's rule applies them, with its
    own learning rate; the optimizer's does not reach the rows. Any int64 is an id. Rows are saved by the
    servers (ps.Client.save), not in state_dict(), and a deepcopy shares them.

    client: a fleetrun.ps.Client. table: the name of a sparse table without accessor "ctr". padding_idx: this
    id gives zeros and gets no gradient; -1 is the id -1, as a table has no last row. scale_grad_by_freq:
    gradients are divided by how often the id is in the call. Where nothing learns (no_grad(),
    requires_grad_(False)) unknown ids give initial values and get no row. half() and double() change what
    forward gives and the gradients are; servers keep float32. Its weight has no values: what computes with it
    is refused, a pickled layer too. First values are those of the table's initializer. prefetch() pulls
    several layers at once.
    Shape: ids any shape of integers; returns [*ids.shape, width], on the device of ids. Mode sync: each
    step() is one step of the servers, between client.begin_pass() and leave_pass(), so all trainers take
    equally many.
    Throws: Error(config) for ids that are not integers, and as ps.Client.pull; step() as ps.Client.push.
    Needs PyTorch 2.1 or later, or RowOptimizer.
    """

    def __init__(
        self, client: Client, table: str, padding_idx: int | None = None, scale_grad_by_freq: bool = False
    ) -> None:
        super().__init__(client, table, padding_idx, scale_grad_by_freq)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        rows, places, padding = self._local(ids)
        return functional.embedding(places, rows, padding, scale_grad_by_freq=self.scale_grad_by_freq)


class EmbeddingBag(_Layer):
    """Sums, means or maxima of rows of a sparse table, as torch.nn.EmbeddingBag makes them of a matrix; all
    else as Embedding.

    mode: "sum", "mean" or "max". include_last_offset: the last offset is the number of ids.
    Shape: ids [bags, length], or [ids] with offsets [bags]; per_sample_weights (mode "sum") as ids; returns
    [bags, width].
    """

    def __init__(
        self,
        client: Client,
        table: str,
        mode: str = "mean",
        padding_idx: int | None = None,
        include_last_offset: bool = False,
        scale_grad_by_freq: bool = False,
    ) -> None:
        super().__init__(client, table, padding_idx, scale_grad_by_freq)
        if mode not in ("sum", "mean", "max"):
            raise Error("config", f"the mode of an EmbeddingBag is {mode!r}", "use 'sum', 'mean' or 'max'")
        self.mode, self.include_last_offset = mode, include_last_offset

    def extra_repr(self) -> str:
        """Shown in the model's text."""
        return f"{super().extra_repr()}, mode={self.mode!r}"

    def forward(
        self,
        ids: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """See the class."""
        rows, places, padding = self._local(ids)
        if per_sample_weights is None and self._has_bags_of_one(ids, offsets):
            # The same numbers, in half the time.
            return functional.embedding(
                places.reshape(-1), rows, padding, scale_grad_by_freq=self.scale_grad_by_freq
            )
        return functional.embedding_bag(
            places,
            rows,
            None if offsets is None else offsets.to(torch.int64),
            mode=self.mode,
            scale_grad_by_freq=self.scale_grad_by_freq,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=padding,
        )

    def _has_bags_of_one(self, ids: torch.Tensor, offsets: torch.Tensor | None) -> bool:
        if offsets is None:
            return ids.dim() == 2 and ids.shape[1] == 1
        return (
            ids.dim() == 1
            and offsets.shape == ids.shape
            and not self.include_last_offset
            and torch.equal(offsets, torch.arange(len(ids), device=offsets.device, dtype=offsets.dtype))
        )


class RowOptimizer(torch.optim.Optimizer):
    """An optimizer of rows alone: step() pushes their gradients, zero_grad() drops them. For those whose
    other parameters are in an optimizer that has no model.parameters(), or is not of torch.optim.

    params: of Embedding and EmbeddingBag layers. Throws: Error(config) for parameters of other layers.
    """

    def __init__(self, params: Iterable[torch.nn.Parameter]) -> None:
        params = list(params)
        if any(not isinstance(parameter, Weight) for parameter in params):
            raise Error(
                "config",
                "RowOptimizer has a parameter that is of no fleetrun.torch layer",
                "give it those of Embedding and EmbeddingBag; any optimizer of torch.optim takes both",
            )
        super().__init__(params, {})
        for parameter in params:
            parameter.layer()._kept.is_pushed = True

    def step(self, closure: None = None) -> None:
        """Pushes. There is nothing that a closure could be asked for."""
        if _before_steps is None:
            _push_rows(self, (), {"closure": closure})


def _push_rows(optimizer: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
    """Before a step of any optimizer: what waits in the layers that it has goes to the servers, in one
    message a client."""
    clients: dict[Any, dict[str, Any]] = {}
    signs = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if type(parameter) is Weight and (layer := parameter.layer()) is not None:
                _warn_of_decay(layer, group)
                signs[layer] = -1.0 if group.get("maximize") else 1.0
    _look_for_left_out(signs)
    if signs and any(callable(value) for value in (*arguments, *named.values()) if value is not optimizer):
        raise Error(
            "config",
            "a closure makes the gradients of rows within step(), where they cannot be pushed before it",
            "call backward() first, and step() without a closure",
        )
    # As a GradScaler leaves it to an optimizer that unscales by itself.
    scale, found = getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)
    for layer, sign in signs.items():
        with plainly():
            ids, gradients = layer._take()
        if found is not None and bool(found):
            ids, gradients = ids[:0], gradients[:0]
        if scale is not None:
            sign = sign / float(scale)
        steps = gradients if sign == 1.0 else gradients * sign
        tables = clients.setdefault(layer.client, {})
        tables.setdefault(layer.table, []).append((ids.cpu().numpy(), steps.to("cpu", torch.float32).numpy()))
    for client, tables in clients.items():
        push(client, tables)


def _warn_of_decay(layer: _Layer, group: dict[str, Any]) -> None:
    if group.get("weight_decay") and not layer._kept.said_decay:
        layer._kept.said_decay = True
        warnings.warn(
            f"weight_decay={group['weight_decay']} of the optimizer does not reach the rows of table "
            f"'{layer.table}': give its rule an l2_decay",
            stacklevel=2,
        )


def _look_for_left_out(here: dict[_Layer, float]) -> None:
    """Tells of a layer whose gradients wait while optimizers step without it."""
    for layer in list(_waiting):
        if layer in here or layer.weight.grad is None:
            continue
        layer._kept.left_out += 1
        if layer._kept.left_out == _LEFT_OUT:
            warnings.warn(
                f"{_LEFT_OUT} steps of optimizers without the rows of table '{layer.table}', "
                "whose gradients wait: give an optimizer model.parameters(), or use "
                "fleetrun.torch.RowOptimizer",
                stacklevel=2,
            )


if _before_steps is not None:
    _before_steps(_push_rows)
