# Written by scripts/python-stubs.
"""
The engine, the dataset readers, the parameter server and collectives. Used by the Python files beside it.
"""

from collections.abc import Callable, Mapping, Sequence, Set
import datetime
import enum
from typing import overload

import numpy
from numpy.typing import NDArray


class Tensor:
    """
    Values of the engine: numpy.asarray() takes them without a copy, float32, float64, int32, int64 or bool.
    """

    @property
    def offsets(self) -> list[int]:
        """
        Where each example begins, and the last one ends; [] for one value per example.
        """

class Variable:
    """A variable of a Program, as it was when it was asked for."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def shape(self) -> list[int]:
        """Sizes; -1 for one that is known only when the program runs."""

    @property
    def lod_level(self) -> int:
        """1 for a slot with any number of values per example, else 0."""

    @property
    def persistable(self) -> bool: ...

    @property
    def trainable(self) -> bool: ...

    @property
    def stop_gradient(self) -> bool: ...

    @property
    def is_data(self) -> bool: ...

class Operator:
    """
    An operator of a Program. where: the line of the script that appended it.
    """

    @property
    def type(self) -> str: ...

    @property
    def inputs(self) -> list[str]: ...

    @property
    def outputs(self) -> list[str]: ...

    @property
    def input_arg_names(self) -> list[str]:
        """Paddle's name for inputs."""

    @property
    def output_arg_names(self) -> list[str]:
        """Paddle's name for outputs."""

    @property
    def attributes(self) -> dict[str, bool | int | float | str | list[int] | list[float] | list[str]]: ...

    @property
    def attr_names(self) -> list[str]:
        """The names of the attributes."""

    def all_attrs(self) -> dict[str, bool | int | float | str | list[int] | list[float] | list[str]]:
        """Paddle's name for attributes."""

    def has_attr(self, name: str) -> bool:
        """Whether there is an attribute of this name."""

    def attr(self, name: str) -> bool | int | float | str | list[int] | list[float] | list[str]:
        """An attribute. Throws: IndexError where there is none."""

    @property
    def where(self) -> str: ...

class Program:
    """Variables and operators in order."""

    def __init__(self) -> None: ...

    @property
    def random_seed(self) -> int: ...

    @random_seed.setter
    def random_seed(self, arg: int, /) -> None: ...

    def copy(self) -> Program:
        """Another program that is equal."""

    def clone_for_test(self) -> Program:
        """A copy without gradients and updates, and without dropout."""

    def add_variable(self, name: str, type: str, shape: Sequence[int], lod_level: int = 0, persistable: bool = False, trainable: bool = False, stop_gradient: bool = True, is_data: bool = False) -> None:
        """
        Adds a variable. Throws: Error(config) for an unknown type, or a name that another variable has.
        """

    def take_as_input(self, name: str) -> None:
        """
        From now on the variable of this name is fed. Throws: Error(config) naming the nearest one.
        """

    def variable(self, name: str) -> Variable:
        """
        The variable of this name. Throws: Error(config) naming the nearest one.
        """

    def move_last(self, count: int, to: int) -> None:
        """Puts the last `count` operators before the one of index `to`."""

    def has_variable(self, name: str) -> bool:
        """Whether there is a variable of this name."""

    def variable_names(self) -> list[str]:
        """The names of all variables, sorted."""

    def set_stop_gradient(self, name: str, stop: bool) -> None:
        """
        Says whether gradients end at a variable. Throws: Error(config) for an unknown one.
        """

    def infer_again(self) -> None:
        """
        Infers types and shapes of all operators once more. Throws: Error(config) of one that cannot take its inputs.
        """

    def set_persistable(self, name: str, keep: bool) -> None:
        """
        Says whether a variable is kept from run to run. Throws: Error(config) for an unknown one.
        """

    def set_shape(self, name: str, shape: Sequence[int]) -> None:
        """
        Gives a variable another shape, -1 for every size. Throws: Error(config) for an unknown one.
        """

    def set_type(self, name: str, type: str) -> None:
        """
        Gives a variable another type. Throws: Error(config) for an unknown one.
        """

    def set_trainable(self, name: str, trainable: bool) -> None:
        """
        Says whether optimizers update a parameter. Throws: Error(config) for an unknown one.
        """

    def append(self, type: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[str]], where: str = '') -> None:
        """
        Appends an operator; outputs that are not there are made, with their shapes. Throws: Error(config) naming the operator, its line and what disagrees.
        """

    def operators(self) -> list[Operator]:
        """Copies of all operators, in order."""

    def operator_count(self) -> int:
        """How many operators."""

    def has_operator(self, type: str) -> bool:
        """Whether there is an operator of this type."""

    def to_words(self) -> list[str]:
        """The program as the body of a loop."""

    def to_dot(self) -> str:
        """The program for graphviz."""

    def __str__(self) -> str: ...

class Scope:
    """Values by name."""

    def __init__(self) -> None: ...

    def has(self, name: str) -> bool:
        """Whether there is a value of this name."""

    def make(self, name: str) -> None:
        """Makes an empty value where there is none."""

    def names(self) -> list[str]:
        """The names of all values, sorted."""

    def value(self, name: str) -> Tensor:
        """A copy of the value. Throws: Error(config) where there is none."""

    def set_value(self, name: str, value: numpy.ndarray) -> None:
        """
        Copies a C-contiguous array in; shape and type become the array's. Throws: Error(config) for a type that the engine does not have.
        """

