# Written by scripts/python-stubs.
"""The engine, the dataset readers, the parameter server and collectives. Used by the Python files beside it."""
import datetime
import typing
from typing import Any
import numpy
class Tensor():
    """Values of the engine: numpy.asarray() takes them without a copy, float32, float64, int32, int64 or bool."""
    @property
    def offsets(self) -> list[int]:
        """Where each example begins, and the last one ends; [] for one value per example."""
class Variable():
    """A variable of a Program, as it was when it was asked for."""
    @property
    def is_data(self) -> bool: ...
    @property
    def lod_level(self) -> int:
        """1 for a slot with any number of values per example, else 0."""
    @property
    def name(self) -> str: ...
    @property
    def persistable(self) -> bool: ...
    @property
    def shape(self) -> list[int]:
        """Sizes; -1 for one that is known only when the program runs."""
    @property
    def stop_gradient(self) -> bool: ...
    @property
    def trainable(self) -> bool: ...
    @property
    def type(self) -> str: ...
class Operator():
    """An operator of a Program. where: the line of the script that appended it."""
    def all_attrs(self) -> dict[str, typing.Union[bool, int, float, str, list[int], list[float], list[str]]]:
        """Paddle's name for attributes."""
    def attr(self, name: str) -> typing.Union[bool, int, float, str, list[int], list[float], list[str]]:
        """An attribute. Throws: IndexError where there is none."""
    @property
    def attr_names(self) -> list[str]:
        """The names of the attributes."""
    @property
    def attributes(self) -> dict[str, typing.Union[bool, int, float, str, list[int], list[float], list[str]]]: ...
    def has_attr(self, name: str) -> bool:
        """Whether there is an attribute of this name."""
    @property
    def input_arg_names(self) -> list[str]:
        """Paddle's name for inputs."""
    @property
    def inputs(self) -> list[str]: ...
    @property
    def output_arg_names(self) -> list[str]:
        """Paddle's name for outputs."""
    @property
    def outputs(self) -> list[str]: ...
    @property
    def type(self) -> str: ...
    @property
    def where(self) -> str: ...
class Program():
    """Variables and operators in order."""
    def __init__(self) -> None: ...
    def add_variable(self, name: str, type: str, shape: list[int], lod_level: int = 0, persistable: bool = False, trainable: bool = False, stop_gradient: bool = True, is_data: bool = False) -> None:
        """Adds a variable. Throws: Error(config) for an unknown type, or a name that another variable has."""
    def append(self, type: str, inputs: list[str], outputs: list[str], attributes: dict[str, typing.Union[bool, int, float, str, list[int], list[float], list[str]]], where: str = '') -> None:
        """Appends an operator; outputs that are not there are made, with their shapes. Throws: Error(config) naming the operator, its line and what disagrees."""
    def clone_for_test(self) -> Program:
        """A copy without gradients and updates, and without dropout."""
    def copy(self) -> Program:
        """Another program that is equal."""
    def has_operator(self, type: str) -> bool:
        """Whether there is an operator of this type."""
    def has_variable(self, name: str) -> bool:
        """Whether there is a variable of this name."""
    def infer_again(self) -> None:
        """Infers types and shapes of all operators once more. Throws: Error(config) of one that cannot take its inputs."""
    def move_last(self, count: int, to: int) -> None:
        """Puts the last `count` operators before the one of index `to`."""
    def operator_count(self) -> int:
        """How many operators."""
    def operators(self) -> list[Operator]:
        """Copies of all operators, in order."""
    @property
    def random_seed(self) -> int: ...
    @random_seed.setter
    def random_seed(self, value: int) -> None: ...
    def set_persistable(self, name: str, keep: bool) -> None:
        """Says whether a variable is kept from run to run. Throws: Error(config) for an unknown one."""
    def set_shape(self, name: str, shape: list[int]) -> None:
        """Gives a variable another shape, -1 for every size. Throws: Error(config) for an unknown one."""
    def set_stop_gradient(self, name: str, stop: bool) -> None:
        """Says whether gradients end at a variable. Throws: Error(config) for an unknown one."""
    def set_trainable(self, name: str, trainable: bool) -> None:
        """Says whether optimizers update a parameter. Throws: Error(config) for an unknown one."""
    def set_type(self, name: str, type: str) -> None:
        """Gives a variable another type. Throws: Error(config) for an unknown one."""
    def take_as_input(self, name: str) -> None:
        """From now on the variable of this name is fed. Throws: Error(config) naming the nearest one."""
    def to_dot(self) -> str:
        """The program for graphviz."""
    def to_words(self) -> list[str]:
        """The program as the body of a loop."""
    def variable(self, name: str) -> Variable:
        """The variable of this name. Throws: Error(config) naming the nearest one."""
    def variable_names(self) -> list[str]:
        """The names of all variables, sorted."""
class Scope():
    """Values by name."""
    def __init__(self) -> None: ...
    def has(self, name: str) -> bool:
        """Whether there is a value of this name."""
    def make(self, name: str) -> None:
        """Makes an empty value where there is none."""
    def names(self) -> list[str]:
        """The names of all values, sorted."""
    def set_value(self, name: str, value: numpy.ndarray) -> None:
        """Copies a C-contiguous array in; shape and type become the array's. Throws: Error(config) for a type that the engine does not have."""
    def value(self, name: str) -> Tensor:
        """A copy of the value. Throws: Error(config) where there is none."""
