"""What scripts say about sparse tables, and the tables that come of it, as the servers describe them."""

import pytest

HEAD = """
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed import CountFilterEntry, ProbabilityEntry, ShowClickEntry
paddle.enable_static()
paddle.seed(7)
fleet.init(is_collective=True)
strategy = fleet.DistributedStrategy()
def table(width=4, optimizer=None, initializer=None, **arguments):
    ids = paddle.static.data("ids", [None, 1], "int64")
    for name in ("show", "click"):
        paddle.static.data(name, [None, 1], "int64")
    attr = paddle.ParamAttr(name="rows", initializer=initializer or paddle.nn.initializer.Constant(0.5))
    rows = paddle.static.nn.sparse_embedding(ids, [10, width], param_attr=attr, **arguments)
    loss = paddle.mean(rows)
    fleet.distributed_optimizer(optimizer or paddle.optimizer.SGD(0.25), strategy).minimize(loss)
    return str(loss.program.training.plan.entries()[0].table)
"""

ROWS = "sparse table 0 'rows' of width 4, "
SGD = ROWS + "sgd(learning_rate=0.25), constant(0.5)"


@pytest.mark.parametrize("arguments, expected", [
    ("", SGD),
    ("entry=CountFilterEntry(0)", SGD),
    ("entry=CountFilterEntry(3)", SGD + ", admitted by count(threshold=3)"),
    ("entry=CountFilterEntry(3, bloom=True)", SGD + ", admitted by count_bloom(threshold=3)"),
    ("entry=ProbabilityEntry(0.25)", SGD + ", admitted by probability(probability=0.25, seed=7)"),
    ("entry=ShowClickEntry('show', 'click')", SGD + ", accessor sparse"),
    ("table_class='SSDSparseTable'", SGD + ", on disk"),
    ("table_class='SSDSparseTable', entry=CountFilterEntry(2)",
     SGD + ", admitted by count(threshold=2), on disk"),
    ("optimizer=paddle.optimizer.Momentum(0.5, 0.8, use_nesterov=True)",
     ROWS + "momentum(learning_rate=0.5, momentum=0.8, nesterov=1), constant(0.5)"),
    ("optimizer=paddle.optimizer.Ftrl(0.5, l1=0.25, l2=0.125)",
     ROWS +
     "ftrl(learning_rate=0.5, l1=0.25, l2=0.125, learning_rate_power=-0.5, "
     "initial_accumulator=0), constant(0.5)"),
    # Bounds by the declared shape [10, 4]: sqrt(6 / 14), sqrt(2 / 14), sqrt(3) * sqrt(2 / 10), 1 / sqrt(10).
    ("initializer=paddle.nn.initializer.XavierUniform()",
     "uniform(-0.6546536707079771, 0.6546536707079771, seed=7)"),
    ("initializer=paddle.nn.initializer.XavierNormal()", "normal(0, 0.3779644730092272, seed=7)"),
    ("initializer=paddle.nn.initializer.KaimingUniform()",
     "uniform(-0.7745966692414833, 0.7745966692414833, seed=7)"),
    ("initializer=paddle.nn.initializer.KaimingNormal(nonlinearity='linear')",
     "normal(0, 0.31622776601683794, seed=7)"),
    ("initializer=paddle.nn.initializer.TruncatedNormal(0.5, 2.0)", "truncated_normal(0.5, 2, seed=7)"),
])
def test_an_embedding_says_what_its_table_is(run, arguments, expected):
    done = run(HEAD + f"print(table({arguments}))")
    assert done.stdout == (expected if expected.startswith(ROWS)
                           else f"{ROWS}sgd(learning_rate=0.25), {expected}") + "\n"


