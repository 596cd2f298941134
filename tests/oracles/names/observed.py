"""Names that look at values: Print and ctr_metric_bundle."""


def printed(paddle, net):
    x = net.parameter("x", [[0.5, -1.0], [2.0, 0.25]])
    return {"out": paddle.static.Print(x * 2.0, message="seen")}


def metric_bundle(paddle, net):
    prediction = net.data("prediction", [[0.2], [0.9], [0.4]])
    label = net.data("label", [[0.0], [1.0], [1.0]])
    sums = paddle.static.ctr_metric_bundle(prediction, label)
    net.start()
    names = ("squared errors", "absolute errors", "predictions", "sigmoids", "labels", "examples")
    once = dict(zip(names, net.run(sums)))
    twice = net.run(sums)
    return {**once, **{name + " twice": value for name, value in zip(names, twice)}}
