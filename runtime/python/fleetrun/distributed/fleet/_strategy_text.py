"""A DistributedStrategy as a file, in the text format of Paddle's protocol buffer: the fields that are not at
their defaults, a block for each dict, a line for each element of a list."""

import json
import re

from fleetrun._error import Error

_PLAIN = (bool, int, float, str, list, dict)
_TOKEN = re.compile(r"""\s*(?:#[^\n]*\s*)*("(?:\\.|[^"\\])*"|[{}:;,]|[^\s"{}:;,#]+|$)""")
# The dicts' lists in Paddle, also of those whose names have no defaults here.
_LISTS = (
    "checkpoint_shape", "checkpoints", "custom_black_list", "custom_black_varnames", "custom_white_list",
    "dump_fields", "dump_param", "exclude_from_weight_decay", "not_quant_pattern", "segment_anchors",
    "sparsity", "stat_var_names",
)  # fmt: skip
_ATTRIBUTES = ("a_sync", "a_sync_configs", "adam_d2sum", "trainer_desc_configs")


def text_of(strategy):
    """The file's text."""
    return "\n".join([*_lines(_changed(_fields(strategy), _fields(type(strategy)()))), ""])


def read_into(strategy, text, name):
    """Sets the fields that stand in `text`, of a file of this name. Throws: Error(data) where it is not such
    a text, Error(config) and AttributeError as the fields do."""
    for field, value in _block(iter(_TOKEN.findall(text)), name, "").items():
        if field == "build_strategy" and isinstance(value, dict):
            value = strategy.build_strategy.named(value)
        setattr(strategy, field, _as(field, getattr(strategy, field), value))


def _as(name, current, value):
    """A list of one element stands there as the element."""
    if isinstance(current, dict) and isinstance(value, dict):
        return {key: _as(key, current.get(key), each) for key, each in value.items()}
    is_list = isinstance(current, list) or name in _LISTS
    return [value] if is_list and not isinstance(value, list) else value


def _fields(strategy):
    from fleetrun.distributed.fleet import _collective_fields as collective_fields
    from fleetrun.distributed.fleet import _stored_fields as stored_fields

    names = (*_ATTRIBUTES, *collective_fields.DEFAULTS, *stored_fields.DEFAULTS)
    return {
        **{name: getattr(strategy, name) for name in names},
        "build_strategy": strategy.build_strategy.numbered(),
        "execution_strategy": strategy.execution_strategy.values(),
    }


def _changed(values, defaults):
    found = {}
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict):
            value, default = _changed(value, default), {}
        if value != default and isinstance(value, _PLAIN):
            found[name] = value
    return found


def _lines(values):
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{name} {{"
            yield from ("  " + line for line in _lines(value))
            yield "}"
        else:
            yield from (f"{name}: {_scalar(one)}" for one in (value if isinstance(value, list) else [value]))


def _scalar(value):
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def _block(tokens, file, end):
    """{field: value} up to the token `end`; a field that is there several times has a list of its values."""
    found: dict = {}
    for name in tokens:
        if name == end:
            return found
        if not name:
            break
        if name in (";", ","):
            continue
        after = next(tokens, "")
        if after == ":":
            after = next(tokens, "")
            value = _value(after, file) if after != "{" else _block(tokens, file, "}")
        elif after == "{":
            value = _block(tokens, file, "}")
        else:
            raise _not_a_strategy(file, f"{name} {after}")
        if name in found:
            before = found[name]
            value = [*(before if isinstance(before, list) else [before]), value]
        found[name] = value
    raise _not_a_strategy(file, "a block that does not end")


def _value(token, file):
    if token in ("true", "false"):
        return token == "true"
    try:
        return json.loads(token)
    except ValueError:
        raise _not_a_strategy(file, token) from None


def _not_a_strategy(file, what):
    return Error(
        "data",
        f"{file} is not a DistributedStrategy in text form: {what}",
        "give a file of DistributedStrategy.save_to_prototxt()",
    )
