"""InMemoryDataset: examples that are read once, kept in memory, shuffled there, and read by as many passes as
wanted.

Source: the signatures of Paddle 2.6.2; the engine's part is dataset/memory/in_memory_dataset.h.
"""

from __future__ import annotations

import inspect
import ipaddress
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error
from fleetrun.distributed.dataset._base import DatasetBase

if TYPE_CHECKING:
    from fleetrun import _native

__all__ = ["InMemoryDataset"]

_BLOCK_ROWS = 1024
_BASE = tuple(name for name in inspect.signature(DatasetBase.init).parameters if name != "self")
_FEED_TYPES = ("MultiSlotInMemoryDataFeed", "SlotRecordInMemoryDataFeed")
_OWN = (
    "candidate_size",
    "data_feed_type",
    "drop_last",
    "drop_zeros",
    "fea_eval",
    "fleet_send_batch_size",
    "fleet_send_sleep_seconds",
    "merge_size",
    "parse_content",
    "parse_ins_id",
    "queue_num",
    "shuffle_by_uid",
    "shuffle_seed",
)


class InMemoryDataset(DatasetBase):
    """Loads the files into memory once.

        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(batch_size=1000, thread_num=2, use_var=[...], pipe_command="cat")
        dataset.set_filelist(files)
        dataset.load_into_memory()
        for epoch in range(3):
            dataset.local_shuffle()             # or global_shuffle(fleet): between the job's trainers
            exe.train_from_dataset(program, dataset)
        dataset.release_memory()

    An example takes its values, 8 bytes an id and 4 a float, and a few bytes more where counts differ.
    Zeros in sparse slots are kept; drop_zeros=True leaves them out, as Paddle does.
    """

    def __init__(self) -> None:
        super().__init__()
        self._native_memory: Any = None
        self._queue_num = 0
        self.parse_ins_id = False
        self.parse_content = False
        self._merges = False
        self._merge_size = 0
        self._candidates = 0
        self._drop_last = False
        self._drop_zeros = False
        self._input_type = 0

    # ---- Settings ----

    def init(self, **settings: Any) -> None:  # type: ignore[override]
        """Sets the dataset up.

        batch_size, thread_num, use_var, pipe_command, input_type, fs_name, fs_ugi, download_cmd: as
        QueueDataset.init.
        queue_num: trainer threads of a pass, instead of thread_num. drop_last: a thread's short last batch is
        left out. drop_zeros: zeros in sparse slots are left out, and a slot that has nothing else gets one.
        shuffle_seed: of all shuffles, 0 when not given: the same script gives the same orders. merge_size,
        parse_ins_id, parse_content,
        fleet_send_batch_size, fleet_send_sleep_seconds, fea_eval, candidate_size: as the set_ functions say.
        Throws: Error(config) naming a setting that there is not.
        """
        own, base = _split("init", settings)
        super().init(**base)
        self._apply(own)

    def update_settings(self, **settings: Any) -> None:
        """Changes some of the settings of init(); the others stay. Throws: Error(config) naming an unknown
        one."""
        own, base = _split("update_settings", settings)
        for name, value in base.items():
            if name in ("fs_name", "fs_ugi"):
                self._remote[name] = str(value)
            else:
                getattr(self, "set_thread" if name == "thread_num" else f"set_{name}")(value)
        self._apply(own)

    def _init_distributed_settings(self, **settings):
        self.update_settings(**settings)

    def _apply(self, own):
        self.set_feed_type(own.pop("data_feed_type", self._feed_type))
        candidates = own.pop("candidate_size", 10000)
        if own.pop("fea_eval", False):
            self.set_fea_eval(candidates)
        if "merge_size" in own and own["merge_size"] <= 0:
            del own["merge_size"]
        if "queue_num" in own and own["queue_num"] <= 0:
            del own["queue_num"]
        for name, value in own.items():
            getattr(self, "set_merge_by_lineid" if name == "merge_size" else f"set_{name}")(value)

    def set_feed_type(self, data_feed_type: str) -> None:
        """Accepted: MultiSlotInMemoryDataFeed, and SlotRecordInMemoryDataFeed, which is Paddle's other way to
        keep the same examples. Throws: Error(config) for another one."""
        if data_feed_type not in _FEED_TYPES:
            raise Error(
                "config",
                f"InMemoryDataset.set_feed_type({data_feed_type!r}) is not supported",
                f"use {' or '.join(_FEED_TYPES)}",
            )
        self._feed_type = data_feed_type

    def set_input_type(self, input_type: int) -> None:
        """0, an example per line. With Paddle's 1, where each value of a line is an example, lines are
        loaded, counted and shuffled, and a pass over them is refused."""
        self._input_type = int(input_type)

    def set_queue_num(self, queue_num: int) -> None:
        """Trainer threads of a pass, instead of thread_num."""
        self._queue_num = self._count("queue_num", queue_num)

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Whether each line begins with `1 ID`, before its slots and its content."""
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """Whether each line has `1 CONTENT` before its slots, behind the id."""
        self.parse_content = bool(parse_content)

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """global_shuffle() sends examples of one id to one trainer and merges them there: see
        merge_by_lineid(). Lines begin with their id then. merge_size: groups of another size are dropped; 0
        takes groups of any size."""
        if int(merge_size) != merge_size or merge_size < 0:
            raise Error("config", f"InMemoryDataset: merge_size={merge_size!r}", "it is a number from 0 on")
        self._merges = self.parse_ins_id = True
        self._merge_size = int(merge_size)

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Allows slots_shuffle(), which takes its values from this many random examples."""
        self._candidates = self._count("record_candidate_size", record_candidate_size) if fea_eval else 0

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Accepted: examples travel in blocks of up to 1024, whatever the number."""
        self._count("fleet_send_batch_size", fleet_send_batch_size)

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Accepted: nothing waits between two messages but for the receiver."""

    def set_drop_last(self, drop_last: bool) -> None:
        """Whether the last batch of each thread is left out when it is short."""
        self._drop_last = bool(drop_last)

    def set_drop_zeros(self, drop_zeros: bool) -> None:
        """Whether zeros in sparse slots are left out when examples are loaded, as Paddle does: ids of 0 and
        floats below 1e-6 in size; a slot that has nothing else gets one 0."""
        self._drop_zeros = bool(drop_zeros)

    def set_shuffle_seed(self, shuffle_seed: int) -> None:
        """Decides every order that follows: the n-th shuffle after it is the same in every run, and another
        one on each trainer. Trainers may have the same seed or different ones."""
        self._memory.set_seed(int(shuffle_seed) & (2**64 - 1))

    _feed_type = "MultiSlotInMemoryDataFeed"
    _set_feed_type = set_feed_type
    _set_input_type = set_input_type
    _set_queue_num = set_queue_num
    _set_parse_ins_id = set_parse_ins_id
    _set_parse_content = set_parse_content
    _set_merge_by_lineid = set_merge_by_lineid
    _set_fea_eval = set_fea_eval
    _set_fleet_send_batch_size = set_fleet_send_batch_size
    _set_fleet_send_sleep_seconds = set_fleet_send_sleep_seconds

    # ---- Loading ----

    def load_into_memory(self, is_shuffle: bool = False) -> None:
        """Reads all files, by thread_num readers; what was in memory before is released first.

        The order is that of the files with one reader, and the same in every run with several. is_shuffle:
        then local_shuffle(). Throws: Error(data) as a pass over a QueueDataset does; nothing is in memory
        then.
        """
        self._load(self._readers, background=False)
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begins to load in the background, by `thread_num` readers. Throws: Error(data) for files that are
        missing."""
        self._load(
            self._count("thread_num", self._readers if thread_num is None else thread_num), background=True
        )

    def wait_preload_done(self) -> None:
        """Returns when all is in memory. Throws: what load_into_memory() would have thrown."""
        self._memory.wait_preload()

    def release_memory(self) -> None:
        """Gives the memory back. Loading again is possible."""
        self._memory.release()

    def _load(self, threads, background):
        source = self._source(
            threads=threads, batch_size=_BLOCK_ROWS, ids=self.parse_ins_id, contents=self.parse_content
        )
        self._memory.load(
            source,
            ids=self.parse_ins_id,
            contents=self.parse_content,
            drop_zeros=self._drop_zeros,
            background=background,
        )

    # ---- Orders ----

    def local_shuffle(self) -> None:
        """Puts this trainer's examples into a random order."""
        self._memory.local_shuffle(self._readers)

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Deals the examples of all trainers out again, and puts what this one has then into a random order.

        fleet: of a job whose trainers all call this, after fleet.init_worker(); without, and with one
        trainer, it is a local shuffle. An example goes to a random trainer, which shuffle_seed decides; after
        set_merge_by_lineid() to XXH64(its line's id) % trainers, where it is merged with the others of its
        id. thread_num: of the shuffle here. Trainers have about as many examples as before, all together
        exactly as many.
        Throws: Error(network) naming a trainer that is gone, Error(data) naming one whose examples are
        missing; the examples are then to be loaded again. Error(config) on a trainer that was started again
        alone, after which fleetrun starts all of the job again (fleetrun-ps(7)).
        """
        threads = self._count("thread_num", thread_num)
        if fleet is None or fleet.worker_num() == 1:
            self._memory.local_shuffle(threads)
        else:
            self._deal_out(fleet, threads)
        if self._merges:
            self.merge_by_lineid()
        if fleet is not None:
            fleet.barrier_worker()

    def _deal_out(self, fleet, threads):
        from fleetrun import _native
        from fleetrun._arguments import refuse

        refuse("InMemoryDataset.global_shuffle", shuffle_by_uid=(self._shuffles_by_uid, False))
        if fleet.util.is_catching_up():
            raise Error(
                "config",
                _native.cannot_go_on_alone(
                    f"trainer {fleet.worker_index()}",
                    "the others have dealt their examples out already (global_shuffle)",
                ),
                "local_shuffle waits for nobody; with --restart=trainer=group all trainers are started again "
                "together from the first failure on",
            )
        rank, trainers, host = fleet.worker_index(), fleet.worker_num(), _own_address(fleet)
        exchange = _native.GlobalShuffle(host=host, rank=rank, trainers=trainers)
        ports = fleet.util.all_gather(exchange.port)
        hosts = _hosts(fleet, host)
        if len(ports) != trainers:
            raise Error(
                "config",
                f"global_shuffle: {len(ports)} of {trainers} trainers are there",
                "call it when all trainers of the job are there",
            )
        before = fleet.util.all_gather(self._memory.rows)
        exchange.set_endpoints([f"{host}:{port}" for host, port in zip(hosts, ports)])
        self._memory.global_shuffle(exchange, by_id=self._merges, threads=threads)
        after = fleet.util.all_gather(self._memory.rows)
        if sum(before) != sum(after):
            raise Error(
                "data",
                f"global_shuffle: the trainers had {before} examples, together {sum(before)}, and have "
                f"{after}, together {sum(after)}",
            )

    def slots_shuffle(self, slots: str | Iterable[str]) -> None:
        """In the passes that follow, these sparse slots have the values of a random other example: how much
        worse the metrics become says what the slots are worth. Each call starts from the values as they were
        read; [] brings them back. Throws: Error(config) before set_fea_eval(), or naming what is not a sparse
        slot."""
        if not self._candidates:
            raise Error(
                "config",
                "InMemoryDataset.slots_shuffle without fea_eval",
                "call set_fea_eval(record_candidate_size) first",
            )
        names = [slots] if isinstance(slots, str) else sorted(set(slots))
        self._memory.shuffle_slots(names, self._candidates)

    def merge_by_lineid(self) -> dict[str, int]:
        """Examples of one id become one, which has the sparse slots of all, and their last dense values that
        are not all 0. Dropped: groups that are not of merge_size, and groups of which two have values in one
        sparse slot. Returns how many: {"merged", "wrong_size", "conflicts"}. global_shuffle() does it after
        set_merge_by_lineid()."""
        return self._memory.merge_by_line_id(self._merge_size)

    # ---- Sizes ----

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """Examples in memory; with `fleet` of all trainers, who all call it."""
        rows = self._memory.rows
        return rows if fleet is None else int(fleet.util.all_reduce(rows))

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """The same: shuffles lose nothing, and merges are counted."""
        return self.get_memory_data_size(fleet)

    # ---- Passes ----

    def native(self, threads: int = 0) -> _native.InMemoryDataset:
        """The engine's dataset; `threads` > 0 instead of queue_num and thread_num. Throws: Error(config)."""
        if self._input_type:
            raise Error(
                "config",
                f"a pass over an InMemoryDataset with input_type={self._input_type}, whose lines are batches",
                "leave input_type at its default, 0, and write a line for each example",
            )
        self._memory.set_reading(
            batch_size=self._batch_size,
            threads=threads or self._queue_num or self._readers,
            drop_last=self._drop_last,
        )
        return self._memory

    @property
    def _memory(self):
        if self._native_memory is None:
            from fleetrun import _native
            from fleetrun.distributed.ranks import get_rank

            self._native_memory = _native.InMemoryDataset(trainer=get_rank())
        return self._native_memory


def _split(call, settings):
    """(own, base) settings. Throws: Error(config) naming one that is neither."""
    unknown = sorted(set(settings) - set(_OWN) - set(_BASE))
    if unknown:
        raise Error(
            "config",
            f"InMemoryDataset.{call}({unknown[0]}=...): there is no such setting",
            f"it has {', '.join(sorted({*_OWN, *_BASE}))}",
        )
    return (
        {name: value for name, value in settings.items() if name in _OWN},
        {name: value for name, value in settings.items() if name in _BASE},
    )


def _own_address(fleet):
    """This trainer's host: of its endpoint, else the address by which it reaches the first server."""
    endpoints = fleet.worker_endpoints()
    if len(endpoints) == fleet.worker_num():
        return endpoints[fleet.worker_index()].rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((fleet.server_endpoints()[0].rpartition(":")[0], 9))
        return asked.getsockname()[0]


def _hosts(fleet, own):
    """The hosts of all trainers, by rank; a gathering where nobody has given the trainers endpoints."""
    endpoints = fleet.worker_endpoints()
    if len(endpoints) == fleet.worker_num():
        return [name.rpartition(":")[0] for name in endpoints]
    return [
        str(ipaddress.IPv4Address(int(number)))
        for number in fleet.util.all_gather(int(ipaddress.IPv4Address(own)))
    ]