def test_a_ctr_accessor_keeps_show_and_click_out_of_the_trained_columns(run):
    done = run(HEAD + """
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.accessor_class": "CtrCommonAccessor",
    "table_parameters.rows.accessor.fea_dim": 11,
    "table_parameters.rows.accessor.embedx_dim": 8,
    "table_parameters.rows.accessor.embedx_threshold": 2.5,
    "table_parameters.rows.accessor.ctr_accessor_param.nonclk_coeff": 0.25,
    "table_parameters.rows.accessor.ctr_accessor_param.show_scale": False,
    "table_parameters.rows.accessor.embed_sgd_param.name": "SparseAdaGradSGDRule",
    "table_parameters.rows.accessor.embed_sgd_param.adagrad.learning_rate": 0.5,
    "table_parameters.rows.accessor.embedx_sgd_param.name": "SparseNaiveSGDRule",
    "table_parameters.rows.accessor.embedx_sgd_param.naive.initial_range": 0.01,
    "table_parameters.rows.accessor.embedx_sgd_param.naive.weight_bounds": [-1.0, 2.0]}}
print(table(11, entry=ShowClickEntry("show", "click"), slot=5))
""")
    assert done.stdout.strip() == (
        "sparse table 0 'rows' of width 9, sgd(learning_rate=0.25, low=-1, high=2), uniform(-0.01, "
        "0.01, seed=7), accessor ctr(nonclk_coeff=0.25, embedx_threshold=2.5, show_scale=0), first column "
        "shared_adagrad(learning_rate=0.5, initial_accumulator=3, low=-10, high=10)")


# As Paddle 2.6.2 describes its tables; but of column 0 it takes SparseAdamSGDRule for any optimizer.
@pytest.mark.parametrize("optimizer, blocks, rule, first", [
    ("SGD(0.25)", {"embedx": "SparseNaiveSGDRule"}, "sgd(learning_rate=0.25, low=-10, high=10)",
     "sgd(learning_rate=0.25)"),
    ("SGD(0.25)", {"embed": "SparseAdaGradSGDRule", "embedx": "SparseSharedAdamSGDRule"},
     "shared_adam(learning_rate=0.25, beta1=0.9, beta2=0.999, epsilon=1e-08, low=-10, high=10)",
     "shared_adagrad(learning_rate=0.05, initial_accumulator=3, low=-10, high=10)"),
    ("Adam(0.25, beta1=0.5)", {"embed": "SparseAdamSGDRule"},
     "adam(learning_rate=0.25, beta1=0.5, beta2=0.999, epsilon=1e-08)",
     "pow_adam(learning_rate=0.25, beta1=0.5, beta2=0.999, epsilon=1e-08, low=-10, high=10)"),
])
def test_what_a_rule_does_not_say_is_the_optimizers(run, optimizer, blocks, rule, first):
    done = run(HEAD + f"""
prefix = "table_parameters.rows.accessor."
strategy.sparse_table_configs = {{"rows": {{f"{{prefix}}{{block}}_sgd_param.name": name
                                         for block, name in {blocks}.items()}}}}
print(table(optimizer=paddle.optimizer.{optimizer}))
""")
    assert done.stdout.strip() == f"{ROWS}{rule}, constant(0.5), accessor sparse, first column {first}"


def test_a_table_that_is_only_configured_has_the_scripts_rule_and_first_values(run):
    done = run(HEAD + """
strategy.sparse_table_configs = {"rows": {"table_parameters.rows.accessor.ctr_accessor_param.delete_threshold": 0.5,
                                          "table_parameters.rows.table_class": "SSDSparseTable"}}
print(table())
""")
    assert done.stdout.strip() == SGD + ", accessor sparse(delete_threshold=0.5), on disk"


def test_a_description_has_the_defaults_of_its_interface(run):
    done = run(HEAD + """
strategy.fleet_desc_configs = {"use_cvm": False, "rows": {"sparse_optimizer": "adam", "sparse_embedx_dim": 3}}
assert strategy.fleet_desc_configs["rows"]["sparse_optimizer"] == "adam"
print(table())
""")
    adam = "pow_adam(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, low=-10, high=10)"
    assert done.stdout.strip() == (
        f"{ROWS}{adam}, uniform(-1e-04, 1e-04, seed=7), accessor sparse(embedx_threshold=10, "
        "base_threshold=1.5, delta_threshold=0.25, show_click_decay_rate=0.98, "
        "delete_threshold=0.8, zero_init=1), "
        f"first column {adam}")


def test_what_an_accessor_does_not_read_of_a_description_is_said_once(run):
    done = run(HEAD + """
strategy.fleet_desc_configs = {"use_cvm": False, "rows": {
    "sparse_accessor_class": "DownpourSparseValueAccessor", "sparse_learning_rate": 0.1,
    "embedx_sparse_optimizer": "naive"}}
described = table()
assert "first column shared_adagrad(learning_rate=0.05," in described and "sgd(learning_rate=0.05," in described
strategy.fleet_desc_configs = {"rows": {"embed_sparse_optimizer": "adam"}}
""")
    assert done.stderr.splitlines() == [
        "fleetrun: warning: fleet_desc_configs rows: sparse_learning_rate has no effect: "
        "DownpourSparseValueAccessor reads embed_sparse_learning_rate and embedx_sparse_learning_rate",
        "fleetrun: warning: fleet_desc_configs rows: embed_sparse_optimizer has no effect: "
        "DownpourCtrAccessor reads sparse_optimizer",
    ]