def keep_function(Any: Any) -> int:
    """Keeps a function for operators that call it, until the process ends. Returns its number."""
class Executor():
    """Runs a program without tables over a scope."""
    def __init__(self, program: Program, scope: Scope) -> None: ...
    def run(self, feed: dict[str, Any]) -> None:
        """One run with {name: array}; an object with lod_offsets is a slot. Throws: Error(config) naming an input that is missing or disagrees with its variable."""
    def value(self, name: str) -> Tensor:
        """A copy of a variable's value after the last run."""
class FileQueue():
    """Files that trainers share."""
    def next(self) -> typing.Optional[str]:
        """The next file, done when next() is called again; None when all are done. Throws: Error(host)."""
def shared_file_queue(files: list[str], claims: str, owner: int = 0) -> FileQueue:
    """The queue of these files whose claims lie at the path `claims`. owner: not 0, another process of which goes on with the file that it had. Throws: Error(host)."""
class UpdateRule():
    """How a gradient changes a row: ps/table_config.h says which rule has what."""
    def __init__(self) -> None: ...
    @property
    def beta1(self) -> float: ...
    @beta1.setter
    def beta1(self, value: float) -> None: ...
    @property
    def beta2(self) -> float: ...
    @beta2.setter
    def beta2(self, value: float) -> None: ...
    @property
    def epsilon(self) -> float: ...
    @epsilon.setter
    def epsilon(self, value: float) -> None: ...
    @property
    def high(self) -> float: ...
    @high.setter
    def high(self, value: float) -> None: ...
    @property
    def initial_accumulator(self) -> float: ...
    @initial_accumulator.setter
    def initial_accumulator(self, value: float) -> None: ...
    @property
    def kind(self) -> str: ...
    @kind.setter
    def kind(self, value: str) -> None: ...
    @property
    def learning_rate(self) -> float: ...
    @learning_rate.setter
    def learning_rate(self, value: float) -> None: ...
    @property
    def low(self) -> float: ...
    @low.setter
    def low(self, value: float) -> None: ...
class Accessor():
    """What a row keeps beside its values; thresholds are scores, ages are days."""
    def __init__(self) -> None: ...
    @property
    def base_threshold(self) -> float: ...
    @base_threshold.setter
    def base_threshold(self, value: float) -> None: ...
    @property
    def click_coeff(self) -> float: ...
    @click_coeff.setter
    def click_coeff(self, value: float) -> None: ...
    @property
    def delete_after_unseen_days(self) -> float: ...
    @delete_after_unseen_days.setter
    def delete_after_unseen_days(self, value: float) -> None: ...
    @property
    def delete_threshold(self) -> float: ...
    @delete_threshold.setter
    def delete_threshold(self, value: float) -> None: ...
    @property
    def delta_keep_days(self) -> float: ...
    @delta_keep_days.setter
    def delta_keep_days(self, value: float) -> None: ...
    @property
    def delta_threshold(self) -> float: ...
    @delta_threshold.setter
    def delta_threshold(self, value: float) -> None: ...
    @property
    def embed_rule(self) -> typing.Optional[UpdateRule]: ...
    @embed_rule.setter
    def embed_rule(self, value: typing.Optional[UpdateRule]) -> None: ...
    @property
    def embedx_threshold(self) -> float: ...
    @embedx_threshold.setter
    def embedx_threshold(self, value: float) -> None: ...
    @property
    def kind(self) -> str: ...
    @kind.setter
    def kind(self, value: str) -> None: ...
    @property
    def nonclk_coeff(self) -> float: ...
    @nonclk_coeff.setter
    def nonclk_coeff(self, value: float) -> None: ...
    @property
    def show_click_decay_rate(self) -> float: ...
    @show_click_decay_rate.setter
    def show_click_decay_rate(self, value: float) -> None: ...
    @property
    def show_scale(self) -> bool: ...
    @show_scale.setter
    def show_scale(self, value: bool) -> None: ...
    @property
    def ssd_unseenday_threshold(self) -> float: ...
    @ssd_unseenday_threshold.setter
    def ssd_unseenday_threshold(self, value: float) -> None: ...
    @property
    def zero_init(self) -> bool: ...
    @zero_init.setter
    def zero_init(self, value: bool) -> None: ...
class Admission():
    """When a key gets a row."""
    def __init__(self) -> None: ...
    @property
    def kind(self) -> str: ...
    @kind.setter
    def kind(self, value: str) -> None: ...
    @property
    def probability(self) -> float: ...
    @probability.setter
    def probability(self, value: float) -> None: ...
    @property
    def threshold(self) -> int: ...
    @threshold.setter
    def threshold(self, value: int) -> None: ...
class Initializer():
    """First values of a row; a and b are value, bounds, or mean and deviation."""
    def __init__(self) -> None: ...
    @property
    def a(self) -> float: ...
    @a.setter
    def a(self, value: float) -> None: ...
    @property
    def b(self) -> float: ...
    @b.setter
    def b(self, value: float) -> None: ...
    @property
    def kind(self) -> str: ...
    @kind.setter
    def kind(self, value: str) -> None: ...