def keep_function(function: Callable) -> int:
    """
    Keeps a function for operators that call it, until the process ends. Returns its number.
    """

class Executor:
    """Runs a program without tables over a scope."""

    def __init__(self, program: Program, scope: Scope) -> None: ...

    def run(self, feed: Mapping[str, object]) -> None:
        """
        One run with {name: array}; an object with lod_offsets is a slot. Throws: Error(config) naming an input that is missing or disagrees with its variable.
        """

    def value(self, name: str) -> Tensor:
        """A copy of a variable's value after the last run."""

class FileQueue:
    """Files that trainers share."""

    def next(self) -> str | None:
        """
        The next file, done when next() is called again; None when all are done. Throws: Error(host).
        """

def shared_file_queue(files: Sequence[str], claims: str, owner: int = 0) -> FileQueue:
    """
    The queue of these files whose claims lie at the path `claims`. owner: not 0, another process of which goes on with the file that it had. Throws: Error(host).
    """

class UpdateRule:
    """
    How a gradient changes a row: ps/table_config.h says which rule has what.
    """

    def __init__(self) -> None: ...

    @property
    def learning_rate(self) -> float: ...

    @learning_rate.setter
    def learning_rate(self, arg: float, /) -> None: ...

    @property
    def beta1(self) -> float: ...

    @beta1.setter
    def beta1(self, arg: float, /) -> None: ...

    @property
    def beta2(self) -> float: ...

    @beta2.setter
    def beta2(self, arg: float, /) -> None: ...

    @property
    def epsilon(self) -> float: ...

    @epsilon.setter
    def epsilon(self, arg: float, /) -> None: ...

    @property
    def initial_accumulator(self) -> float: ...

    @initial_accumulator.setter
    def initial_accumulator(self, arg: float, /) -> None: ...

    @property
    def low(self) -> float: ...

    @low.setter
    def low(self, arg: float, /) -> None: ...

    @property
    def high(self) -> float: ...

    @high.setter
    def high(self, arg: float, /) -> None: ...

    @property
    def kind(self) -> str: ...

    @kind.setter
    def kind(self, arg: str, /) -> None: ...

class Accessor:
    """
    What a row keeps beside its values; thresholds are scores, ages are days.
    """

    def __init__(self) -> None: ...

    @property
    def nonclk_coeff(self) -> float: ...

    @nonclk_coeff.setter
    def nonclk_coeff(self, arg: float, /) -> None: ...

    @property
    def click_coeff(self) -> float: ...

    @click_coeff.setter
    def click_coeff(self, arg: float, /) -> None: ...

    @property
    def embedx_threshold(self) -> float: ...

    @embedx_threshold.setter
    def embedx_threshold(self, arg: float, /) -> None: ...

    @property
    def base_threshold(self) -> float: ...

    @base_threshold.setter
    def base_threshold(self, arg: float, /) -> None: ...

    @property
    def delta_threshold(self) -> float: ...

    @delta_threshold.setter
    def delta_threshold(self, arg: float, /) -> None: ...

    @property
    def delta_keep_days(self) -> float: ...

    @delta_keep_days.setter
    def delta_keep_days(self, arg: float, /) -> None: ...

    @property
    def show_click_decay_rate(self) -> float: ...

    @show_click_decay_rate.setter
    def show_click_decay_rate(self, arg: float, /) -> None: ...

    @property
    def delete_threshold(self) -> float: ...

    @delete_threshold.setter
    def delete_threshold(self, arg: float, /) -> None: ...

    @property
    def delete_after_unseen_days(self) -> float: ...

    @delete_after_unseen_days.setter
    def delete_after_unseen_days(self, arg: float, /) -> None: ...

    @property
    def ssd_unseenday_threshold(self) -> float: ...

    @ssd_unseenday_threshold.setter
    def ssd_unseenday_threshold(self, arg: float, /) -> None: ...

    @property
    def show_scale(self) -> bool: ...

    @show_scale.setter
    def show_scale(self, arg: bool, /) -> None: ...

    @property
    def zero_init(self) -> bool: ...

    @zero_init.setter
    def zero_init(self, arg: bool, /) -> None: ...

    @property
    def embed_rule(self) -> UpdateRule | None: ...

    @embed_rule.setter
    def embed_rule(self, arg: UpdateRule | None, /) -> None: ...

    @property
    def kind(self) -> str: ...

    @kind.setter
    def kind(self, arg: str, /) -> None: ...

class Admission:
    """When a key gets a row."""

    def __init__(self) -> None: ...

    @property
    def threshold(self) -> int: ...

    @threshold.setter
    def threshold(self, arg: int, /) -> None: ...

    @property
    def probability(self) -> float: ...

    @probability.setter
    def probability(self, arg: float, /) -> None: ...

    @property
    def kind(self) -> str: ...

    @kind.setter
    def kind(self, arg: str, /) -> None: ...

