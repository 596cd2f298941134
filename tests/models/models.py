"""Ten models from their papers. Each takes Inputs and returns (loss, {label: prediction}).

The sizes are small, as 100,000 ratings ask for; what the papers tell apart is all there.
"""
import fleetrun as paddle
import fleetrun.nn.functional as F
from inputs import log_loss, logit_of, mlp

HIDDEN = (64, 32)


def _one(inputs, logit, label="like"):
    """Loss and prediction of a model of one label."""
    return log_loss(logit, inputs.float_label(label)), {label: F.sigmoid(logit)}


def lr_of_fine(inputs):
    """The baseline: logistic regression of the same features."""
    return _one(inputs, inputs.linear(), "fine")


def lr_of_like(inputs):
    """The same, of the label that most models predict."""
    return _one(inputs, inputs.linear())


def lr_of_love(inputs):
    """The same, of the rarest label."""
    return _one(inputs, inputs.linear(), "love")


def dnn(inputs):
    """Embeddings side by side, then a network. Source: Covington et al., Deep neural networks for YouTube
    recommendations, 2016."""
    return _one(inputs, logit_of(mlp(paddle.concat(inputs.pooled(), axis=1), HIDDEN)))


def wide_and_deep(inputs):
    """Source: Cheng et al., Wide & deep learning for recommender systems, 2016."""
    return _one(inputs, inputs.linear() + logit_of(mlp(paddle.concat(inputs.pooled(), axis=1), HIDDEN)))


def _pairs(vectors):
    """The sum of all inner products of two different vectors [batch, 1]: half of (Σ v)² - Σ v²."""
    total = paddle.add_n(vectors)
    squares = paddle.add_n([paddle.square(vector) for vector in vectors])
    return paddle.sum(paddle.square(total) - squares, axis=1, keepdim=True) * 0.5


def fm(inputs):
    """Source: Rendle, Factorization machines, 2010."""
    return _one(inputs, inputs.linear() + _pairs(inputs.pooled()))


def deepfm(inputs):
    """A factorization machine and a network over the same embeddings. Source: Guo et al., DeepFM, 2017."""
    vectors = inputs.pooled()
    deep = logit_of(mlp(paddle.concat(vectors, axis=1), HIDDEN))
    return _one(inputs, inputs.linear() + _pairs(vectors) + deep)


def dcn(inputs, layers=3):
    """x' = x0 (x · w) + b + x beside a network. Source:
    Wang et al., Deep & cross network for ad click predictions, 2017."""
    first = paddle.concat(inputs.pooled(), axis=1)
    crossed = first
    for layer in range(layers):
        weight = paddle.create_parameter([first.shape[1], 1], "float32", name=f"cross_{layer}_w")
        bias = paddle.create_parameter([first.shape[1]], "float32", name=f"cross_{layer}_b", is_bias=True)
        crossed = first * paddle.matmul(crossed, weight) + bias + crossed
    return _one(inputs, logit_of(paddle.concat([crossed, mlp(first, HIDDEN)], axis=1)))


def xdeepfm(inputs, maps=(16, 16)):
    """Compressed interactions: every product of a feature map's row and a field's, mixed by a convolution of
    width 1, beside a linear part and a network. Source: Lian et al., xDeepFM, 2018."""
    vectors = inputs.pooled()
    first = paddle.stack(vectors, axis=1)
    current, sums = first, []
    for size in maps:
        rows = current.shape[1] * first.shape[1]
        products = paddle.unsqueeze(current, 2) * paddle.unsqueeze(first, 1)
        current = paddle.nn.Conv1D(rows, size, 1)(paddle.reshape(products, [-1, rows, inputs.width]))
        sums.append(paddle.sum(current, axis=2))
    deep = mlp(paddle.concat(vectors, axis=1), HIDDEN)
    return _one(inputs, inputs.linear() + logit_of(paddle.concat([*sums, deep], axis=1)))


def din(inputs):
    """The films of the history count by how they go with this one.
    Source: Zhou et al., Deep interest network, 2018."""
    history, film = inputs.rows("history"), inputs.rows("item")
    film = film * paddle.ones_like(history)
    facts = paddle.concat([history, film, history - film, history * film], axis=2)
    hidden = paddle.nn.PReLU()(paddle.nn.Linear(4 * inputs.width, 16)(facts))
    there = paddle.cast(paddle.not_equal(inputs.fields["history"],
                                         paddle.zeros_like(inputs.fields["history"])), "float32")
    weights = logit_of(hidden) * paddle.unsqueeze(there, 2)
    interest = paddle.sum(history * weights, axis=1)
    others = inputs.pooled([name for name in inputs.fields if name != "history"])
    return _one(inputs, logit_of(mlp(paddle.concat([*others, interest, interest * others[4]], axis=1),
                                     HIDDEN)))


def dssm(inputs):
    """A tower for the user and one for the film; the cosine of what they make. Source: Huang et al., Learning
    deep structured semantic models, 2013."""
    towers = []
    for names in (("user", "gender", "age", "occupation", "history"), ("item", "year", "genres")):
        hidden = mlp(paddle.concat(inputs.pooled(names), axis=1), HIDDEN[:1], dropout=0.1)
        towers.append(paddle.tanh(paddle.nn.Linear(HIDDEN[0], HIDDEN[1])(hidden)))
    user, film = towers
    lengths = [paddle.sqrt(paddle.sum(paddle.square(tower), axis=1, keepdim=True) + 1e-8) for tower in towers]
    cosine = paddle.sum(user * film, axis=1, keepdim=True) / (lengths[0] * lengths[1])
    return _one(inputs, paddle.nn.Linear(1, 1, weight_attr=paddle.ParamAttr(
        initializer=paddle.nn.initializer.Constant(4.0)))(cosine))


def esmm(inputs):
    """Two networks over shared embeddings: is it fine, and if so, is it loved? The second learns only through
    the product of both, over all examples. Source: Ma et al., Entire space multi-task model, 2018."""
    x = paddle.concat(inputs.pooled(), axis=1)
    fine, given = (F.sigmoid(logit_of(mlp(x, HIDDEN))) for _ in range(2))
    both = fine * given
    losses = [paddle.mean(F.log_loss(guess, inputs.float_label(name), epsilon=1e-6))
              for guess, name in ((fine, "fine"), (both, "love"))]
    return losses[0] + losses[1], {"fine": fine, "love": both}


def mmoe(inputs, experts=4, tasks=("like", "love")):
    """Experts that each task mixes with a gate of its own. Source: Ma et al., Modeling task relationships in
    multi-task learning with multi-gate mixture-of-experts, 2018."""
    x = paddle.concat(inputs.pooled(), axis=1)
    made = paddle.stack([mlp(x, HIDDEN[:1]) for _ in range(experts)], axis=1)
    loss, predictions = None, {}
    for task in tasks:
        gate = paddle.unsqueeze(F.softmax(paddle.nn.Linear(x.shape[1], experts)(x)), 2)
        logit = logit_of(mlp(paddle.sum(made * gate, axis=1), HIDDEN[1:]))
        own = log_loss(logit, inputs.float_label(task))
        loss = own if loss is None else loss + own
        predictions[task] = F.sigmoid(logit)
    return loss, predictions


BY_NAME = {model.__name__: model for model in (
    lr_of_fine, lr_of_like, lr_of_love, wide_and_deep, dnn, fm, deepfm, dcn, xdeepfm, din, dssm, esmm, mmoe)}
