"""Optimizers as a script makes them. minimize() puts backward and updates into the program."""

from fleetrun import _native, framework, regularizer
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun.static.training import Training


class Optimizer:
    """Base: learning rate and weight decay. `config` is what the engine gets."""

    kind = ""

    def __init__(self, learning_rate, weight_decay, refused, **config):
        function = f"paddle.optimizer.{type(self).__name__}"
        if not isinstance(learning_rate, (int, float)):
            raise Error("config", f"{function}(learning_rate={learning_rate!r}) is not supported",
                        "give the learning rate as a number")
        refuse(function, **{name: (value, default) for name, (value, default) in refused.items()})
        self.config = {"learning_rate": float(learning_rate),
                       "l2_decay": regularizer.coefficient(weight_decay, function), **config}

    def get_lr(self):
        """The learning rate."""
        return self.config["learning_rate"]

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """Appends backward and update operators of `loss` (one value) to its program.

        Returns (operators, [(parameter, gradient)]), as Paddle's does; the first is empty.
        Throws: Error(config) for a loss with more than one value, or an initializer or optimizer that a sparse
        table cannot honour, naming it.
        """
        refuse("Optimizer.minimize", parameters=(parameters, None), no_grad_set=(no_grad_set, None))
        return self.distribute(loss, startup_program, "async", servers=False)

    def distribute(self, loss, startup_program, mode, servers):
        """minimize() with the parameters' place: servers (True) or this process."""
        main = loss.program
        startup = startup_program or framework.default_startup_program()
        target, l2_decay = _with_decay(loss, main, self.config["l2_decay"])
        plan = _native.distribute(main.native, startup.native, target.name, self._native_config(l2_decay), servers)
        main.training = Training(plan, mode, servers, (main, startup))
        return [], [(parameter, parameter.name + "@GRAD") for parameter in main.all_parameters()
                    if main.has_var(parameter.name + "@GRAD")]

    def _native_config(self, l2_decay):
        config = _native.OptimizerConfig()
        for name, value in {**self.config, "l2_decay": l2_decay}.items():
            setattr(config, name, value)
        config.kind = getattr(_native.OptimizerConfig.Kind, self.kind)
        return config


def _with_decay(loss, main, weight_decay):
    """(loss to differentiate, decay left to the engine). A parameter's own regularizer goes before the optimizer's;
    then decay is a term of the loss, coefficient / 2 * sum(w * w), whose gradient is coefficient * w."""
    from fleetrun import tensor

    own = {parameter.name: regularizer.coefficient(parameter.regularizer, f"parameter {parameter.name}")
           for parameter in main.all_parameters() if parameter.regularizer is not None}
    if not any(own.values()):
        return loss, weight_decay
    looked_up = {op.inputs[0] if op.type == "embedding" else op.attributes["parameter"]
                 for op in main.ops if op.type in ("embedding", "sparse_embedding")}
    for parameter in main.all_parameters():
        coefficient = own.get(parameter.name, weight_decay)
        if not coefficient:
            continue
        if parameter.name in looked_up:
            raise Error("config", f"parameter {parameter.name}: L2Decay({coefficient}) on an embedding is not supported",
                        "leave the regularizer of embeddings out")
        loss = tensor.add(loss, tensor.scale(tensor.sum(tensor.multiply(parameter, parameter)), coefficient / 2))
    return loss, 0.0


class SGD(Optimizer):
    """w -= learning_rate * g."""

    kind = "sgd"

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None, multi_precision=False,
                 name=None):
        super().__init__(learning_rate, weight_decay,
                         {"grad_clip": (grad_clip, None), "multi_precision": (multi_precision, False)})


class Adagrad(Optimizer):
    """m += g * g; w -= learning_rate * g / (sqrt(m) + epsilon); m starts at initial_accumulator_value."""

    kind = "adagrad"

    def __init__(self, learning_rate, epsilon=1e-06, parameters=None, weight_decay=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(learning_rate, weight_decay, {"grad_clip": (grad_clip, None)}, epsilon=float(epsilon),
                         initial_accumulator=float(initial_accumulator_value))


class Adam(Optimizer):
    """Adam with bias correction. lazy_mode: an embedding's rows change only when a batch looks them up."""

    kind = "adam"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None, weight_decay=None,
                 grad_clip=None, lazy_mode=False, multi_precision=False, use_multi_tensor=False, name=None):
        super().__init__(learning_rate, weight_decay,
                         {"grad_clip": (grad_clip, None), "multi_precision": (multi_precision, False),
                          "use_multi_tensor": (use_multi_tensor, False)},
                         beta1=float(beta1), beta2=float(beta2), epsilon=float(epsilon), lazy_rows=bool(lazy_mode))