class TableChoice():
    """What a script says of a sparse table, before the optimizer's own rule."""
    def __init__(self) -> None: ...
    @property
    def accessor(self) -> Accessor: ...
    @accessor.setter
    def accessor(self, value: Accessor) -> None: ...
    @property
    def admission(self) -> Admission: ...
    @admission.setter
    def admission(self, value: Admission) -> None: ...
    @property
    def clicks(self) -> str: ...
    @clicks.setter
    def clicks(self, value: str) -> None: ...
    @property
    def initializer(self) -> typing.Optional[Initializer]: ...
    @initializer.setter
    def initializer(self, value: typing.Optional[Initializer]) -> None: ...
    @property
    def on_disk(self) -> bool: ...
    @on_disk.setter
    def on_disk(self, value: bool) -> None: ...
    @property
    def rule(self) -> typing.Optional[UpdateRule]: ...
    @rule.setter
    def rule(self, value: typing.Optional[UpdateRule]) -> None: ...
    @property
    def shows(self) -> str: ...
    @shows.setter
    def shows(self, value: str) -> None: ...
    @property
    def slot(self) -> int: ...
    @slot.setter
    def slot(self, value: int) -> None: ...
    @property
    def times_batch(self) -> bool: ...
    @times_batch.setter
    def times_batch(self, value: bool) -> None: ...
class TableConfig():
    """A table as servers and trainers agree on it."""
    @property
    def decays(self) -> dict[str, float]:
        """By how much its rule lets values decay, 0 where it does not."""
    @property
    def has_statistics(self) -> bool: ...
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def width(self) -> int:
        """float32 values of a row, or of a dense table in all."""
class ServerAddresses():
    """Where the servers are reached, by rank, which may change."""
    def __init__(self, endpoints: list[str]) -> None: ...
    def move(self, servers: dict[int, str]) -> None:
        """Those that are somewhere else from now on, {rank: endpoint}."""
class Client():
    """A trainer's view of all servers. Calls throw Error(network) when a server is gone."""
    def all_reduce_sum(self, values: numpy.ndarray) -> Tensor:
        """Sums over all trainers, a barrier. Shape: float64, any."""
    def barrier(self) -> None:
        """Returns when every trainer has called it."""
    @property
    def counts_epochs(self) -> bool:
        """Whether it goes on in the middle of an epoch when its process is started again."""
    def export_rows(self, directory: str, since: int = 0) -> int:
        """Saves what has changed since the export of that number; 0: all rows. The number of this one."""
    def goodbye(self) -> None:
        """This trainer is done; servers end when all are."""
    @property
    def is_catching_up(self) -> bool:
        """Whether it does again what the process before it did."""
    @property
    def is_late(self) -> bool:
        """Whether the other trainers train already."""
    def load(self, directory: str) -> str:
        """What is wrong with the newest save, "" when all is well. Throws: Error(data)."""
    @property
    def next_change(self) -> int:
        """The number of the next push, from 1."""
    def pull_dense(self, table: int, width: int) -> Tensor:
        """Shape: float32 [width]. Throws: Error(config) before the table has values."""
    def pull_rows(self, table: int, keys: list[int], width: int) -> Tensor:
        """Shape: float32 [len(keys), width]."""
    def rows(self, table: int) -> int:
        """How many rows the table has on all servers."""
    def save(self, directory: str, mode: int = 0) -> None:
        """Every server writes its tables below `directory`: 0 all rows, 1 changed ones, 2 those to serve, 3 a checkpoint. Throws: Error(host)."""
    def save_for_paddle(self, directory: str, mode: int = 0) -> None:
        """The same as Paddle 2.6.2 reads it; for one server."""
    def set_dense(self, table: int, values: numpy.ndarray) -> None:
        """First values of a dense table. Shape: float32 [width]."""
    def set_epoch(self, epoch: int) -> None:
        """The number of the world that the job has now."""
    def set_rate(self, rate: float) -> None:
        """What pushes from now on multiply scheduled rates by."""
    def shrink(self, table: int) -> int:
        """Ends a day; how many rows went."""
    def skip_steps(self, steps: int) -> int:
        """Takes up to so many steps as done; how many were."""
def connect(endpoints: list[str], trainer: int, trainers: int, mode: str, tables: list[TableConfig], epoch: int = 0, launcher: str = '', exchange: list[int] = ..., identity: int = 0, counts_epochs: bool = False, addresses: ServerAddresses | None = None) -> Client:
    """A Client of servers by rank; of `addresses`, where those may change. exchange: geo_steps, merged, waiting, max_ahead of ps::TrainerMode. counts_epochs: as ps::ClientOptions. Throws: Error(network) naming those that do not answer, Error(config) when the tables of both sides disagree."""
def make_in_process(mode: str, tables: list[TableConfig]) -> Client:
    """A Client whose one server is in this process."""
