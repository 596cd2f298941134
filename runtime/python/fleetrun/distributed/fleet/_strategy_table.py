"""What print(strategy) shows: a table of all fields, laid out as Paddle's."""

_WIDTH = 78
_NAME = 38


def table_of(strategy):
    """The table's text: what is on with its configs first, then all other fields, then the two strategies of
    execution."""
    from fleetrun.distributed.fleet import _collective_fields as collective_fields

    switches = [
        ("a_sync", strategy.a_sync, "a_sync_configs"),
        *(
            (name[: -len("_configs")], getattr(strategy, name[: -len("_configs")]), name)
            for name, default in collective_fields.DEFAULTS.items()
            if isinstance(default, dict)
        ),
    ]
    lines = [_rule("="), _middle(""), _middle("DistributedStrategy Overview"), _middle("")]
    for name, is_on, configs in switches:
        if is_on:
            lines += _section(f"{name}=True <-> {configs}", getattr(strategy, configs))
    known = {name for switch in switches for name in (switch[0], switch[2])}
    lines += _section(
        "Environment Flags, Communication Flags",
        {
            **{name: False for name, is_on, _ in switches if not is_on},
            **{name: getattr(strategy, name) for name in collective_fields.DEFAULTS if name not in known},
        },
    )
    lines += _section("Build Strategy", strategy.build_strategy.values())
    lines += _section("Execution Strategy", strategy.execution_strategy.values())
    return "\n".join("    " + line for line in [*lines, _rule("=")])


def _section(title, values):
    return [_rule("="), _middle(title), _rule("-"), *(_row(name, value) for name, value in values.items())]


def _rule(character):
    return f"+{character * _WIDTH}+"


def _middle(text):
    return f"|{text:^{_WIDTH}}|"


def _row(name, value):
    return f"|{name:>{_NAME}}{str(value):^{_WIDTH - _NAME}}|"