def test_a_strategy_takes_what_means_nothing_here_at_its_default(run):
    run(HEAD + """
strategy.trainer_desc_configs = {"dump_fields_path": "", "dump_fields": [], "trainer": "MultiTrainer", "stat_var_names": None}
strategy.adam_d2sum = False
assert strategy.trainer_desc_configs["trainer"] == "MultiTrainer" and strategy.adam_d2sum is False
""")


def test_rows_in_this_process_are_trained_by_one_program(run):
    done = run(HEAD + """
start = paddle.static.Program()
def trained(rate):
    main = paddle.static.Program()
    with paddle.static.program_guard(main, start):
        ids = paddle.static.data("i", [None, 1], "int64")
        loss = paddle.mean(paddle.static.nn.sparse_embedding(ids, [9, 2], param_attr=paddle.ParamAttr("shared")))
        paddle.optimizer.SGD(rate).minimize(loss)
    return main
one, other = trained(0.1), trained(0.2)
exe = paddle.static.Executor()
exe.run(start)
for program in (one, one, other):
    try:
        exe.run(program, feed={"i": [[1], [2]]})
    except paddle.Error as error:
        print(error.what)
""")
    assert done.stdout.splitlines() == [
        "two programs train the sparse_embedding shared: its rows lie in one of them"]


def test_what_paddle_only_keeps_is_kept_and_said_once(run):
    done = run(HEAD + """
print(repr(str(strategy.fs_client_param)), strategy.recompute, strategy.sharding_configs)
for times in range(2):
    strategy.fs_client_param = {"uri": "hdfs://host:1", "user": "u", "passwd": "secret", "hadoop_bin": None}
    strategy.trainer_desc_configs = {"dump_fields_path": "dumped", "dump_fields": ["loss"], "stat_var_names": ["auc"]}
    strategy.recompute = True
    strategy.sharding_configs = {"sharding_degree": 2}
    strategy.conv_workspace_size_limit = 1024
    strategy.gradient_scale_configs = {"scale_strategy": "sum"}
print(str(strategy.fs_client_param), strategy.fs_client_param.passwd, strategy.recompute, strategy.sharding_configs)
program = paddle.static.default_main_program()
table()
options = program._fleet_opt
print([options[key] for key in ("mpi_size", "mpi_rank", "dump_fields_path", "dump_fields", "dump_param")])
options.clear()
options.update(dump_fields=["rows"], dump_param=[])
options["dump_fields"] = ["rows", "loss"]
options["stat_var_names"] = ["auc"]
print(options, program.clone()._fleet_opt is options)
dataset = paddle.distributed.InMemoryDataset()
dataset._set_use_ps_gpu(False)
dataset._set_use_ps_gpu(True)
strategy.a_sync_configs = {"use_ps_gpu": 1}
paddle.base.framework.switch_main_program(paddle.static.Program())
table(entry=ShowClickEntry("shows", "click"))
""")
    assert done.stdout.splitlines() == [
        "'' False {}",
        'uri: "hdfs://host:1"',
        'user: "u"',
        " secret True {'sharding_degree': 2}",
        "[1, 0, 'dumped', ['loss'], []]",
        "{'dump_fields': ['rows', 'loss'], 'dump_param': [], 'stat_var_names': ['auc']} True",
    ]
    assert done.stderr.splitlines() == [
        'fleetrun: warning: DistributedStrategy.fs_client_param uri="hdfs://host:1" has no effect: '
        "servers save to their own disks",
        "fleetrun: warning: trainer_desc_configs dump_fields_path='dumped' has no effect: nothing is "
        "dumped; fetch_list shows values",
        "fleetrun: warning: DistributedStrategy.recompute = True has no effect",
        "fleetrun: warning: DistributedStrategy.conv_workspace_size_limit = 1024 has no effect",
        "fleetrun: warning: DistributedStrategy.gradient_scale_configs has no effect: gradients are averaged "
        "over trainers, as in Paddle",
        "fleetrun: warning: Program._fleet_opt['dump_fields'] = ['rows'] has no effect; "
        "fetch_list shows values",
        "fleetrun: warning: InMemoryDataset: use_ps_gpu has no effect: tables lie in host memory",
        "fleetrun: warning: ShowClickEntry has no effect: the program has no variable 'shows'",
    ]