class RpcServer():
    """The parameter server of this process, or those that it serves now."""
    def __init__(self, rank: int, servers: int, trainers: int, mode: str, tables: list[TableConfig], endpoint: str, epoch: int = 0, listens: bool = True, addresses: ServerAddresses | None = None) -> None:
        """Binds `endpoint` and serves from then on, or from listen() on. Throws: Error(network) for a port that is taken, Error(config)."""
    @property
    def endpoint(self) -> str:
        """HOST:PORT that was bound."""
    def listen(self) -> None:
        """Lets trainers in; once, where it does not listen yet."""
    def load(self, directory: str, only: list[str] = ...) -> str:
        """As Client.load(), for this server alone; only: the rows of these tables."""
    def stale_requests(self) -> int:
        """Requests of trainers that were lost, refused so far."""
    def stat(self) -> str:
        """What it has done so far, as JSON."""
    def stop(self) -> None:
        """Ends wait()."""
    def update(self, epoch: int, in_place: bool, trainers: dict[int, str], servers: dict[int, str]) -> None:
        """Tells of the trainers that there are now, {rank: id}, and where the servers are, {rank: endpoint}. Returns once a server that is to be served here is."""
    def wait(self) -> None:
        """Serves until all trainers have said goodbye, or stop()."""
def table_config(id: int, name: str, sparse: bool, width: int, rule: dict, initializer: dict, accessor: dict, admission: dict, min_block: int, on_disk: bool, expire_seconds: int) -> TableConfig:
    """A TableConfig of dictionaries. Throws: Error(config) naming a key that there is not, or a value that cannot be."""
def pulled_width(table: TableConfig) -> int:
    """float32 values that a pull gives for a key."""
def check_tables(tables: list[TableConfig]) -> None:
    """Throws: Error(config) for tables that cannot be."""
def saved_values(directory: str) -> dict:
    """What servers saved: {table: values of a dense one, (keys, rows) of a sparse one}. Throws: Error(data)."""
def ps_push(client: Client, table: int, keys: numpy.ndarray, gradients: numpy.ndarray, shows: typing.Optional[numpy.ndarray], clicks: typing.Optional[numpy.ndarray], slot: int, thread: int) -> None:
    """Shape: keys uint64 [n], gradients float32 [n * width], shows and clicks float32 [n] or None. Throws: Error(data) for gradients that are NaN or infinite; nothing is applied then."""
def ps_pull_many(client: Client, tables: list[tuple[int, numpy.ndarray, int]], create: bool) -> list[Tensor]:
    """Rows of each of `tables`, in one request. tables: (table, keys, width) each. Shape: keys uint64 [n] -> float32 [n, width]; create=False makes no rows."""
def ps_distinct(keys: numpy.ndarray, sizes: list[int]) -> tuple:
    """(distinct keys, places, counts) of runs of keys, one after the other. Shape: keys uint64 [sum of sizes] -> int64 [sum of counts], each run's in order of first appearance, and int64 [sum of sizes], where a position's key is among those of its run."""
def ps_push_many(client: Client, tables: list[tuple[int, numpy.ndarray, numpy.ndarray]], thread: int) -> None:
    """ps_push of several tables as one change. tables: (table, keys, gradients) each. Throws: as ps_push."""
def ps_assign(client: Client, table: int, keys: numpy.ndarray, rows: numpy.ndarray) -> None:
    """Shape: keys uint64 [n], each once, rows float32 [n * width]. Throws: Error(config) for a key that is there twice, Error(data) for values that are NaN or infinite."""
def ps_push_dense(client: Client, table: int, gradients: numpy.ndarray, thread: int) -> None:
    """Shape: float32 [width]. Throws: as ps_push."""
def ps_get(client: Client, table: int, keys: numpy.ndarray) -> tuple:
    """(found, values, statistics) of rows as they are stored. Shape: keys uint64 [n] -> found bool [n], values float32 [n, width], statistics n times (slot, unseen days, delta score, show, click) or []."""
def ps_shrink(client: Client, table: int) -> int:
    """Ends a day; how many rows went."""
def ps_stat(client: Client) -> list[str]:
    """What each server has done, as JSON, by rank."""
def ps_save(client: Client, directory: str, mode: int) -> None:
    """Client.save(). Throws: Error(config) for another mode, Error(host)."""
def ps_load(client: Client, directory: str) -> str:
    """What is wrong with the newest save, "" when all is well. Throws: Error(data)."""
def ps_begin_pass(client: Client, threads: int) -> None:
    """Mode sync: a pass of threads 0 … threads - 1 of every trainer."""
def ps_leave_pass(client: Client, thread: int) -> None:
    """Mode sync: this thread pushes no more in the pass."""
