"""ParamAttr: what a script may say about a parameter."""

from typing import Any, Literal, TypeAlias

from fleetrun._arguments import plain
from fleetrun._error import Error
from fleetrun.nn.clip import Clip
from fleetrun.nn.initializer import Initializer
from fleetrun.regularizer import WeightDecay


class ParamAttr:
    """Name, initializer, regularizer, trainable and need_clip of a parameter; learning_rate is a factor of
    the optimizer's.

    regularizer: L1Decay or L2Decay; it goes before the optimizer's weight_decay. gradient_clip: as in Paddle
    1.x: an optimizer without grad_clip clips the parameters that have one, and no others. Throws:
    Error(config) naming an argument that fleetrun cannot honour.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecay | None = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
        gradient_clip: Clip | None = None,
    ) -> None:
        learning_rate = plain(learning_rate)
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise Error(
                "config",
                f"paddle.ParamAttr(learning_rate={learning_rate!r}) is not a number",
                "it is a factor, 1.0",
            )
        self.name = name
        self.initializer = initializer
        self.learning_rate = float(learning_rate)
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip
        self.gradient_clip = gradient_clip

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        return to_attr(arg, "ParamAttr")


class WeightNormParamAttr(ParamAttr):
    """Refused: a weight is trained as it is. Throws: Error(config)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise Error(
            "config",
            "paddle.static.WeightNormParamAttr: a weight is trained as it is, not as size and direction",
            "use paddle.ParamAttr",
        )


# What a layer takes for a parameter: its attribute, name, initializer or regularizer; True is the default,
# False none.
ParamLike: TypeAlias = ParamAttr | str | Initializer | WeightDecay | bool | None


def to_attr(attr: ParamLike, function: str) -> ParamAttr | Literal[False]:
    """The ParamAttr that `attr` (None, a name, an initializer, a ParamAttr or False) stands for; False
    stays."""
    if attr is False or isinstance(attr, ParamAttr):
        return attr
    if attr is None or attr is True:
        return ParamAttr()
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if isinstance(attr, Initializer):
        return ParamAttr(initializer=attr)
    if isinstance(attr, WeightDecay):
        return ParamAttr(regularizer=attr)
    raise Error("config", f"{function}: {attr!r} is not a parameter attribute", "use paddle.ParamAttr(...)")
