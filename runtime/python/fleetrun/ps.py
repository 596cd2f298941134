"""Parameter servers for your own trainer: numpy arrays in, numpy arrays out, without the engine.

Tables live on servers; trainers pull rows, compute gradients in whatever way, and push them; the table's rule
applies them. Servers and trainers declare the same list of tables, in the same order, and compare it when
they meet:

    from fleetrun import ps

    tables = [ps.SparseTable("emb", 8, rule=ps.Rule("adagrad", learning_rate=0.05),
    initializer=ps.Uniform(-0.01, 0.01)),
              ps.DenseTable("fc", 9, rule=ps.Rule("sgd", learning_rate=0.1))]
    if ps.is_server():
        ps.Server(tables).wait()              # until all trainers have said goodbye
    else:
        with ps.Client(tables) as client:     # says goodbye at the end
            rows = client.pull("emb", keys)                  # float32 [len(keys), 8]
            client.push("emb", keys, gradients)              # float32 [len(keys), 8]

run as `fleetrun --server_num=2 --trainer_num=2 script.py`. Without fleetrun, in one process, Client(tables)
has its servers inside itself; or give the endpoints.

Every error is a fleetrun.Error: kind "config" when two sides disagree or a call cannot mean anything, "data"
for gradients that are NaN or infinite (nothing of that push is applied then), "network" when a server or a
trainer is gone. fleetrun-ps(7) explains modes, exactly-once, checkpoints.
"""

from __future__ import annotations

import json
import os
import threading

import numpy as np

from fleetrun import _native, _position, elastic
from fleetrun._arguments import warn_of_save
from fleetrun._error import Error
from fleetrun._position import Position
from fleetrun._types import Any, ArrayLike, Iterable, Mapping, Sequence
from fleetrun._worlds import addresses_of, tell_server

__all__ = [
    "Accessor", "Admission", "Client", "Constant", "DenseTable", "Initializer", "is_server", "MODES",
    "Normal", "Position", "PositionTable", "Rule", "Server", "SparseTable", "TruncatedNormal", "Uniform",
]  # fmt: skip

MODES = ("async", "sync", "half_async", "geo")


class Rule(dict):
    """How a gradient changes a row: kind is "sgd", "momentum", "adagrad", "adam", "ftrl", "rmsprop",
    "adamax", "adadelta", "sum" and others, the rest are its numbers: learning_rate, beta1, beta2, epsilon,
    rho, initial_accumulator, momentum, nesterov, centered, l1, l2, learning_rate_power, l1_decay, l2_decay,
    own_decay (AdamW's), scheduled (True: Client.set_rate multiplies the learning rate), low, high (values are
    clipped to [low, high]). Source: ps/base/table_config.h."""

    def __init__(self, kind: str = "sgd", **numbers: Any) -> None:
        super().__init__(kind=kind, **numbers)


class Initializer(dict):
    """First values of a row, a pure function of seed, table, key and column. Constant, Uniform, Normal and
    TruncatedNormal make one."""

    def __init__(self, kind: str = "constant", a: float = 0.0, b: float = 0.0, seed: int = 0) -> None:
        super().__init__(kind=kind, a=float(a), b=float(b), seed=seed)


def Constant(value: Any = 0.0) -> Initializer:
    """All values are `value`."""
    return Initializer("constant", value)


def Uniform(low: float, high: float, seed: int = 0) -> Initializer:
    """Between low and high."""
    return Initializer("uniform", low, high, seed)


def Normal(mean: float, deviation: float, seed: int = 0) -> Initializer:
    """Normally distributed."""
    return Initializer("normal", mean, deviation, seed)


def TruncatedNormal(mean: float, deviation: float, seed: int = 0) -> Initializer:
    """Normally distributed, and within two deviations of the mean."""
    return Initializer("truncated_normal", mean, deviation, seed)