class DatasetOptions():
    """What is read, and how: files, pipe, slots. pipe_timeout: a timedelta, or seconds; 0 for none."""
    def __init__(self) -> None: ...
    @property
    def allows_no_files(self) -> bool: ...
    @allows_no_files.setter
    def allows_no_files(self, value: bool) -> None: ...
    @property
    def bad_line(self) -> Any: ...
    @bad_line.setter
    def bad_line(self, value: Any) -> None: ...
    @property
    def batch_size(self) -> int: ...
    @batch_size.setter
    def batch_size(self, value: int) -> None: ...
    @property
    def download_command(self) -> Any: ...
    @download_command.setter
    def download_command(self, value: Any) -> None: ...
    @property
    def drop_last(self) -> bool: ...
    @drop_last.setter
    def drop_last(self, value: bool) -> None: ...
    @property
    def files(self) -> list[str]: ...
    @files.setter
    def files(self, value: list[str]) -> None: ...
    @property
    def fs_name(self) -> Any: ...
    @fs_name.setter
    def fs_name(self, value: Any) -> None: ...
    @property
    def fs_ugi(self) -> Any: ...
    @fs_ugi.setter
    def fs_ugi(self, value: Any) -> None: ...
    @property
    def parse_content(self) -> bool: ...
    @parse_content.setter
    def parse_content(self, value: bool) -> None: ...
    @property
    def parse_ins_id(self) -> bool: ...
    @parse_ins_id.setter
    def parse_ins_id(self, value: bool) -> None: ...
    @property
    def parse_logkey(self) -> bool: ...
    @parse_logkey.setter
    def parse_logkey(self, value: bool) -> None: ...
    @property
    def pipe_argv(self) -> list[str]: ...
    @pipe_argv.setter
    def pipe_argv(self, value: list[str]) -> None: ...
    @property
    def pipe_command(self) -> str: ...
    @pipe_command.setter
    def pipe_command(self, value: str) -> None: ...
    @property
    def pipe_timeout(self) -> datetime.timedelta: ...
    @pipe_timeout.setter
    def pipe_timeout(self, value: datetime.timedelta) -> None: ...
    @property
    def schema(self) -> str: ...
    @schema.setter
    def schema(self, value: str) -> None: ...
    @property
    def slots(self) -> Any: ...
    @slots.setter
    def slots(self, value: Any) -> None: ...
    @property
    def starts_next_pass(self) -> bool: ...
    @starts_next_pass.setter
    def starts_next_pass(self, value: bool) -> None: ...
    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, value: int) -> None: ...
class BadLineReport():
    """The lines of a pass that were left out: how many, and where the first were."""
    @property
    def count(self) -> int: ...
    @property
    def places(self) -> list[str]: ...
class BatchSource():
    """What gives batches to passes."""
class QueueDataset(BatchSource):
    """Batches of text files that go through a pipe command."""
    def __init__(self, options: DatasetOptions) -> None:
        """Throws: Error(config), Error(data) for a file that is missing."""
    def bad_lines(self) -> BadLineReport:
        """Those of the last pass."""
class OptimizerConfig():
    """OptimizerConfig"""
    class Clip():
        by_value: typing.ClassVar[OptimizerConfig.Clip]
        by_norm: typing.ClassVar[OptimizerConfig.Clip]
        by_global_norm: typing.ClassVar[OptimizerConfig.Clip]
    class Kind():
        sgd: typing.ClassVar[OptimizerConfig.Kind]
        adagrad: typing.ClassVar[OptimizerConfig.Kind]
        adam: typing.ClassVar[OptimizerConfig.Kind]
        momentum: typing.ClassVar[OptimizerConfig.Kind]
        ftrl: typing.ClassVar[OptimizerConfig.Kind]
        rmsprop: typing.ClassVar[OptimizerConfig.Kind]
        adamax: typing.ClassVar[OptimizerConfig.Kind]
        adadelta: typing.ClassVar[OptimizerConfig.Kind]
        lamb: typing.ClassVar[OptimizerConfig.Kind]
        lars_momentum: typing.ClassVar[OptimizerConfig.Kind]
        decayed_adagrad: typing.ClassVar[OptimizerConfig.Kind]
    def __init__(self) -> None: ...
    @property
    def adam_d2sum(self) -> bool: ...
    @adam_d2sum.setter
    def adam_d2sum(self, value: bool) -> None: ...
    @property
    def always_adapts(self) -> bool: ...
    @always_adapts.setter
    def always_adapts(self, value: bool) -> None: ...
    @property
    def beta1(self) -> float: ...
    @beta1.setter
    def beta1(self, value: float) -> None: ...
    @property
    def beta2(self) -> float: ...
    @beta2.setter
    def beta2(self, value: float) -> None: ...
    @property
    def centered(self) -> bool: ...
    @centered.setter
    def centered(self, value: bool) -> None: ...
    @property
    def clip(self) -> float: ...
    @clip.setter
    def clip(self, value: float) -> None: ...
    @property
    def clip_kind(self) -> OptimizerConfig.Clip: ...
    @clip_kind.setter
    def clip_kind(self, value: OptimizerConfig.Clip) -> None: ...
    @property
    def clip_least(self) -> float: ...
    @clip_least.setter
    def clip_least(self, value: float) -> None: ...
    @property
    def clips_means(self) -> bool: ...
    @clips_means.setter
    def clips_means(self, value: bool) -> None: ...
    @property
    def epsilon(self) -> float: ...
    @epsilon.setter
    def epsilon(self, value: float) -> None: ...
    @property
    def initial_accumulator(self) -> float: ...
    @initial_accumulator.setter
    def initial_accumulator(self, value: float) -> None: ...
    @property
    def kind(self) -> OptimizerConfig.Kind: ...
    @kind.setter
    def kind(self, value: OptimizerConfig.Kind) -> None: ...
    @property
    def l1(self) -> float: ...
    @l1.setter
    def l1(self, value: float) -> None: ...
    @property
    def l1_decay(self) -> float: ...
    @l1_decay.setter
    def l1_decay(self, value: float) -> None: ...
    @property
    def l2(self) -> float: ...
    @l2.setter
    def l2(self, value: float) -> None: ...
    @property
    def l2_decay(self) -> float: ...
    @l2_decay.setter
    def l2_decay(self, value: float) -> None: ...
    @property
    def lars_coefficient(self) -> float: ...
    @lars_coefficient.setter
    def lars_coefficient(self, value: float) -> None: ...
    @property
    def lazy_rows(self) -> bool: ...
    @lazy_rows.setter
    def lazy_rows(self, value: bool) -> None: ...
    @property
    def learning_rate(self) -> float: ...
    @learning_rate.setter
    def learning_rate(self, value: float) -> None: ...
    @property
    def learning_rate_power(self) -> float: ...
    @learning_rate_power.setter
    def learning_rate_power(self, value: float) -> None: ...
    @property
    def momentum(self) -> float: ...
    @momentum.setter
    def momentum(self, value: float) -> None: ...
    @property
    def nesterov(self) -> bool: ...
    @nesterov.setter
    def nesterov(self, value: bool) -> None: ...
    @property
    def older_formula(self) -> bool: ...
    @older_formula.setter
    def older_formula(self, value: bool) -> None: ...
    @property
    def own_decay(self) -> float: ...
    @own_decay.setter
    def own_decay(self, value: float) -> None: ...
    @property
    def rate(self) -> str: ...
    @rate.setter
    def rate(self, value: str) -> None: ...
    @property
    def rho(self) -> float: ...
    @rho.setter
    def rho(self, value: float) -> None: ...
    def set_own(self, arg0: str, arg1: float, arg2: bool, arg3: float, arg4: float, arg5: bool) -> None: ...
    @property
    def state_numbers(self) -> dict[str, int]: ...
    @state_numbers.setter
    def state_numbers(self, value: dict[str, int]) -> None: ...
    @property
    def undecayed(self) -> set[str]: ...
    @undecayed.setter
    def undecayed(self, value: set[str]) -> None: ...