class Initializer:
    """
    First values of a row; a and b are value, bounds, or mean and deviation.
    """

    def __init__(self) -> None: ...

    @property
    def a(self) -> float: ...

    @a.setter
    def a(self, arg: float, /) -> None: ...

    @property
    def b(self) -> float: ...

    @b.setter
    def b(self, arg: float, /) -> None: ...

    @property
    def kind(self) -> str: ...

    @kind.setter
    def kind(self, arg: str, /) -> None: ...

class TableChoice:
    """What a script says of a sparse table, before the optimizer's own rule."""

    def __init__(self) -> None: ...

    @property
    def accessor(self) -> Accessor: ...

    @accessor.setter
    def accessor(self, arg: Accessor, /) -> None: ...

    @property
    def admission(self) -> Admission: ...

    @admission.setter
    def admission(self, arg: Admission, /) -> None: ...

    @property
    def on_disk(self) -> bool: ...

    @on_disk.setter
    def on_disk(self, arg: bool, /) -> None: ...

    @property
    def rule(self) -> UpdateRule | None: ...

    @rule.setter
    def rule(self, arg: UpdateRule | None, /) -> None: ...

    @property
    def initializer(self) -> Initializer | None: ...

    @initializer.setter
    def initializer(self, arg: Initializer | None, /) -> None: ...

    @property
    def shows(self) -> str: ...

    @shows.setter
    def shows(self, arg: str, /) -> None: ...

    @property
    def clicks(self) -> str: ...

    @clicks.setter
    def clicks(self, arg: str, /) -> None: ...

    @property
    def slot(self) -> int: ...

    @slot.setter
    def slot(self, arg: int, /) -> None: ...

    @property
    def times_batch(self) -> bool: ...

    @times_batch.setter
    def times_batch(self, arg: bool, /) -> None: ...

