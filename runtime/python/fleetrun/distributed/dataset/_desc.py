"""A dataset as text: what Paddle writes of a DataFeedDesc."""

import json

_TYPES = {"int64": "uint64", "float32": "float"}


def text_of(feed_type, batch_size, variables, pipe_command):
    """The text format of protobuf; what has its default is left out."""
    lines = [f'name: "{feed_type}"']
    if batch_size != 1:
        lines.append(f"batch_size: {batch_size}")
    if variables:
        lines += [
            "multi_slot_desc {",
            *(f"  {line}" for variable in variables for line in _slot(variable)),
            "}",
        ]
    command = pipe_command if isinstance(pipe_command, str) else " ".join(pipe_command)
    return "\n".join([*lines, f"pipe_command: {json.dumps(command)}", ""])


def _slot(variable):
    dense = variable.lod_level == 0
    return [
        "slots {",
        f'  name: "{variable.name}"',
        f'  type: "{_TYPES[variable.dtype.name]}"',
        *(["  is_dense: true"] if dense else []),
        "  is_used: true",
        *([f"  shape: {size}" for size in variable.shape] if dense else []),
        "}",
    ]