class TablePlanEntry():
    """TablePlanEntry"""
    @property
    def gradient(self) -> str: ...
    @property
    def parameter(self) -> str: ...
    @property
    def table(self) -> TableConfig: ...
class TablePlan():
    """TablePlan"""
    def __init__(self) -> None: ...
    def entries(self) -> list[TablePlanEntry]: ...
    def number_beside(self, arg0: list[TablePlan]) -> None: ...
    @staticmethod
    def of_text(arg0: str) -> TablePlan:
        """The tables of table_text(), to be read only."""
    def read(self, arg0: TablePlan, arg1: Program) -> None: ...
    def split_dense(self, arg0: int) -> None: ...
    def table_text(self, arg0: str) -> str:
        """The tables as they are on servers, and in what those save."""
    def tables(self) -> list[TableConfig]: ...
def distribute(arg0: Program, arg1: Program, arg2: str, arg3: OptimizerConfig, arg4: bool, arg5: dict[str, TableChoice], arg6: list[TablePlan]) -> TablePlan: ...
def append_backward(main: Program, loss: str, optimizer: OptimizerConfig | None = None, asked: set[str] = set()) -> list[tuple[str, str, str]]:
    """[(parameter, gradient, the keys of its rows or nothing)] of every parameter. Without an optimizer each is of all rows. asked: of these variables instead."""
def append_clip(arg0: Program, arg1: list[tuple[str, str, str]], arg2: OptimizerConfig) -> list[tuple[str, str, str]]: ...
def append_updates(arg0: Program, arg1: Program, arg2: list[tuple[str, str, str]], arg3: OptimizerConfig) -> None: ...
class Timeline():
    """Timeline"""
    def close(self) -> None: ...
def step_timeline() -> Timeline: ...
class StepRunner():
    """StepRunner"""
    def __init__(self, program: Program, scope: Scope, plan: TablePlan, client: Client, mode: str, timeline: Timeline | None = None) -> None: ...
    def end_pass(self) -> None:
        """Ends the pass that the first step began."""
    def run(self, feed: dict[str, Any]) -> None:
        """A step with {name: array}. Throws: as Executor.run, Error(network)."""
    def value(self, name: str) -> Tensor:
        """A copy of a variable's value after the last step."""
class PassResult():
    """What a pass over a dataset did."""
    @property
    def batches(self) -> int: ...
    @property
    def bound(self) -> str: ...
    @property
    def examples(self) -> int: ...
    @property
    def fetch_means(self) -> list[float]: ...
    @property
    def operator_table(self) -> str: ...
    @property
    def seconds(self) -> float:
        """From the first batch that was asked for to the end."""
    @property
    def skipped(self) -> int: ...
    @property
    def skipped_whole(self) -> bool: ...
    @property
    def stage_seconds(self) -> dict: ...
    @property
    def staleness(self) -> dict: ...
def run_pass(program: Program, scope: Scope, dataset: BatchSource, plan: TablePlan, client: Client, fetch: list[str], fetch_info: list[str], print_period: int, train: bool, mode: str, print_line: Any, pull_dense_every: int = 1, debug: bool = False, part: int = 0) -> PassResult:
    """A pass of the program over the dataset. Throws: Error(data) naming file, line and slot, Error(network)."""
def start_reading(source: BatchSource, in_turn: bool) -> None:
    """Begins a pass; in_turn: reader r takes the files r, r + readers, … Throws: Error(data)."""
def stop_reading(source: BatchSource) -> None:
    """Ends a pass, wherever it is."""
def readers_of(source: BatchSource) -> int:
    """How many readers it has."""