class TableConfig:
    """A table as servers and trainers agree on it."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int:
        """float32 values of a row, or of a dense table in all."""

    @property
    def has_statistics(self) -> bool: ...

    def __str__(self) -> str: ...

    @property
    def decays(self) -> dict[str, float]:
        """By how much its rule lets values decay, 0 where it does not."""

    @property
    def sparse(self) -> bool: ...

class ServerAddresses:
    """Where the servers are reached, by rank, which may change."""

    def __init__(self, endpoints: Sequence[str]) -> None: ...

    def move(self, servers: Mapping[int, str]) -> None:
        """Those that are somewhere else from now on, {rank: endpoint}."""

class Client:
    """
    A trainer's view of all servers. Calls throw Error(network) when a server is gone.
    """

    def set_dense(self, table: int, values: numpy.ndarray) -> None:
        """First values of a dense table. Shape: float32 [width]."""

    def pull_dense(self, table: int, width: int) -> Tensor:
        """
        Shape: float32 [width]. Throws: Error(config) before the table has values.
        """

    def pull_rows(self, table: int, keys: Sequence[int], width: int) -> Tensor:
        """Shape: float32 [len(keys), width]."""

    def all_reduce_sum(self, values: numpy.ndarray) -> Tensor:
        """Sums over all trainers, a barrier. Shape: float64, any."""

    def barrier(self) -> None:
        """Returns when every trainer has called it."""

    def save(self, directory: str, mode: int = 0) -> None:
        """
        Every server writes its tables below `directory`: 0 all rows, 1 changed ones, 2 those to serve, 3 a checkpoint. Throws: Error(host).
        """

    def export_rows(self, directory: str, since: int = 0) -> int:
        """
        Saves what has changed since the export of that number; 0: all rows. The number of this one.
        """

    def save_for_paddle(self, directory: str, mode: int = 0) -> None:
        """The same as Paddle 2.6.2 reads it; for one server."""

    def load(self, directory: str) -> str:
        """
        What is wrong with the newest save, "" when all is well. Throws: Error(data).
        """

    def shrink(self, table: int) -> int:
        """Ends a day; how many rows went."""

    def rows(self, table: int) -> int:
        """How many rows the table has on all servers."""

    @property
    def is_late(self) -> bool:
        """Whether the other trainers train already."""

    @property
    def next_change(self) -> int:
        """The number of the next push, from 1."""

    @property
    def is_catching_up(self) -> bool:
        """Whether it does again what the process before it did."""

    @property
    def counts_epochs(self) -> bool:
        """
        Whether it goes on in the middle of an epoch when its process is started again.
        """

    def skip_steps(self, steps: int) -> int:
        """Takes up to so many steps as done; how many were."""

    def set_epoch(self, epoch: int) -> None:
        """The number of the world that the job has now."""

    def set_rate(self, rate: float) -> None:
        """What pushes from now on multiply scheduled rates by."""

    def goodbye(self) -> None:
        """This trainer is done; servers end when all are."""

def connect(endpoints: Sequence[str], trainer: int, trainers: int, mode: str, tables: Sequence[TableConfig], epoch: int = 0, launcher: str = '', exchange: Sequence[int] = [400, 1, 16, 0], identity: int = 0, counts_epochs: bool = False, addresses: ServerAddresses | None = None) -> Client:
    """
    A Client of servers by rank; of `addresses`, where those may change. exchange: geo_steps, merged, waiting, max_ahead of ps::TrainerMode. counts_epochs: as ps::ClientOptions. Throws: Error(network) naming those that do not answer, Error(config) when the tables of both sides disagree.
    """

def make_in_process(mode: str, tables: Sequence[TableConfig]) -> Client:
    """A Client whose one server is in this process."""

class RpcServer:
    """The parameter server of this process, or those that it serves now."""

    def __init__(self, rank: int, servers: int, trainers: int, mode: str, tables: Sequence[TableConfig], endpoint: str, epoch: int = 0, listens: bool = True, addresses: ServerAddresses | None = None) -> None:
        """
        Binds `endpoint` and serves from then on, or from listen() on. Throws: Error(network) for a port that is taken, Error(config).
        """

    def listen(self) -> None:
        """Lets trainers in; once, where it does not listen yet."""

    def update(self, epoch: int, in_place: bool, trainers: Mapping[int, str], servers: Mapping[int, str]) -> None:
        """
        Tells of the trainers that there are now, {rank: id}, and where the servers are, {rank: endpoint}. Returns once a server that is to be served here is.
        """

    def stale_requests(self) -> int:
        """Requests of trainers that were lost, refused so far."""

    @property
    def endpoint(self) -> str:
        """HOST:PORT that was bound."""

    def stat(self) -> str:
        """What it has done so far, as JSON."""

    def load(self, directory: str, only: Sequence[str] = []) -> str:
        """
        As Client.load(), for this server alone; only: the rows of these tables.
        """

    def wait(self) -> None:
        """Serves until all trainers have said goodbye, or stop()."""

    def stop(self) -> None:
        """Ends wait()."""

def table_config(id: int, name: str, sparse: bool, width: int, rule: dict, initializer: dict, accessor: dict, admission: dict, min_block: int, on_disk: bool, expire_seconds: int) -> TableConfig:
    """
    A TableConfig of dictionaries. Throws: Error(config) naming a key that there is not, or a value that cannot be.
    """

def pulled_width(table: TableConfig) -> int:
    """float32 values that a pull gives for a key."""

def check_tables(tables: Sequence[TableConfig]) -> None:
    """Throws: Error(config) for tables that cannot be."""

def saved_values(directory: str) -> dict:
    """
    What servers saved: {table: values of a dense one, (keys, rows) of a sparse one}. Throws: Error(data).
    """

def ps_push(client: Client, table: int, keys: numpy.ndarray, gradients: numpy.ndarray, shows: numpy.ndarray | None, clicks: numpy.ndarray | None, slot: int, thread: int) -> None:
    """
    Shape: keys uint64 [n], gradients float32 [n * width], shows and clicks float32 [n] or None. Throws: Error(data) for gradients that are NaN or infinite; nothing is applied then.
    """

def ps_pull_many(client: Client, tables: Sequence[tuple[int, numpy.ndarray, int]], create: bool) -> list[Tensor]:
    """
    Rows of each of `tables`, in one request. tables: (table, keys, width) each. Shape: keys uint64 [n] -> float32 [n, width]; create=False makes no rows.
    """

def ps_distinct(keys: numpy.ndarray, sizes: Sequence[int]) -> tuple:
    """
    (distinct keys, places, counts) of runs of keys, one after the other. Shape: keys uint64 [sum of sizes] -> int64 [sum of counts], each run's in order of first appearance, and int64 [sum of sizes], where a position's key is among those of its run.
    """

def ps_push_many(client: Client, tables: Sequence[tuple[int, numpy.ndarray, numpy.ndarray]], thread: int) -> None:
    """
    ps_push of several tables as one change. tables: (table, keys, gradients) each. Throws: as ps_push.
    """

def ps_assign(client: Client, table: int, keys: numpy.ndarray, rows: numpy.ndarray) -> None:
    """
    Shape: keys uint64 [n], each once, rows float32 [n * width]. Throws: Error(config) for a key that is there twice, Error(data) for values that are NaN or infinite.
    """

def ps_push_dense(client: Client, table: int, gradients: numpy.ndarray, thread: int) -> None:
    """Shape: float32 [width]. Throws: as ps_push."""

def ps_get(client: Client, table: int, keys: numpy.ndarray) -> tuple:
    """
    (found, values, statistics) of rows as they are stored. Shape: keys uint64 [n] -> found bool [n], values float32 [n, width], statistics n times (slot, unseen days, delta score, show, click) or [].
    """

def ps_shrink(client: Client, table: int) -> int:
    """Ends a day; how many rows went."""

def ps_stat(client: Client) -> list[str]:
    """What each server has done, as JSON, by rank."""

def ps_save(client: Client, directory: str, mode: int) -> None:
    """Client.save(). Throws: Error(config) for another mode, Error(host)."""

def ps_load(client: Client, directory: str) -> str:
    """
    What is wrong with the newest save, "" when all is well. Throws: Error(data).
    """

def ps_begin_pass(client: Client, threads: int) -> None:
    """Mode sync: a pass of threads 0 … threads - 1 of every trainer."""

def ps_leave_pass(client: Client, thread: int) -> None:
    """Mode sync: this thread pushes no more in the pass."""

class DatasetOptions:
    """
    What is read, and how: files, pipe, slots. pipe_timeout: a timedelta, or seconds; 0 for none.
    """

    def __init__(self) -> None: ...

    slots: Sequence[tuple[str, str, bool, int, bool]]

    bad_line: str

    @property
    def schema(self) -> str: ...

    @schema.setter
    def schema(self, arg: str, /) -> None: ...

    @property
    def batch_size(self) -> int: ...

    @batch_size.setter
    def batch_size(self, arg: int, /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def files(self) -> list[str]: ...

    @files.setter
    def files(self, arg: Sequence[str], /) -> None: ...

    @property
    def allows_no_files(self) -> bool: ...

    @allows_no_files.setter
    def allows_no_files(self, arg: bool, /) -> None: ...

    @property
    def drop_last(self) -> bool: ...

    @drop_last.setter
    def drop_last(self, arg: bool, /) -> None: ...

    @property
    def starts_next_pass(self) -> bool: ...

    @starts_next_pass.setter
    def starts_next_pass(self, arg: bool, /) -> None: ...

    download_command: str

    fs_name: str

    fs_ugi: str

    @property
    def parse_ins_id(self) -> bool: ...

    @parse_ins_id.setter
    def parse_ins_id(self, arg: bool, /) -> None: ...

    @property
    def parse_content(self) -> bool: ...

    @parse_content.setter
    def parse_content(self, arg: bool, /) -> None: ...

    @property
    def parse_logkey(self) -> bool: ...

    @parse_logkey.setter
    def parse_logkey(self, arg: bool, /) -> None: ...

    @property
    def pipe_command(self) -> str: ...

    @pipe_command.setter
    def pipe_command(self, arg: str, /) -> None: ...

    @property
    def pipe_argv(self) -> list[str]: ...

    @pipe_argv.setter
    def pipe_argv(self, arg: Sequence[str], /) -> None: ...

    @property
    def pipe_timeout(self) -> datetime.timedelta: ...

    @pipe_timeout.setter
    def pipe_timeout(self, arg: datetime.timedelta, /) -> None: ...

class BadLineReport:
    """
    The lines of a pass that were left out: how many, and where the first were.
    """

    @property
    def count(self) -> int: ...

    @property
    def places(self) -> list[str]: ...

class BatchSource:
    """What gives batches to passes."""

class QueueDataset(BatchSource):
    """Batches of text files that go through a pipe command."""

    def __init__(self, options: DatasetOptions) -> None:
        """Throws: Error(config), Error(data) for a file that is missing."""

    def bad_lines(self) -> BadLineReport:
        """Those of the last pass."""

class OptimizerConfig:
    def __init__(self) -> None: ...

    class Kind(enum.Enum):
        sgd = 0

        adagrad = 1

        adam = 2

        momentum = 3

        ftrl = 4

        rmsprop = 5

        adamax = 6

        adadelta = 7

        lamb = 8

        lars_momentum = 9

        decayed_adagrad = 10

    class Clip(enum.Enum):
        by_value = 1

        by_norm = 2

        by_global_norm = 3

    @property
    def kind(self) -> OptimizerConfig.Kind: ...

    @kind.setter
    def kind(self, arg: OptimizerConfig.Kind, /) -> None: ...

    @property
    def learning_rate(self) -> float: ...

    @learning_rate.setter
    def learning_rate(self, arg: float, /) -> None: ...

    @property
    def beta1(self) -> float: ...

    @beta1.setter
    def beta1(self, arg: float, /) -> None: ...

    @property
    def beta2(self) -> float: ...

    @beta2.setter
    def beta2(self, arg: float, /) -> None: ...

    @property
    def epsilon(self) -> float: ...

    @epsilon.setter
    def epsilon(self, arg: float, /) -> None: ...

    @property
    def initial_accumulator(self) -> float: ...

    @initial_accumulator.setter
    def initial_accumulator(self, arg: float, /) -> None: ...

    @property
    def lazy_rows(self) -> bool: ...

    @lazy_rows.setter
    def lazy_rows(self, arg: bool, /) -> None: ...

    @property
    def own_decay(self) -> float: ...

    @own_decay.setter
    def own_decay(self, arg: float, /) -> None: ...

    @property
    def undecayed(self) -> set[str]: ...

    @undecayed.setter
    def undecayed(self, arg: Set[str], /) -> None: ...

    @property
    def state_numbers(self) -> dict[str, int]: ...

    @state_numbers.setter
    def state_numbers(self, arg: Mapping[str, int], /) -> None: ...

    @property
    def older_formula(self) -> bool: ...

    @older_formula.setter
    def older_formula(self, arg: bool, /) -> None: ...

    @property
    def always_adapts(self) -> bool: ...

    @always_adapts.setter
    def always_adapts(self, arg: bool, /) -> None: ...

    @property
    def adam_d2sum(self) -> bool: ...

    @adam_d2sum.setter
    def adam_d2sum(self, arg: bool, /) -> None: ...

    @property
    def lars_coefficient(self) -> float: ...

    @lars_coefficient.setter
    def lars_coefficient(self, arg: float, /) -> None: ...

    @property
    def momentum(self) -> float: ...

    @momentum.setter
    def momentum(self, arg: float, /) -> None: ...

    @property
    def nesterov(self) -> bool: ...

    @nesterov.setter
    def nesterov(self, arg: bool, /) -> None: ...

    @property
    def rho(self) -> float: ...

    @rho.setter
    def rho(self, arg: float, /) -> None: ...

    @property
    def centered(self) -> bool: ...

    @centered.setter
    def centered(self, arg: bool, /) -> None: ...

    @property
    def clip_kind(self) -> OptimizerConfig.Clip: ...

    @clip_kind.setter
    def clip_kind(self, arg: OptimizerConfig.Clip, /) -> None: ...

    @property
    def clip_least(self) -> float: ...

    @clip_least.setter
    def clip_least(self, arg: float, /) -> None: ...

    @property
    def clip(self) -> float: ...

    @clip.setter
    def clip(self, arg: float, /) -> None: ...

    @property
    def clips_means(self) -> bool: ...

    @clips_means.setter
    def clips_means(self, arg: bool, /) -> None: ...

    @property
    def l1(self) -> float: ...

    @l1.setter
    def l1(self, arg: float, /) -> None: ...

    @property
    def l2(self) -> float: ...

    @l2.setter
    def l2(self, arg: float, /) -> None: ...

    @property
    def learning_rate_power(self) -> float: ...

    @learning_rate_power.setter
    def learning_rate_power(self, arg: float, /) -> None: ...

    @property
    def l1_decay(self) -> float: ...

    @l1_decay.setter
    def l1_decay(self, arg: float, /) -> None: ...

    @property
    def l2_decay(self) -> float: ...

    @l2_decay.setter
    def l2_decay(self, arg: float, /) -> None: ...

    @property
    def rate(self) -> str: ...

    @rate.setter
    def rate(self, arg: str, /) -> None: ...

    def set_own(self, arg0: str, arg1: float, arg2: bool, arg3: float, arg4: float, arg5: bool, /) -> None: ...

class TablePlanEntry:
    @property
    def parameter(self) -> str: ...

    @property
    def gradient(self) -> str: ...

    @property
    def table(self) -> TableConfig: ...

class TablePlan:
    def __init__(self) -> None: ...

    def entries(self) -> list[TablePlanEntry]: ...

    def tables(self) -> list[TableConfig]: ...

    def table_text(self, arg: str, /) -> str:
        """The tables as they are on servers, and in what those save."""

    @staticmethod
    def of_text(arg: str, /) -> TablePlan:
        """The tables of table_text(), to be read only."""

    def number_beside(self, arg: Sequence[TablePlan], /) -> None: ...

    def read(self, arg0: TablePlan, arg1: Program, /) -> None: ...

    def split_dense(self, arg: int, /) -> None: ...

def distribute(arg0: Program, arg1: Program, arg2: str, arg3: OptimizerConfig, arg4: bool, arg5: Mapping[str, TableChoice], arg6: Sequence[TablePlan], /) -> TablePlan: ...

def append_backward(main: Program, loss: str, optimizer: OptimizerConfig | None = None, asked: Set[str] = ...) -> list[tuple[str, str, str]]:
    """
    [(parameter, gradient, the keys of its rows or nothing)] of every parameter. Without an optimizer each is of all rows. asked: of these variables instead.
    """

def append_clip(arg0: Program, arg1: Sequence[tuple[str, str, str]], arg2: OptimizerConfig, /) -> list[tuple[str, str, str]]: ...

def append_updates(arg0: Program, arg1: Program, arg2: Sequence[tuple[str, str, str]], arg3: OptimizerConfig, /) -> None: ...

class Timeline:
    def close(self) -> None: ...

def step_timeline() -> Timeline: ...

class StepRunner:
    def __init__(self, program: Program, scope: Scope, plan: TablePlan, client: Client | None, mode: str, timeline: Timeline | None = None) -> None: ...

    def run(self, feed: Mapping[str, object]) -> None:
        """A step with {name: array}. Throws: as Executor.run, Error(network)."""

    def value(self, name: str) -> Tensor:
        """A copy of a variable's value after the last step."""

    def end_pass(self) -> None:
        """Ends the pass that the first step began."""