class Accessor(dict):
    """What a row keeps beside its values: kind "plain" nothing, "sparse" statistics (show, click, unseen
    days, delta score), "ctr" the same, and a pull gives show and click before the values. Numbers:
    nonclk_coeff, click_coeff, embedx_threshold, base_threshold, delta_threshold, delta_keep_days,
    show_click_decay_rate, delete_threshold, delete_after_unseen_days, show_scale, zero_init, embed_rule (a
    Rule of column 0). Source: ps/base/table_config.h."""

    def __init__(self, kind: str = "plain", **numbers: Any) -> None:
        super().__init__(kind=kind, **numbers)


class Admission(dict):
    """When a key gets a row: kind "always"; "count" with threshold=N from its Nth push on; "count_bloom" the
    same in bounded memory, perhaps early, never late; "probability" with probability=P. Until then its pulls
    give initial values."""

    def __init__(self, kind: str = "always", **numbers: Any) -> None:
        super().__init__(kind=kind, **numbers)


class _Table:
    sparse = False
    min_block = 0
    on_disk = False
    expire_seconds = 0

    def __init__(self, name, width, rule, initializer=None, accessor=None, admission=None):
        if not isinstance(name, str) or not name:
            raise Error("config", f"a table's name is {name!r}, not a text")
        if isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 1:
            raise Error("config", f"table '{name}': width is {width!r}, not a number of values")
        self.name = name
        self.width = int(width)
        self._parts: Any = [
            Rule(part) if isinstance(part, str) else dict(part or {})
            for part in (rule, initializer, accessor, admission)
        ]

    def _config(self, number):
        try:
            about = (
                number,
                self.name,
                self.sparse,
                self.width,
                *self._parts,
                self.min_block,
                self.on_disk,
                self.expire_seconds,
            )
            return _native.table_config(*about)
        except Error as error:
            raise Error(error.kind, f"table '{self.name}': {error.what}", error.hint, error.context) from None

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.width})"


class SparseTable(_Table):
    """Rows by key (any int64 or uint64), `width` float32 each; a row is made by the first pull or push of its
    key.
    on_disk: rows that are not used for long may leave memory for the server's disk (fleetrun-environment(7)
    says how much memory they get).
    expire_seconds: rows that no push or assign has touched for so long are erased, by the time of day; 0:
    none. They go at most a quarter of that later, or with the next shrink or save (fleetrun-ps(7))."""

    sparse = True

    def __init__(
        self,
        name: str,
        width: int,
        rule: Rule | dict[str, Any] | str = "sgd",
        initializer: Initializer | dict[str, Any] | None = None,
        accessor: Accessor | dict[str, Any] | None = None,
        admission: Admission | dict[str, Any] | None = None,
        on_disk: bool = False,
        expire_seconds: int = 0,
    ) -> None:
        super().__init__(name, width, rule, initializer, accessor, admission)
        self.on_disk = bool(on_disk)
        if not isinstance(expire_seconds, (int, np.integer)) or not 0 <= expire_seconds < 2**31:
            raise Error("config", f"table '{name}': expire_seconds is {expire_seconds!r}, not whole seconds")
        self.expire_seconds = int(expire_seconds)


class DenseTable(_Table):
    """`width` float32 in all, split over the servers. One trainer gives it first values (Client.set_dense, or
    load).
    min_block: no server gets fewer values than this, so that a small table lies on one server."""

    def __init__(
        self, name: str, width: int, rule: Rule | dict[str, Any] | str = "sgd", min_block: int = 0
    ) -> None:
        super().__init__(name, width, rule)
        self.min_block = int(min_block)


def PositionTable(name: str = "position") -> SparseTable:
    """Where the places of readers are kept (Position)."""
    return SparseTable(name, _position.WIDTH, rule="sum")


def _configs(tables):
    configs = [table._config(number) for number, table in enumerate(tables)]
    _native.check_tables(configs)
    return configs


def _role():
    from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker

    return PaddleCloudRoleMaker(is_collective=False)


