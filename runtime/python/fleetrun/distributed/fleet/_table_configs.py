"""DistributedStrategy.sparse_table_configs and fleet_desc_configs: what Paddle lets a script say about a
sparse table.

Both are {parameter name: {key: value}}; a key that Paddle does not have is refused by name, and so is a value
that a table cannot honour. Names and defaults are those of Paddle 2.6.2. Both come down to fields of the
native TableChoice.

sparse_table_configs: keys are table_parameters.NAME.FIELD. What is not given is what the script's optimizer
and initializer say, and Paddle's defaults of a SparseAccessor: no threshold, no decay.

fleet_desc_configs: keys are sparse_…; what is not given has the defaults of that interface: accessor
DownpourCtrAccessor, optimizer "adagrad" with learning rate 0.05, thresholds 10, 1.5, 0.25 and 0.8, first
values within 0.0001, column 0 from 0. "use_cvm" beside the tables: False makes every accessor a
SparseAccessor.

Of no effect, since a table is laid out and saved in one way: shard_num, table_id, type, compress_in_save, and
the cache_* keys, which choose rows for a cache of an online service.
"""

from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._lazy import missing

_RULES = {
    "SparseNaiveSGDRule": ("sgd", "naive"),
    "SparseAdaGradSGDRule": ("shared_adagrad", "adagrad"),
    "StdAdaGradSGDRule": ("std_adagrad", "adagrad"),
    "SparseAdamSGDRule": ("pow_adam", "adam"),
    "SparseSharedAdamSGDRule": ("shared_adam", "adam"),
}
_OPTIMIZERS = {
    "naive": "SparseNaiveSGDRule",
    "adagrad": "SparseAdaGradSGDRule",
    "std_adagrad": "StdAdaGradSGDRule",
    "adam": "SparseAdamSGDRule",
    "shared_adam": "SparseSharedAdamSGDRule",
}
# Of each group of parameters: Paddle's name and default, and the name here.
_RULE_FIELDS = {
    "naive": {"learning_rate": (0.05, "learning_rate")},
    "adagrad": {"learning_rate": (0.05, "learning_rate"), "initial_g2sum": (3.0, "initial_accumulator")},
    "adam": {
        "learning_rate": (0.001, "learning_rate"),
        "beta1_decay_rate": (0.9, "beta1"),
        "beta2_decay_rate": (0.999, "beta2"),
        "ada_epsilon": (1e-8, "epsilon"),
    },
}
_BOUNDS = [-10.0, 10.0]
_ACCESSORS = {"SparseAccessor": "sparse", "CtrCommonAccessor": "ctr"}
_DESC_ACCESSORS = (
    "DownpourSparseValueAccessor",
    "DownpourCtrAccessor",
    "DownpourUnitAccessor",
    "DownpourCtrDoubleAccessor",
    "DownpourDoubleUnitAccessor",
    "DownpourCtrDymfAccessor",
)
# What fleet_desc_configs says of a rule, after the block and "sparse_".
_OF_A_RULE = (
    "optimizer",
    "learning_rate",
    "initial_g2sum",
    "initial_range",
    "weight_bounds",
    "beta1_decay_rate",
    "beta2_decay_rate",
)
_SCORES = (
    "nonclk_coeff",
    "click_coeff",
    "base_threshold",
    "delta_threshold",
    "delta_keep_days",
    "show_click_decay_rate",
    "delete_threshold",
    "delete_after_unseen_days",
    "ssd_unseenday_threshold",
)


def parse_table_parameters(configs):
    """{parameter: function(choice, width, optimizer)} of sparse_table_configs. Throws: Error(config)."""
    return {
        name: _parsed(
            name,
            _fields(name, config, "sparse_table_configs", f"table_parameters.{name}."),
            "sparse_table_configs",
            _TableParameters,
        )
        for name, config in _dict("sparse_table_configs", configs).items()
    }


def parse_desc(configs):
    """The same of fleet_desc_configs."""
    tables = {}
    for name, config in _dict("fleet_desc_configs", configs).items():
        if name == "use_cvm":
            continue
        if name in ("dense_table", "datanorm_table"):
            raise Error(
                "config",
                f"fleet_desc_configs {name}: dense parameters are trained by the script's optimizer",
                "leave it out",
            )
        fields = _fields(name, config, "fleet_desc_configs", "")
        tables[name] = _parsed(
            name, {**fields, "use_cvm": configs.get("use_cvm", True)}, "fleet_desc_configs", _Description
        )
    return tables