class PassResult:
    """What a pass over a dataset did."""

    @property
    def examples(self) -> int: ...

    @property
    def batches(self) -> int: ...

    @property
    def skipped(self) -> int: ...

    @property
    def skipped_whole(self) -> bool: ...

    @property
    def seconds(self) -> float:
        """From the first batch that was asked for to the end."""

    @property
    def fetch_means(self) -> list[float]: ...

    @property
    def bound(self) -> str: ...

    @property
    def stage_seconds(self) -> dict: ...

    @property
    def operator_table(self) -> str: ...

    @property
    def staleness(self) -> dict: ...

def run_pass(program: Program, scope: Scope, dataset: BatchSource, plan: TablePlan, client: Client | None, fetch: Sequence[str], fetch_info: Sequence[str], print_period: int, train: bool, mode: str, print_line: Callable, pull_dense_every: int = 1, debug: bool = False, part: int = 0) -> PassResult:
    """
    A pass of the program over the dataset. Throws: Error(data) naming file, line and slot, Error(network).
    """

def start_reading(source: BatchSource, in_turn: bool) -> None:
    """
    Begins a pass; in_turn: reader r takes the files r, r + readers, … Throws: Error(data).
    """

def stop_reading(source: BatchSource) -> None:
    """Ends a pass, wherever it is."""