def _in_job():
    return bool(os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST"))


def is_server() -> bool:
    """Whether fleetrun started this process as a server. Throws: Error(config) for variables that make no
    sense."""
    return _in_job() and _role().is_server()


class Server:
    """A parameter server in this process.

    tables: a list of SparseTable and DenseTable. mode: one of MODES, the same as the trainers'. Within a
    fleetrun job the rest comes from there; else: rank of `servers` servers, trainers, endpoint ("HOST:PORT",
    port 0 for any).
    load: a directory that Client.save has written; trainers are let in once it is loaded. Within a job they
    are let in by wait(), stat() or endpoint, so that load() may come before.
    Throws: Error(config) for what cannot work, Error(network) for a port that is taken, Error(data).
    """

    def __init__(
        self,
        tables: Iterable[SparseTable | DenseTable],
        mode: str = "async",
        endpoint: str | None = None,
        rank: int = 0,
        servers: int = 1,
        trainers: int = 1,
        load: str | os.PathLike[str] | None = None,
    ) -> None:
        # Who gives an endpoint may have clients that use it before anything else is asked of this.
        self._listens = endpoint is not None and load is None
        self._listening = threading.Lock()
        in_job = endpoint is None
        if endpoint is None:
            if not is_server():
                raise Error(
                    "config",
                    "this process is not a server of a fleetrun job, and has no endpoint",
                    "start it with fleetrun --server_num=1 --trainer_num=1, or give endpoint='127.0.0.1:0'",
                )
            role = _role()
            endpoint, rank = role.server_endpoints[role.rank], role.rank
            servers, trainers = len(role.server_endpoints), role.trainers
        self._server = _native.RpcServer(
            rank=rank,
            servers=servers,
            trainers=trainers,
            mode=mode,
            tables=_configs(tables),
            endpoint=endpoint,
            listens=self._listens,
            epoch=elastic.epoch() if in_job else 0,
            addresses=addresses_of(role.server_endpoints) if in_job else None,
        )
        if load is not None:
            self.load(load)
            self._listen()
        if in_job:
            elastic.on_world_change(self._tell, thread=True)
            if (world := elastic.world()) is not None:
                self._tell(world)

    def _tell(self, world):
        tell_server(self._server, world)

    def _listen(self):
        with self._listening:
            if not self._listens:
                self._server.listen()
            self._listens = True

    @property
    def endpoint(self) -> str:
        """ "HOST:PORT", with the port that was bound."""
        self._listen()
        return self._server.endpoint

    def load(self, directory: str | os.PathLike[str]) -> None:
        """Takes what Client.save has written; where the newest save is damaged the one before it, with a
        warning. Throws: Error(data); Error(config) once a trainer has come."""
        warn_of_save(self._server.load(os.fspath(directory)))

    def wait(self) -> None:
        """Serves until all trainers have said goodbye, or stop()."""
        self._listen()
        self._server.wait()

    def stop(self) -> None:
        """Ends the server; whoever still uses it gets Error(network)."""
        self._server.stop()

    def stat(self) -> dict[str, Any]:
        """What it has done so far, as Client.stat() has it of each server."""
        self._listen()
        return json.loads(self._server.stat())


class Client:
    """A trainer's view of all servers together.

    tables, mode: as the servers have them. Within a fleetrun job the rest comes from there. Else: endpoints
    (list of "HOST:PORT" by rank), trainer (this one's rank) of `trainers`; without endpoints the servers are
    in this process.
    identity: a number of your own, unlike any other trainer's. A trainer that is started again with it is the
    same to the servers as before, and goes on at next_change; without, its servers take it for another, and
    in mode sync what its script does again up to where it was is done at once (fleetrun-ps(7)). Modes async
    and sync.
    Threads: any number at once. As a context manager it says goodbye at the end, and at sys.exit(0), unless
    another exception leaves it.
    Throws: Error(network) naming servers that do not answer, Error(config) naming what the two sides disagree
    on.
    """

    def __init__(
        self,
        tables: Iterable[SparseTable | DenseTable],
        mode: str = "async",
        endpoints: Sequence[str] | None = None,
        trainer: int = 0,
        trainers: int = 1,
        identity: int = 0,
    ) -> None:
        tables = list(tables)
        configs = _configs(tables)
        if mode not in MODES:
            raise Error("config", f"there is no mode {mode!r}", f"there are {', '.join(MODES)}")
        if not isinstance(identity, int) or not 0 <= identity < 2**64:
            raise Error("config", f"identity is {identity!r}, not a number from 1 to 2**64 - 1")
        if identity and mode not in ("async", "sync"):
            raise Error(
                "config",
                f"identity in mode {mode!r}: it merges pushes, so that theirs have no numbers of their own",
                "use mode async or sync, or no identity",
            )
        of_job = endpoints is None and _in_job()
        if of_job:
            role = _role()
            if role.is_server():
                raise Error(
                    "config", "this process is a server of its job, not a trainer", "make a ps.Server here"
                )
            endpoints, trainer, trainers = role.server_endpoints, role.rank, role.trainers
        self.trainer, self.trainers, self.mode, self.identity = trainer, trainers, mode, identity
        self._entries = {
            table.name: (number, table, _native.pulled_width(config))
            for number, (table, config) in enumerate(zip(tables, configs))
        }
        if endpoints is None:
            if trainers != 1:
                raise Error(
                    "config",
                    f"{trainers} trainers and no endpoints",
                    "give the endpoints of the servers, or start the script with fleetrun",
                )
            self._client = _native.make_in_process(mode, configs)
        else:
            world = elastic.world() if of_job else None
            self._client = _native.connect(
                list(endpoints),
                trainer,
                trainers,
                mode,
                configs,
                epoch=elastic.epoch() if of_job else 0,
                launcher=world.node if world else "",
                identity=identity,
                addresses=addresses_of(endpoints) if of_job else None,
            )
            if of_job:
                elastic.on_world_change(self._tell, thread=True)

    def _tell(self, world):
        self._client.set_epoch(world.epoch)

    def _table(self, name, sparse):
        entry = self._entries.get(name)
        if entry is None:
            raise Error("config", f"there is no table {name!r}", f"there are {', '.join(self._entries)}")
        if entry[1].sparse != sparse:
            kinds = ("sparse", "dense") if entry[1].sparse else ("dense", "sparse")
            raise Error("config", f"table '{name}' is {kinds[0]}, used as {kinds[1]}")
        return entry

    @staticmethod
    def _keys(name, keys):
        given, keys = keys, np.asarray(keys)
        if keys.dtype.kind == "f" and not isinstance(given, np.ndarray):
            # numpy makes floats of a list of both small numbers and some above 2**63
            whole = np.asarray(given, dtype=object)
            if all(isinstance(key, (int, np.integer)) and -(2**63) <= key < 2**64 for key in whole.flat):
                keys = np.array([int(key) % 2**64 for key in whole.flat], np.uint64).reshape(whole.shape)
        if keys.dtype.kind not in "iu" and keys.size:
            raise Error("config", f"table '{name}': keys are {keys.dtype}, not integers")
        return np.asarray(keys, dtype=np.int64 if keys.dtype.kind == "i" else np.uint64, order="C").view(
            np.uint64
        )

    @staticmethod
    def _floats(name, what, values, shape):
        values = np.asarray(values)
        if values.dtype.kind not in "fiu":
            raise Error("config", f"table '{name}': {what} are {values.dtype}, not numbers")
        if values.shape != tuple(shape):
            raise Error(
                "config", f"table '{name}': {what} have the shape {list(values.shape)}, not {list(shape)}"
            )
        return np.asarray(values, dtype=np.float32, order="C")

    def pull(self, table: str, keys: ArrayLike, create: bool = True) -> np.ndarray:
        """The rows of `keys`. A key may be there more than once.

        Shape: keys any shape of integers; returns float32 [*keys.shape, width], with show and click before
        the values for an accessor of kind "ctr" (width + 2 then). create=False makes no rows: an unknown key
        gives its initial values.
        """
        return self.pull_many({table: keys}, create)[table]

    def push(
        self,
        table: str,
        keys: ArrayLike,
        gradients: ArrayLike,
        shows: ArrayLike | None = None,
        clicks: ArrayLike | None = None,
        slot: int = 0,
        thread: int = 0,
    ) -> None:
        """Applies gradients to the rows of `keys`, each push exactly once; those of equal keys are added up
        first.

        Shape: keys any shape of integers, gradients [*keys.shape, width of the table]; shows and clicks as
        keys, for accessors with statistics (1 and 0 where they are missing). Mode sync: returns when the step
        has been applied, that is, when every participant (trainer, thread) of the pass has pushed it.
        Throws: Error(data) when a gradient is NaN or infinite; nothing was applied then.
        """
        number, entry, _ = self._table(table, True)
        wanted = self._keys(table, keys)
        steps = self._floats(table, "gradients", gradients, (*wanted.shape, entry.width)).reshape(-1)
        shown, clicked = (
            None if value is None else self._floats(table, what, value, wanted.shape).reshape(-1)
            for what, value in (("shows", shows), ("clicks", clicks))
        )
        _native.ps_push(self._client, number, wanted.reshape(-1), steps, shown, clicked, slot, thread)

    def pull_many(self, tables: Mapping[str, ArrayLike], create: bool = True) -> dict[str, np.ndarray]:
        """pull() of several tables in one request to each server. tables: keys by the name of their table;
        returns rows by the same names."""
        asked = {name: (self._table(name, True), self._keys(name, keys)) for name, keys in tables.items()}
        wanted = [(entry[0], keys.reshape(-1), entry[2]) for entry, keys in asked.values()]
        rows = _native.ps_pull_many(self._client, wanted, bool(create))
        return {
            name: np.asarray(values).reshape(*keys.shape, entry[2])
            for (name, (entry, keys)), values in zip(asked.items(), rows)
        }

    def set_rate(self, rate: float) -> None:
        """What rules with scheduled=True multiply their learning rate by, in pushes from now on: 1 at first.
        Mode sync: all trainers say the same."""
        self._client.set_rate(rate)

    def push_many(self, tables: Mapping[str, tuple[ArrayLike, ArrayLike]], thread: int = 0) -> None:
        """push() to several tables as one change, in one request to each server: all of it is applied, or
        nothing. tables: (keys, gradients) by the name of their table. Mode sync: one step."""
        changes = []
        for name, (keys, gradients) in tables.items():
            number, entry, _ = self._table(name, True)
            wanted = self._keys(name, keys)
            steps = self._floats(name, "gradients", gradients, (*wanted.shape, entry.width))
            changes.append((number, wanted.reshape(-1), steps.reshape(-1)))
        _native.ps_push_many(self._client, changes, thread)

    def pull_dense(self, table: str) -> np.ndarray:
        """The values of a dense table. Shape: float32 [width]. Throws: Error(config) before anybody set or
        loaded them."""
        number, entry, _ = self._table(table, False)
        return np.asarray(self._client.pull_dense(number, entry.width))

    def push_dense(self, table: str, gradients: ArrayLike, thread: int = 0) -> None:
        """Applies gradients to a dense table. Shape: [width]."""
        number, entry, _ = self._table(table, False)
        _native.ps_push_dense(
            self._client, number, self._floats(table, "gradients", gradients, (entry.width,)), thread
        )

    def set_dense(self, table: str, values: ArrayLike) -> None:
        """First values of a dense table; its rule's state is reset. Shape: [width]."""
        number, entry, _ = self._table(table, False)
        self._client.set_dense(number, self._floats(table, "values", values, (entry.width,)))

    def assign(self, table: str, keys: ArrayLike, rows: ArrayLike) -> None:
        """Sets the rows of `keys`, each key once: for values that were trained elsewhere. The rule's state is
        that of new rows, shows and clicks stay, and admission is not asked. Not a step: in mode sync no other
        trainer is waited for, so that one trainer assigns, and all meet at barrier() before they train.

        Shape: keys any shape of integers, rows [*keys.shape, width of the table]; of any length, it goes in
        changes of 4 Mi values. Throws: Error(config) for a key that is there twice, Error(data) for a value
        that is NaN or infinite; nothing was assigned then.
        """
        number, entry, _ = self._table(table, True)
        wanted = self._keys(table, keys)
        values = self._floats(table, "rows", rows, (*wanted.shape, entry.width))
        _native.ps_assign(self._client, number, wanted.reshape(-1), values.reshape(-1))

    def get(self, table: str, keys: ArrayLike) -> dict[str, np.ndarray]:
        """Rows as they are stored; none is made. Returns a dictionary: found bool [n], values float32 [n,
        width] (0 where not found), and for accessors with statistics slot, unseen_days, delta_score, show and
        click [n]. Shape: keys [n]."""
        number, _, _ = self._table(table, True)
        found, values, statistics = _native.ps_get(self._client, number, self._keys(table, keys).reshape(-1))
        rows = {"found": np.asarray(found, dtype=bool), "values": np.asarray(values)}
        if statistics:
            for name, column in zip(
                ("slot", "unseen_days", "delta_score", "show", "click"), zip(*statistics)
            ):
                rows[name] = np.asarray(column)
        return rows

    def rows(self, table: str) -> int:
        """How many rows a sparse table has on all servers."""
        return self._client.rows(self._table(table, True)[0])

    def shrink(self, table: str) -> int:
        """Ends a day: shows and clicks decay, rows that the accessor lets expire go. Returns how many
        went."""
        return _native.ps_shrink(self._client, self._table(table, True)[0])

    def stat(self) -> list[dict[str, Any]]:
        """What each server holds and has done so far: a list of dictionaries by rank, as `fleetrun ps stat
        --json`."""
        return [json.loads(text) for text in _native.ps_stat(self._client)]

    @property
    def next_change(self) -> int:
        """The number of the next push, from 1 (set_dense, shrink and each part of assign count, too). Right
        after a client with an identity was made: every server has applied all before it, and perhaps some
        from it on; repeat those from it on, in their order, and none is applied twice."""
        return self._client.next_change

    def barrier(self) -> None:
        """Returns when every trainer has called it as often as this one."""
        self._client.barrier()

    def sum(self, values: ArrayLike) -> np.ndarray:
        """The sum over all trainers, in trainer order. Shape: any, the same on all; returns float64."""
        values = np.asarray(values, dtype=np.float64, order="C")
        return np.asarray(self._client.all_reduce_sum(values.reshape(-1))).reshape(values.shape)

    def begin_pass(self, threads: int = 1) -> None:
        """Mode sync: a pass has a fixed set of participants, threads 0 … threads-1 of every trainer. Push
        only in one."""
        _native.ps_begin_pass(self._client, threads)

    def leave_pass(self, thread: int = 0) -> None:
        """Mode sync: this thread pushes no more in the pass."""
        _native.ps_leave_pass(self._client, thread)

    def save(self, directory: str | os.PathLike[str], mode: int = 0) -> None:
        """Every server writes its part of all tables below `directory` on its own host; whole or not at all.
        mode: 0 all rows, 1 those whose score has grown by their accessor's delta_threshold since the last
        save of mode 1 or 2 (at the default of 0, and in tables without statistics, all), 2 those that make up
        a model to serve, 3 a checkpoint."""
        _native.ps_save(self._client, os.fspath(directory), mode)

    def export(self, directory: str | os.PathLike[str], since: int = 0) -> int:
        """Every server writes what has changed since the export of that number: rows, and keys whose rows
        have gone; 0: all rows. Returns the number of this one. Who loads an export of all rows, and those
        after it in their order, has what the servers had. Each needs a directory of its own. Returns 0, and
        does nothing, in a trainer that was started again and is catching up: begin anew then. Throws:
        Error(config) where numbers do not continue, because the servers were started or loaded since."""
        return self._client.export_rows(os.fspath(directory), since)

    def load(self, directory: str | os.PathLike[str]) -> str:
        """Every server takes what any number of servers has saved; whole or not at all. Where the newest save
        is damaged the one before it is taken, and what is wrong is returned; "" when all is well. Throws:
        Error(data)."""
        return _native.ps_load(self._client, os.fspath(directory))

    def goodbye(self) -> None:
        """This trainer is done. When all have said so, the servers end."""
        self._client.goodbye()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Any, error: Any, *_: Any) -> None:
        # sys.exit() and sys.exit(0) are how a script says that all is well.
        if kind is None or isinstance(error, SystemExit) and error.code in (None, 0):
            self.goodbye()