def test_hybrid_degrees_that_split_nothing_but_the_data_are_kept(run):
    done = run(HEAD + """
print(strategy.hybrid_configs["dp_degree"], strategy.hybrid_configs["sep_degree"])
strategy.hybrid_configs = {"dp_degree": 2, "mp_degree": 1, "order": ["dp", "mp"]}
strategy.hybrid_configs = {"sharding_degree": 2}
print(strategy.hybrid_configs["dp_degree"], strategy.hybrid_configs["sharding_degree"])
for wrong in ({"mp_degree": 2}, {"pp_degree": 4}, {"degree": 1}, 2):
    try:
        strategy.hybrid_configs = wrong
    except paddle.Error as error:
        print(error.what)
""")
    assert done.stdout.splitlines() == [
        "-1 1", "2 2",
        'DistributedStrategy.hybrid_configs["mp_degree"] = 2: a parameter lies on every trainer as a whole',
        'DistributedStrategy.hybrid_configs["pp_degree"] = 4: a program runs as a whole on every trainer',
        "fleetrun has no DistributedStrategy.hybrid_configs.degree; did you mean "
        "DistributedStrategy.hybrid_configs.pp_degree?",
        "DistributedStrategy.hybrid_configs = 2 is not a dict",
    ]
    assert done.stderr.splitlines() == [
        'fleetrun: warning: DistributedStrategy.hybrid_configs["sharding_degree"] = 2 has no effect: every '
        "trainer keeps all parameters, and averages with all others"]


@pytest.mark.parametrize("optimizer, a_sync, steps, expected", [
    ("Adam(0.25)", True, 0, "adam_d2sum(learning_rate=0.25, epsilon=1e-08)"),
    ("Adam(0.25, epsilon=1e-4)", False, 0, "adam_d2sum(learning_rate=0.25, epsilon=1e-08)"),
    ("Adam(0.25)", True, 4, "adam(learning_rate=0.25, beta1=0.9, beta2=0.999, epsilon=1e-08)"),
    ("SGD(0.25)", True, 0, "sgd(learning_rate=0.25)"),
])
def test_adam_d2sum_is_for_adams_dense_tables(run, optimizer, a_sync, steps, expected):
    done = run(f"""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=1, path="here",
                                      server_endpoints=["127.0.0.1:1"]))
strategy = fleet.DistributedStrategy()
strategy.a_sync, strategy.a_sync_configs, strategy.adam_d2sum = {a_sync}, {{"k_steps": {steps}}}, True
ids = paddle.static.data("ids", [None, 1], "int64")
rows = paddle.static.nn.embedding(ids, [10, 1], is_sparse=True)
w = paddle.create_parameter([1], "float32")
loss = paddle.mean(rows * w)
fleet.distributed_optimizer(paddle.optimizer.{optimizer}, strategy).minimize(loss)
for entry in loss.program.training.plan.entries():
    if not entry.table.sparse:
        print(entry.table)
""")
    assert done.stdout == f"dense table 0 'create_parameter_0.w_0' of width 1, {expected}\n"
    told = ["fleetrun: warning: UserDefinedRoleMaker(path='here') has no effect: it reads current_id, role, "
            "worker_num, worker_endpoints and server_endpoints"]
    if "SGD" in optimizer:
        told.append(
            "fleetrun: warning: DistributedStrategy.adam_d2sum has no effect with SGD: it is Adam's rule")
    assert done.stderr.splitlines() == told


NAMED = "paddle.static.nn.sparse_embedding"