def readers_of(source: BatchSource) -> int:
    """How many readers it has."""

def read_batch(source: BatchSource, reader: int) -> list | None:
    """
    [(values, offsets)] by slot, offsets None for a dense one; None after the reader's last batch. Shape: values [examples, width] of a dense slot, [total, 1] of another; offsets [examples + 1]. Throws: Error(data) naming file, line and slot.
    """

def cannot_go_on_alone(who: str, why: str) -> str:
    """
    The message of an error after which the launcher starts all processes of the job again.
    """

class GlobalShuffle:
    """
    This trainer's part of a shuffle over all trainers: it listens from the start.
    """

    def __init__(self, host: str, rank: int, trainers: int) -> None: ...

    @property
    def port(self) -> int:
        """Where it listens."""

    def set_endpoints(self, endpoints: Sequence[str]) -> None:
        """HOST:PORT of all trainers, by rank."""

class InMemoryDataset(BatchSource):
    """Examples in memory."""

    def __init__(self, trainer: int) -> None: ...

    def load(self, source: BatchSource, ids: bool, contents: bool, drop_zeros: bool, background: bool) -> None:
        """
        Reads all of `source`; background: returns at once. Throws: Error(data), and nothing is in memory then.
        """

    def wait_preload(self) -> None: ...

    def release(self) -> None:
        """Gives the memory back."""

    def set_seed(self, seed: int) -> None:
        """Decides every order that follows."""

    def local_shuffle(self, arg: int, /) -> None: ...

    def global_shuffle(self, exchange: GlobalShuffle, by_id: bool, threads: int) -> None:
        """
        Deals the examples of all trainers out again. Throws: Error(network), Error(data).
        """

    def shuffle_slots(self, arg0: Sequence[str], arg1: int, /) -> None: ...

    def merge_by_line_id(self, merge_size: int) -> dict:
        """
        Makes one example of those of one id; how many: {merged, wrong_size, conflicts}.
        """

    @property
    def rows(self) -> int:
        """Examples in memory."""

    @property
    def bytes(self) -> int:
        """Bytes that they take."""

    @property
    def is_loaded(self) -> bool: ...

    def set_reading(self, batch_size: int, threads: int, drop_last: bool) -> None: ...