def read_batch(source: BatchSource, reader: int) -> Any:
    """[(values, offsets)] by slot, offsets None for a dense one; None after the reader's last batch. Shape: values [examples, width] of a dense slot, [total, 1] of another; offsets [examples + 1]. Throws: Error(data) naming file, line and slot."""
def cannot_go_on_alone(who: str, why: str) -> str:
    """The message of an error after which the launcher starts all processes of the job again."""
class GlobalShuffle():
    """This trainer's part of a shuffle over all trainers: it listens from the start."""
    def __init__(self, host: str, rank: int, trainers: int) -> None: ...
    @property
    def port(self) -> int:
        """Where it listens."""
    def set_endpoints(self, endpoints: list[str]) -> None:
        """HOST:PORT of all trainers, by rank."""
class InMemoryDataset(BatchSource):
    """Examples in memory."""
    def __init__(self, trainer: int) -> None: ...
    @property
    def bytes(self) -> int:
        """Bytes that they take."""
    def global_shuffle(self, exchange: GlobalShuffle, by_id: bool, threads: int) -> None:
        """Deals the examples of all trainers out again. Throws: Error(network), Error(data)."""
    @property
    def is_loaded(self) -> bool: ...
    def load(self, source: BatchSource, ids: bool, contents: bool, drop_zeros: bool, background: bool) -> None:
        """Reads all of `source`; background: returns at once. Throws: Error(data), and nothing is in memory then."""
    def local_shuffle(self, arg0: int) -> None: ...
    def merge_by_line_id(self, merge_size: int) -> dict:
        """Makes one example of those of one id; how many: {merged, wrong_size, conflicts}."""
    def release(self) -> None:
        """Gives the memory back."""
    @property
    def rows(self) -> int:
        """Examples in memory."""
    def set_reading(self, batch_size: int, threads: int, drop_last: bool) -> None: ...
    def set_seed(self, seed: int) -> None:
        """Decides every order that follows."""
    def shuffle_slots(self, arg0: list[str], arg1: int) -> None: ...
    def wait_preload(self) -> None: ...
class ColumnarDataset(BatchSource):
    """Batches of columnar files (.frc). Throws: Error(data) naming file and column."""
    def __init__(self, options: DatasetOptions) -> None: ...
    def bad_lines(self) -> BadLineReport:
        """None: there are no lines."""
class DataType():
    float32: typing.ClassVar[DataType]
    float64: typing.ClassVar[DataType]
    float16: typing.ClassVar[DataType]
    bfloat16: typing.ClassVar[DataType]
    int8: typing.ClassVar[DataType]
    int16: typing.ClassVar[DataType]
    int32: typing.ClassVar[DataType]
    int64: typing.ClassVar[DataType]
    uint8: typing.ClassVar[DataType]
class Operation():
    sum: typing.ClassVar[Operation]
    prod: typing.ClassVar[Operation]
    min: typing.ClassVar[Operation]
    max: typing.ClassVar[Operation]
    avg: typing.ClassVar[Operation]
    bit_and: typing.ClassVar[Operation]
    bit_or: typing.ClassVar[Operation]
    bit_xor: typing.ClassVar[Operation]
class CallKind():
    all_reduce: typing.ClassVar[CallKind]
    broadcast: typing.ClassVar[CallKind]
    reduce: typing.ClassVar[CallKind]
    all_gather: typing.ClassVar[CallKind]
    reduce_scatter: typing.ClassVar[CallKind]
    all_to_all: typing.ClassVar[CallKind]
    send: typing.ClassVar[CallKind]
    receive: typing.ClassVar[CallKind]
    barrier: typing.ClassVar[CallKind]
class ArrayView():
    """The memory of an array, by its DLPack capsule, or by its address in the host's memory, where the owner keeps it. Throws: Error(config) for one that is not contiguous or of a type that collectives do not have."""
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Overloaded function.

        1. __init__(self: ArrayView, capsule: capsule, stream: int = 0) -> None

        2. __init__(self: ArrayView, address: int, count: int, type: DataType, owner: object) -> None"""
    @property
    def bytes(self) -> int: ...
    @property
    def count(self) -> int:
        """Number of values."""
    @property
    def type(self) -> DataType: ...
class Call():
    """A collective call with its arrays. count, counts: values for each rank; root: a place in the group."""
    def __init__(self, kind: CallKind, input: ArrayView | None = None, output: ArrayView | None = None, count: int = 0, operation: Operation = ..., root: int = 0, counts: list[int] = ..., send_counts: list[int] = ...) -> None: ...
class StartedCall():
    """A call under way."""
    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
    def wait(self) -> None:
        """Returns when it has ended. Throws: the call's Error."""