def _dict(what, configs):
    if not isinstance(configs, dict):
        raise Error(
            "config",
            f"DistributedStrategy.{what} = {configs!r} is not a dict",
            "give {parameter name: {key: value}}",
        )
    return configs


def _fields(name, config, what, prefix):
    if not isinstance(config, dict):
        raise Error(
            "config", f"{what} {name}: {config!r} is not a dict", "give {parameter name: {key: value}}"
        )
    fields = {}
    for key, value in config.items():
        if not key.startswith(prefix):
            raise Error("config", f"{what} {name}: {key} does not begin with {prefix}")
        fields[key[len(prefix) :]] = value
    return fields


def _parsed(name, fields, what, kind):
    table = kind(name, fields, what)
    from fleetrun import _native

    # Tried at once, so that a mistake shows where it was made; sizes are known at minimize().
    table.choose(_native.TableChoice(), None, None)
    return table.choose


class _Table:
    """Reads fields once each; what is left over is not known."""

    KNOWN: tuple[str, ...] = ()

    def __init__(self, name, fields, what):
        self.name = name
        self.fields = fields
        self.what = what
        for key in fields:
            if key not in self.KNOWN:
                raise Error("config", missing(f"{what} {name}", key, self.KNOWN))

    def refuse(self, key, reason, hint=""):
        """Throws: Error(config) that says why this key's value cannot be."""
        raise Error("config", f"{self.what} {self.name}: {key} = {self.fields.get(key)!r}: {reason}", hint)

    def keep(self, key, default, reason):
        """Refuses anything but the default."""
        if self.fields.get(key, default) != default:
            self.refuse(key, reason, f"leave it at {default!r}")

    def number(self, key, default):
        """The field as a number; `default` when it is not there."""
        value = self.fields.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(key, "it is a number")
        return value

    def rule(self, kind, group, prefix, between="", optimizer=None):
        """A native rule of `kind` with the fields prefix + between + name; of those that are not there the
        `optimizer`'s, where Paddle takes them."""
        from fleetrun import _native

        rule = _native.UpdateRule()
        rule.kind = kind
        for name, (default, field) in _RULE_FIELDS[group].items():
            path = prefix + between + name
            if optimizer is not None and path not in self.fields:
                default = _number_of(optimizer, group, field, default)
            setattr(rule, field, self.number(path, default))
        bounds = self.fields.get(prefix + between + "weight_bounds") or _BOUNDS
        if len(bounds) != 2:
            self.refuse(prefix + between + "weight_bounds", "it is [least, most]")
        rule.low, rule.high = bounds
        return rule

    def set_range(self, choice, value):
        """First values are uniform within ±value."""
        from fleetrun import _native

        initializer = _native.Initializer()
        initializer.kind = "uniform"
        initializer.a, initializer.b = -value, value
        choice.initializer = initializer

    def check_sizes(self, choice, width, embedx, fea):
        """embedx_dim and fea_dim, where they are given, against the embedding's width; one that is not in the
        program has none, and is refused there."""
        if not width:
            return
        statistics = 2 if choice.accessor.kind == "ctr" else 0
        expected = {embedx: width - statistics - 1, fea: width if statistics else width + 2}
        for key, size in expected.items():
            if key in self.fields and self.fields[key] != size:
                self.refuse(key, f"{self.name} has rows of {width} floats", f"give {size}, or leave it out")


