"""What every model of this folder starts from: the slots of movielens.py,
a linear part, embeddings, and layers."""
import fleetrun as paddle
import fleetrun.nn.functional as F
from movielens import FIELDS, LABELS

WIDTH = 16


class Inputs:
    """The slots as variables. Shape: fields[name][batch, width of the field] int64,
    labels[name][batch, 1] int64."""

    def __init__(self, ids, width=WIDTH):
        self.ids = ids
        self.width = width
        self.fields = {name: paddle.static.data(name, [None, size], "int64") for name, size in FIELDS.items()}
        self.labels = {name: paddle.static.data(name, [None, 1], "int64") for name in LABELS}
        self.slots = [*self.fields.values(), *self.labels.values()]
        self._table = None

    def linear(self):
        """Logistic regression's logit [batch, 1]: a weight for each id,
        another one where it is in the history."""
        zero = paddle.nn.initializer.Constant(0.0)
        weights = {kind: paddle.nn.Embedding(self.ids, 1, padding_idx=0, sparse=True,
                                             weight_attr=paddle.ParamAttr(
            name=f"linear_{kind}", initializer=zero)) for kind in ("plain", "history")}
        found = [weights["history" if name == "history" else "plain"](ids)
                 for name, ids in self.fields.items()]
        bias = paddle.create_parameter([1], "float32", name="linear_bias", is_bias=True)
        return paddle.sum(paddle.concat(found, axis=1), axis=1) + bias

    def rows(self, name):
        """The embeddings of a field's ids [batch, width of the field, width]; all fields share the table."""
        if self._table is None:
            self._table = paddle.nn.Embedding(self.ids, self.width, padding_idx=0, sparse=True,
                                              weight_attr=paddle.ParamAttr(
                name="embeddings", initializer=paddle.nn.initializer.Normal(0.0, 0.05)))
        return self._table(self.fields[name])

    def pooled(self, names=tuple(FIELDS)):
        """For each field, the sum of its ids' embeddings [batch, width];
        the history's by the root of its length."""
        return [paddle.sum(self.rows(name), axis=1) * FIELDS[name] ** -0.5 for name in names]

    def float_label(self, name):
        """A label as float32."""
        return paddle.cast(self.labels[name], "float32")


def mlp(x, sizes, dropout=0.3):
    """Linear layers of these sizes with relu and dropout behind each."""
    for size in sizes:
        x = F.dropout(F.relu(paddle.nn.Linear(x.shape[-1], size)(x)), p=dropout)
    return x


def logit_of(x):
    """One number for each example [batch, 1]."""
    return paddle.nn.Linear(x.shape[-1], 1)(x)


def log_loss(logit, label):
    """The mean logistic loss."""
    return F.binary_cross_entropy_with_logits(logit, label)