class Communicator():
    """Ranks that make calls together, in the same order."""
    def abort(self, arg0: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def rank(self) -> int: ...
    def run(self, call: Call) -> None:
        """Makes the call. Throws: Error(network) naming a rank that is gone, Error(config) where the ranks' calls differ."""
    def set_call_within(self, seconds: float) -> None:
        """How long a call to come may take, where it was made with a call_within."""
    @property
    def size(self) -> int: ...
    def start(self, call: Call, stream: typing.Optional[int] | None = None) -> StartedCall:
        """Starts the call; stream: the cudaStream_t that it comes after."""
class Interruption():
    """Ends meetings of ranks that are under way."""
    def __init__(self) -> None: ...
    def end(self, why: str) -> None:
        """From any thread: they throw Error(network)."""
class World():
    """The ranks of this job."""
    def fail(self, prefix: str, why: str) -> None:
        """Fails the groups whose names begin so, and those that ranks meet for."""
    @property
    def hosts(self) -> list[str]: ...
    @staticmethod
    def join(environment: typing.Optional[dict[str, str]] | None = None, interruption: Interruption | None = None) -> World:
        """Meets the other ranks. Throws: Error(timeout) naming those that did not come."""
    def lost(self) -> list[int]: ...
    def make_communicator(self, name: str, ranks: list[int] = ..., hierarchical: typing.Optional[bool] | None = None, inner_size: int = 0, call_within: typing.Optional[float] | None = None, meet_within: typing.Optional[float] | None = None) -> Communicator: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
def message_calls(values: ArrayView, tag: int) -> list[Call]:
    """The calls that give a message with a tag to rank 1 of a communicator."""
class Receive():
    """A receive that was posted."""
    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
    @property
    def sender(self) -> typing.Optional[int]: ...
    def wait(self, seconds: float) -> bool:
        """Whether the message has come within so many seconds. Throws: Error where it will not."""
class Inbox():
    """Messages with tags, and receives of them."""
    def __init__(self, name: str) -> None: ...
    def claim(self, source: int) -> bool:
        """Whether nobody serves the source yet: the caller does from now on."""
    def close(self) -> None:
        """No more messages."""
    def fail(self, source: int, why: str) -> None:
        """Receives from it that wait fail."""
    def post(self, values: ArrayView, source: typing.Optional[int], tag: int) -> Receive:
        """Takes the next message of a rank, None: of any, with this tag."""
    def serve(self, source: int, incoming: Communicator) -> None:
        """Reads what rank 0 of a communicator sends to its rank 1, until it fails."""
    def withdraw(self, receive: Receive) -> bool:
        """Whether nothing has come for it, and nothing will."""
def plan_buckets(names: list[str], counts: list[int], types: list[DataType], memory_mib: float, groups_size: int) -> list[list[int]]:
    """Indices of the gradients of each bucket, in the order in which they are reduced."""
class CollectiveOptions():
    """How ranks train together; memory_mib: of a bucket, -1 for no buckets."""
    def __init__(self, memory_mib: float = -1.0, groups_size: int = 1, half: bool = False, compression: typing.Optional[tuple[int, int, list[float]]] | None = None, local: typing.Optional[tuple[int, int, bool]] | None = None, loss: str = '') -> None: ...
class CollectiveRunner():
    """Steps of a program whose gradients are averaged."""
    def __init__(self, program: Program, scope: Scope, groups: list[Communicator], options: CollectiveOptions, timeline: Timeline | None = None) -> None: ...
    @property
    def buckets(self) -> int: ...
    def run(self, feed: dict[str, Any]) -> None:
        """A step, which every rank makes. Throws: Error(network) naming a rank that is gone."""
    @property
    def schedule(self) -> str: ...
    @property
    def since_average(self) -> int: ...
    def synchronize(self) -> None:
        """Averages what local steps have moved apart."""
    def value(self, arg0: str) -> Tensor: ...
class CollectivePass():
    """Passes of a program over datasets, each rank its own files."""
    def __init__(self, program: Program, scope: Scope, groups: list[Communicator], options: CollectiveOptions) -> None: ...
    def run(self, dataset: BatchSource, fetch: list[str], fetch_info: list[str], print_period: int, print_line: Any, debug: bool = False) -> PassResult:
        """A pass, which every rank makes. Throws: Error(data), Error(network)."""
class ReduceStrategy():
    AllReduce: typing.ClassVar[ReduceStrategy]
    Reduce: typing.ClassVar[ReduceStrategy]
class GradientScale():
    CoeffNumDevice: typing.ClassVar[GradientScale]
    One: typing.ClassVar[GradientScale]
    Customized: typing.ClassVar[GradientScale]
class ReplicaOptions():
    """How many replicas, on how many threads (0: one each), and how they share gradients."""
    def __init__(self, replicas: int, threads: int, reduce: ReduceStrategy, scale: GradientScale) -> None: ...
class ReplicaRunner():
    """Runs a program on several replicas."""
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Overloaded function.

        1. __init__(self: ReplicaRunner, arg0: Program, arg1: Scope, arg2: ReplicaOptions, arg3: List[Communicator], arg4: CollectiveOptions) -> None

        2. __init__(self: ReplicaRunner, arg0: Program, arg1: Scope, arg2: ReplicaOptions, arg3: TablePlan, arg4: Client, arg5: str) -> None"""
    def end_pass(self) -> None: ...
    def merged(self, arg0: str) -> Tensor: ...
    def run(self, feed: dict[str, Any]) -> None:
        """A step; {name: array} is split along the batch. Throws: as Executor.run."""
    def run_each(self, feeds: list[dict[str, Any]]) -> None:
        """A step with a feed for each replica."""
    @property
    def since_average(self) -> int: ...
    def synchronize(self) -> None: ...
    def values(self, name: str) -> list[Tensor]:
        """A copy of the variable's value on each replica that had examples."""