class _TableParameters(_Table):
    KNOWN = (
        "table_class",
        "shard_num",
        "table_id",
        "table_name",
        "type",
        "compress_in_save",
        "enable_sparse_table_cache",
        "sparse_table_cache_rate",
        "sparse_table_cache_file_num",
        "enable_revert",
        "shard_merge_rate",
        "accessor.accessor_class",
        "accessor.fea_dim",
        "accessor.embedx_dim",
        "accessor.embedx_threshold",
        *(
            f"accessor.ctr_accessor_param.{field}"
            for field in (*_SCORES, "show_scale", "zero_init", "load_filter_slots", "save_filter_slots")
        ),
        *(
            f"accessor.{block}_sgd_param.{field}"
            for block in ("embed", "embedx")
            for field in (
                "name",
                *(
                    f"{group}.{name}"
                    for group, fields in _RULE_FIELDS.items()
                    for name in (*fields, "initial_range", "weight_bounds")
                ),
            )
        ),
    )

    def choose(self, choice, width, optimizer):
        fields = self.fields
        self.keep("enable_revert", False, "a saved table is taken back by loading another")
        self.keep("shard_merge_rate", 1.0, "rows are spread by their keys")
        for key in ("load_filter_slots", "save_filter_slots"):
            self.keep("accessor.ctr_accessor_param." + key, [], "all slots are loaded and saved")
        self._table_class(choice)
        name = fields.get("accessor.accessor_class", "SparseAccessor")
        if name not in _ACCESSORS:
            self.refuse(
                "accessor.accessor_class", _accessor_reason(name), f"use one of {', '.join(_ACCESSORS)}"
            )
        accessor = choice.accessor
        accessor.kind = _ACCESSORS[name]
        accessor.embedx_threshold = self.number("accessor.embedx_threshold", 0.0)
        for key in _SCORES:
            path = "accessor.ctr_accessor_param." + key
            if path in fields:
                setattr(accessor, key, self.number(path, 0.0))
        accessor.show_scale = bool(fields.get("accessor.ctr_accessor_param.show_scale", True))
        accessor.zero_init = bool(fields.get("accessor.ctr_accessor_param.zero_init", False))
        self._rules(choice, optimizer)
        self.check_sizes(choice, width, "accessor.embedx_dim", "accessor.fea_dim")

    def _table_class(self, choice):
        name = self.fields.get("table_class", "MemorySparseTable")
        if name not in ("MemorySparseTable", "SSDSparseTable", "MemorySparseGeoTable"):
            self.refuse("table_class", "there is no such table", "use MemorySparseTable or SSDSparseTable")
        choice.on_disk = name == "SSDSparseTable"

    def _rules(self, choice, optimizer):
        ranges = {}
        for block in ("embed", "embedx"):
            prefix = f"accessor.{block}_sgd_param."
            name = self.fields.get(prefix + "name")
            given = [key for key in self.fields if key.startswith(prefix) and key != prefix + "name"]
            if name is None:
                if given:
                    self.refuse(given[0], f"{prefix}name is not given", f"use one of {', '.join(_RULES)}")
                continue
            if name not in _RULES:
                self.refuse(prefix + "name", "no table has this rule", f"use one of {', '.join(_RULES)}")
            kind, group = _RULES[name]
            for key in given:
                if not key.startswith(prefix + group + "."):
                    self.refuse(key, f"{prefix}name is {name}, which reads {prefix}{group}.…")
            rule = self.rule(kind, group, prefix, group + ".", optimizer)
            if block == "embed":
                choice.accessor.embed_rule = rule
            else:
                choice.rule = rule
            choice.times_batch = True
            if prefix + group + ".initial_range" in self.fields:
                ranges[block] = self.number(prefix + group + ".initial_range", 0.0)
        if len(ranges) == 2 and ranges["embed"] != ranges["embedx"] and not choice.accessor.zero_init:
            raise Error(
                "config",
                f"{self.what} {self.name}: the initial_range of embed is {ranges['embed']}, of embedx "
                f"{ranges['embedx']}",
                "give them the same, or zero_init = True",
            )
        if ranges:
            self.set_range(choice, ranges.get("embedx", ranges.get("embed")))