class ColumnarDataset(BatchSource):
    """
    Batches of columnar files (.frc). Throws: Error(data) naming file and column.
    """

    def __init__(self, options: DatasetOptions) -> None: ...

    def bad_lines(self) -> BadLineReport:
        """None: there are no lines."""

class DataType(enum.Enum):
    float32 = 0

    float64 = 1

    float16 = 2

    bfloat16 = 3

    int8 = 4

    int16 = 5

    int32 = 6

    int64 = 7

    uint8 = 8

class Operation(enum.Enum):
    sum = 0

    prod = 1

    min = 2

    max = 3

    avg = 4

    bit_and = 5

    bit_or = 6

    bit_xor = 7

class CallKind(enum.Enum):
    all_reduce = 0

    broadcast = 1

    reduce = 2

    all_gather = 3

    reduce_scatter = 4

    all_to_all = 5

    send = 6

    receive = 7

    barrier = 8

class ArrayView:
    """
    The memory of an array, by its DLPack capsule, or by its address in the host's memory, where the owner keeps it. Throws: Error(config) for one that is not contiguous or of a type that collectives do not have.
    """

    @overload
    def __init__(self, capsule: NDArray, stream: int = 0) -> None: ...

    @overload
    def __init__(self, address: int, count: int, type: DataType, owner: object) -> None: ...

    @property
    def count(self) -> int:
        """Number of values."""

    @property
    def bytes(self) -> int: ...

    @property
    def type(self) -> DataType: ...

class Call:
    """
    A collective call with its arrays. count, counts: values for each rank; root: a place in the group.
    """

    def __init__(self, kind: CallKind, input: ArrayView | None = None, output: ArrayView | None = None, count: int = 0, operation: Operation = Operation.sum, root: int = 0, counts: Sequence[int] = [], send_counts: Sequence[int] = []) -> None: ...

    def __str__(self) -> str: ...

class StartedCall:
    """A call under way."""

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""

    def wait(self) -> None:
        """Returns when it has ended. Throws: the call's Error."""

class Communicator:
    """Ranks that make calls together, in the same order."""

    @property
    def name(self) -> str: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def run(self, call: Call) -> None:
        """
        Makes the call. Throws: Error(network) naming a rank that is gone, Error(config) where the ranks' calls differ.
        """

    def start(self, call: Call, stream: int | None = None) -> StartedCall:
        """Starts the call; stream: the cudaStream_t that it comes after."""

    def abort(self, arg: str, /) -> None: ...

    def set_call_within(self, seconds: float) -> None:
        """
        How long a call to come may take, where it was made with a call_within.
        """