@pytest.mark.parametrize("code, told", [
    ("table(entry=3)", f"{NAMED}(entry=3) is not an entry"),
    ("table(table_class='HashTable')", f'{NAMED}(table_class="HashTable") is not known'),
    ("table(table_class='MemorySparseGeoTable')",
     'parameter rows: table_class="MemorySparseGeoTable" in async mode'),
    ("table(slot=70000)", f"{NAMED}(slot=70000)"),
    ("table(entry=CountFilterEntry(2)); table(entry=CountFilterEntry(3))",
     "parameter rows is looked up with"),
    ("table(initializer=paddle.nn.initializer.Assign([[0.0] * 4] * 10))",
     "which a table cannot do row by row"),
    ("CountFilterEntry(-1)", "count_filter must be a valid integer greater or equal than 0"),
    ("ProbabilityEntry(1)", "probability must be a float in (0,1)"),
    ("ShowClickEntry('show', 1)", "show_name click_name must be a str"),
    ("strategy.sparse_table_configs = {'rows': {'table_parameters.rows.acessor.fea_dim': 3}}",
     "sparse_table_configs rows.acessor.fea_dim; did you mean sparse_table_configs rows.accessor.fea_dim?"),
    ("strategy.sparse_table_configs = {'rows': {'accessor.fea_dim': 3}}",
     "does not begin with table_parameters.rows."),
    ("strategy.sparse_table_configs = {'rows': {'table_parameters.rows.accessor.accessor_class': "
     "'CtrDoubleAccessor'}}",
     "statistics are float32"),
    ("strategy.fleet_desc_configs = {'rows': {'sparse_accessor_class': 'DownpourCtrDymfAccessor'}}",
     "all rows of a table have the same width"),
    ("strategy.fleet_desc_configs = {'rows': {'sparse_optimizer': 'adagrad_v2'}}", "no table has this rule"),
    ("strategy.fleet_desc_configs = {'rows': {'sparse_learning_rate': '0.1'}}", "it is a number"),
    ("strategy.fleet_desc_configs = {'dense_table': {}}",
     "dense parameters are trained by the script's optimizer"),
    ("strategy.fleet_desc_configs = {'rows': {'sparse_embedx_dim': 8}}; table(4)",
     "rows has rows of 4 floats"),
    ("strategy.trainer_desc_configs = {'local_sparse': ['rows']}", "every table lies on the servers"),
    ("strategy.trainer_desc_configs = {'dump_field': []}",
     "did you mean DistributedStrategy.trainer_desc_configs.dump_fields?"),
    ("strategy.adam_d2sum = 1", "DistributedStrategy.adam_d2sum = 1 is not True or False"),
    ("strategy.gradient_merge_configs = {'k_steps': 0}", "gradient_merge_configs k_steps = 0"),
    ("strategy.pipeline = True", "a program runs as a whole on every trainer"),
    ("strategy.lars_configs = 1", "DistributedStrategy.lars_configs = 1 is not a dict"),
    ("strategy.fs_client_param = {'url': 'here'}",
     "did you mean DistributedStrategy.fs_client_param.uri?"),
    ("strategy.fleet_desc_configs = {'other': {}}; table(4)",
     "a table is configured for 'other', which no sparse_embedding"),
    ("strategy.fleet_desc_configs = {'rows': {}}; table(2)",
     "its accessor puts show and click before the values"),
])
def test_what_no_table_does_is_refused_by_name(run, code, told):
    done = run(HEAD + f"""
try:
    {code}
except (paddle.Error, ValueError) as error:
    print(error)
""")
    assert told in done.stdout, done.stdout


def test_which_rows_decay_is_said_once_for_each_table(run):
    """On servers and in one process; not of dense parameters, and not where a strategy chooses the rule."""
    told = run(HEAD + """
rule = {"rows": {"table_parameters.rows.accessor.embedx_sgd_param.name": "SparseNaiveSGDRule"}}
for decay, chosen in ((paddle.regularizer.L2Decay(0.25), {}), (0.0, {}), (paddle.regularizer.L1Decay(0.5), rule)):
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        strategy.sparse_table_configs = chosen
        table(optimizer=paddle.optimizer.SGD(0.25, weight_decay=decay))
""").stderr.splitlines()
    assert [line for line in told if "decay" in line] == [
        "fleetrun: warning: rows of table rows decay by L2Decay(0.25) in steps whose batches have them; "
        "Paddle 1.8 lets all rows decay in each step"]


def test_a_table_that_is_configured_and_not_in_the_program_is_named(run):
    done = run(HEAD + """
strategy.sparse_table_configs = {"other": {"table_parameters.other.accessor.embedx_dim": 3}}
try:
    table()
except paddle.Error as error:
    print(error.what)
""")
    assert done.stdout.strip() == "a table is configured for 'other', which no sparse_embedding looks up"
