"""PyTorch on parameter servers: an embedding whose rows lie there. Importing this module imports torch.

from fleetrun import ps
from fleetrun.torch import Embedding

client = ps.Client([ps.SparseTable("emb", 16, rule=ps.Rule("adagrad", learning_rate=0.05))])
model = torch.nn.Sequential(Embedding(client, "emb"), ...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import torch
except ImportError as error:
    raise ImportError(
        "fleetrun.torch needs PyTorch, which is not installed: python -m pip install torch"
    ) from error

from fleetrun._error import Error

if TYPE_CHECKING:
    import torch

    from fleetrun.ps import Client

__all__ = ["Embedding"]


class _Rows(torch.autograd.Function):
    """Rows pulled forward, gradients pushed backward. `anchor` is what makes autograd come back here."""

    @staticmethod
    def forward(context, anchor, layer, ids):
        context.layer, context.ids = layer, ids
        return layer.look_up(ids, create=True)

    @staticmethod
    def backward(context, gradients):
        context.layer.push(context.ids, gradients)
        return None, None, None


class Embedding(torch.nn.Module):
    """Rows of a sparse table as torch.nn.Embedding gives rows of a matrix: forward pulls them, backward
    pushes their gradients, to which the table's rule is applied by the servers, not by the optimizer. The
    layer has no parameters: any int64 is an id, and rows are saved by the servers (ps.Client.save), not in
    state_dict().

    client: a fleetrun.ps.Client. table: the name of a sparse table without accessor "ctr". padding_idx: this
    id gives zeros and gets no gradient. In evaluation (eval(), or without gradients) unknown ids give initial
    values and get no row.
    Shape: ids any shape of integers; returns float32 [*ids.shape, width], on the device of ids. Mode sync:
    each backward of each use of the layer is one step, so all trainers use it equally often.
    Throws: Error(config) for ids that are not integers, and as ps.Client.pull and push.
    """

    def __init__(self, client: Client, table: str, padding_idx: int | None = None) -> None:
        super().__init__()
        _, entry, pulled = client._table(table, True)
        if pulled != entry.width:
            raise Error(
                "config",
                f"table '{table}': a pull gives show and click before the values",
                "use an accessor of kind 'sparse' or 'plain' for an Embedding",
            )
        self.client, self.table, self.padding_idx = client, table, padding_idx
        self.embedding_dim = entry.width
        self._anchor = torch.zeros((), requires_grad=True)

    def extra_repr(self) -> str:
        """Shown in the model's text."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.table!r}, {self.embedding_dim}{padding}"

    def look_up(self, ids: torch.Tensor, create: bool) -> torch.Tensor:
        """The rows of `ids`, without gradients."""
        rows = torch.from_numpy(self.client.pull(self.table, ids.detach().cpu().numpy(), create=create)).to(
            ids.device
        )
        if self.padding_idx is not None:
            rows.masked_fill_((ids == self.padding_idx).unsqueeze(-1), 0.0)
        return rows

    def push(self, ids: torch.Tensor, gradients: torch.Tensor) -> None:
        """Pushes the gradients of `ids`, but for those of padding."""
        ids = ids.reshape(-1)
        gradients = gradients.detach().reshape(-1, self.embedding_dim).to(torch.float32)
        if self.padding_idx is not None:
            kept = ids != self.padding_idx
            ids, gradients = ids[kept], gradients[kept]
        self.client.push(self.table, ids.cpu().numpy(), gradients.cpu().numpy())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        if ids.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            raise Error("config", f"the ids of an Embedding are {ids.dtype}, not integers")
        if self.training and torch.is_grad_enabled():
            return _Rows.apply(self._anchor, self, ids)
        return self.look_up(ids, create=False)