class Interruption:
    """Ends meetings of ranks that are under way."""

    def __init__(self) -> None: ...

    def end(self, why: str) -> None:
        """From any thread: they throw Error(network)."""

class World:
    """The ranks of this job."""

    @staticmethod
    def join(environment: Mapping[str, str] | None = None, interruption: Interruption | None = None) -> World:
        """
        Meets the other ranks. Throws: Error(timeout) naming those that did not come.
        """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def hosts(self) -> list[str]: ...

    def lost(self) -> list[int]: ...

    def fail(self, prefix: str, why: str) -> None:
        """Fails the groups whose names begin so, and those that ranks meet for."""

    def make_communicator(self, name: str, ranks: Sequence[int] = [], hierarchical: bool | None = None, inner_size: int = 0, call_within: float | None = None, meet_within: float | None = None) -> Communicator: ...

def message_calls(values: ArrayView, tag: int) -> list[Call]:
    """The calls that give a message with a tag to rank 1 of a communicator."""

class Receive:
    """A receive that was posted."""

    @property
    def sender(self) -> int | None: ...

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""

    def wait(self, seconds: float) -> bool:
        """
        Whether the message has come within so many seconds. Throws: Error where it will not.
        """

class Inbox:
    """Messages with tags, and receives of them."""

    def __init__(self, name: str) -> None: ...

    def post(self, values: ArrayView, source: int | None, tag: int) -> Receive:
        """Takes the next message of a rank, None: of any, with this tag."""

    def withdraw(self, receive: Receive) -> bool:
        """Whether nothing has come for it, and nothing will."""

    def claim(self, source: int) -> bool:
        """Whether nobody serves the source yet: the caller does from now on."""

    def serve(self, source: int, incoming: Communicator) -> None:
        """
        Reads what rank 0 of a communicator sends to its rank 1, until it fails.
        """

    def fail(self, source: int, why: str) -> None:
        """Receives from it that wait fail."""

    def close(self) -> None:
        """No more messages."""

def plan_buckets(names: Sequence[str], counts: Sequence[int], types: Sequence[DataType], memory_mib: float, groups_size: int) -> list[list[int]]:
    """
    Indices of the gradients of each bucket, in the order in which they are reduced.
    """

class CollectiveOptions:
    """How ranks train together; memory_mib: of a bucket, -1 for no buckets."""

    def __init__(self, memory_mib: float = -1.0, groups_size: int = 1, half: bool = False, compression: tuple[int, int, Sequence[float]] | None = None, local: tuple[int, int, bool] | None = None, loss: str = '') -> None: ...

class CollectiveRunner:
    """Steps of a program whose gradients are averaged."""

    def __init__(self, program: Program, scope: Scope, groups: Sequence[Communicator], options: CollectiveOptions, timeline: Timeline | None = None) -> None: ...

    def run(self, feed: Mapping[str, object]) -> None:
        """
        A step, which every rank makes. Throws: Error(network) naming a rank that is gone.
        """

    def synchronize(self) -> None:
        """Averages what local steps have moved apart."""

    @property
    def since_average(self) -> int: ...

    def value(self, arg: str, /) -> Tensor: ...

    @property
    def schedule(self) -> str: ...

    @property
    def buckets(self) -> int: ...

class CollectivePass:
    """Passes of a program over datasets, each rank its own files."""

    def __init__(self, program: Program, scope: Scope, groups: Sequence[Communicator], options: CollectiveOptions) -> None: ...

    def run(self, dataset: BatchSource, fetch: Sequence[str], fetch_info: Sequence[str], print_period: int, print_line: Callable, debug: bool = False) -> PassResult:
        """A pass, which every rank makes. Throws: Error(data), Error(network)."""

class ReduceStrategy(enum.Enum):
    AllReduce = 0

    Reduce = 1

class GradientScale(enum.Enum):
    CoeffNumDevice = 0

    One = 1

    Customized = 2

class ReplicaOptions:
    """
    How many replicas, on how many threads (0: one each), and how they share gradients.
    """

    def __init__(self, replicas: int, threads: int, reduce: ReduceStrategy, scale: GradientScale) -> None: ...

class ReplicaRunner:
    """Runs a program on several replicas."""

    @overload
    def __init__(self, arg0: Program, arg1: Scope, arg2: ReplicaOptions, arg3: Sequence[Communicator], arg4: CollectiveOptions, /) -> None: ...

    @overload
    def __init__(self, arg0: Program, arg1: Scope, arg2: ReplicaOptions, arg3: TablePlan, arg4: Client, arg5: str, /) -> None: ...

    def run(self, feed: Mapping[str, object]) -> None:
        """
        A step; {name: array} is split along the batch. Throws: as Executor.run.
        """

    def run_each(self, feeds: Sequence[Mapping[str, object]]) -> None:
        """A step with a feed for each replica."""

    def merged(self, arg: str, /) -> Tensor: ...

    def synchronize(self) -> None: ...

    @property
    def since_average(self) -> int: ...

    def end_pass(self) -> None: ...

    def values(self, name: str) -> list[Tensor]:
        """A copy of the variable's value on each replica that had examples."""