class _Description(_Table):
    KNOWN = (
        "use_cvm",
        "sparse_table_class",
        "sparse_compress_in_save",
        "sparse_shard_num",
        "sparse_accessor_class",
        "sparse_fea_dim",
        "sparse_embedx_dim",
        "sparse_embedx_threshold",
        *(f"sparse_{key}" for key in _SCORES),
        "sparse_converter",
        "sparse_deconverter",
        "sparse_enable_cache",
        "sparse_cache_rate",
        "sparse_cache_file_num",
        "sparse_load_filter_slots",
        "sparse_save_filter_slots",
        "feature_learning_rate",
        "nodeid_slot",
        "sparse_ada_epsilon",
        *(f"{block}sparse_{key}" for block in ("", "embed_", "embedx_") for key in _OF_A_RULE),
    )
    _DEFAULTS = {
        "nonclk_coeff": 0.1,
        "click_coeff": 1.0,
        "base_threshold": 1.5,
        "delta_threshold": 0.25,
        "delta_keep_days": 16,
        "show_click_decay_rate": 0.98,
        "delete_threshold": 0.8,
        "delete_after_unseen_days": 30,
        "ssd_unseenday_threshold": 1,
    }

    def choose(self, choice, width, _):
        fields = self.fields
        for key in ("sparse_converter", "sparse_deconverter"):
            self.keep(key, "", "rows are written by the server itself")
        for key in ("sparse_load_filter_slots", "sparse_save_filter_slots"):
            self.keep(key, [], "all slots are loaded and saved")
        self.keep("feature_learning_rate", 0.05, "there are no graph tables")
        self.keep("nodeid_slot", 9008, "there are no graph tables")
        table = fields.get("sparse_table_class", "DownpourSparseTable")
        if table not in ("DownpourSparseTable", "DownpourSparseSSDTable"):
            self.refuse(
                "sparse_table_class",
                "there is no such table",
                "use DownpourSparseTable or DownpourSparseSSDTable",
            )
        choice.on_disk = table == "DownpourSparseSSDTable"
        name = fields.get("sparse_accessor_class", "DownpourCtrAccessor")
        if name not in _DESC_ACCESSORS[:3]:
            self.refuse(
                "sparse_accessor_class",
                _accessor_reason(name),
                f"use one of {', '.join(_DESC_ACCESSORS[:3])}",
            )
        accessor = choice.accessor
        accessor.kind = "ctr" if fields["use_cvm"] else "sparse"
        accessor.show_scale = name != "DownpourUnitAccessor"
        accessor.embedx_threshold = self.number("sparse_embedx_threshold", 10.0)
        for key, default in self._DEFAULTS.items():
            setattr(accessor, key, self.number(f"sparse_{key}", default))
        # A row of column 0 alone is what a pull sees first: Paddle gives it the initializer's value then.
        accessor.zero_init = width is None or width - (2 if accessor.kind == "ctr" else 0) > 1
        blocks = ("", "") if name == "DownpourCtrAccessor" else ("embed_", "embedx_")
        self._say_what_is_not_read(name, blocks)
        accessor.embed_rule = self._rule(blocks[0])
        choice.rule = self._rule(blocks[1])
        choice.times_batch = True
        self.set_range(choice, self.number(blocks[1] + "sparse_initial_range", 1e-4))
        self.check_sizes(choice, width, "sparse_embedx_dim", "sparse_fea_dim")

    def _say_what_is_not_read(self, accessor, blocks):
        """As in Paddle, a rule is read from the blocks of the accessor alone."""
        for block in ("", "embed_", "embedx_"):
            for key in _OF_A_RULE:
                if block not in blocks and f"{block}sparse_{key}" in self.fields:
                    warn_once(
                        f"fleet_desc_configs {self.name} {block}sparse_{key}",
                        f"fleet_desc_configs {self.name}: {block}sparse_{key} has no effect: {accessor} "
                        "reads " + " and ".join(f"{one}sparse_{key}" for one in dict.fromkeys(blocks)),
                    )

    def _rule(self, block):
        key = block + "sparse_optimizer"
        name = self.fields.get(key, "adagrad")
        if name not in _OPTIMIZERS:
            self.refuse(key, "no table has this rule", f"use one of {', '.join(_OPTIMIZERS)}")
        kind, group = _RULES[_OPTIMIZERS[name]]
        rule = self.rule(kind, group, block, "sparse_")
        if group == "adam":
            rule.epsilon = self.number("sparse_ada_epsilon", 1e-8)
        return rule


def _number_of(optimizer, group, field, default):
    """What a rule has for a field that a script does not give: the optimizer's, but with Adagrad's rules."""
    if group != "adagrad" and field == "learning_rate":
        return optimizer.get_lr()
    return optimizer.config.get(field, default) if group == optimizer.kind == "adam" else default


def _accessor_reason(name):
    if "Double" in str(name):
        return "statistics are float32"
    if "Dymf" in str(name):
        return "all rows of a table have the same width"
    return "there is no such accessor"
