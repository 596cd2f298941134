"""paddle.fluid.contrib.slim and the modules below it: scripts import them beside what they run, and what of
it they call is refused by name."""

from fleetrun import _lazy, _unusable

_found, __dir__ = _lazy.attach(__name__, {}, owner="paddle.fluid.contrib.slim")
__getattr__ = _unusable.beside(
    _found,
    "paddle.fluid.contrib.slim",
    """
    AddQuantDequantPass Compressor Context ConvertToInt8Pass DistillationStrategy FSPDistiller GraphWrapper
    ImperativeQuantAware L2Distiller LightNASStrategy MKLDNNPostTrainingQuantStrategy OutScaleForInferencePass
    OutScaleForTrainingPass PostTrainingQuantization QuantInt8MkldnnPass Quant2Int8MkldnnPass
    QuantizationFreezePass QuantizationStrategy QuantizationTransformPass QuantizeTranspilerV2 SAController
    SearchSpace SoftLabelDistiller Strategy TransformForMkldnnPass TransformForMobilePass WeightQuantization
    """,
)
