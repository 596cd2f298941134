"""Operators of 1.x: in the real Paddle 2.6.2, which has no fluid, appended by their types."""


def operator(paddle, kind, inputs, outputs, attributes, older):
    """{output: variable}. outputs: {name: type}. older: what fluid.layers makes, here."""
    if hasattr(paddle, "fluid"):
        return older(paddle.fluid.layers)
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper(kind)
    made = {name: helper.create_variable_for_type_inference(dtype) for name, dtype in outputs.items()}
    given = {name: value for name, value in inputs.items() if value is not None}
    helper.append_op(type=kind, inputs=given, outputs=made, attrs=attributes)
    return made
