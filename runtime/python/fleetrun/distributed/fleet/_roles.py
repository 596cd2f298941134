"""Which part of a job this process is: from the launcher's environment, or as the script says.

The variables (the environment contract; every one missing or contradictory is named in the error):
  PADDLE_PSERVERS_IP_PORT_LIST  servers, "IP:PORT,…"; without it the process is a job of its own
  PADDLE_TRAINERS_NUM           number of trainers
  TRAINING_ROLE                 TRAINER or PSERVER
  PADDLE_TRAINER_ID             a trainer's rank
  POD_IP, PADDLE_PORT           a server's own endpoint, one of the list
  PADDLE_PSERVERS               hosts of the servers, which all have PADDLE_PORT: clusters of Paddle 1.5 say
                                this instead of the list
  PADDLE_TRAINER_ENDPOINTS      trainers' endpoints, for those who ask
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun.distributed._alone import warn_where_alone
from fleetrun.distributed._membership import wait_for_place


class Role:
    """What a process is. HETER_WORKER, ALL, COORDINATOR and XPU are Paddle's; no process here has them."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    XPU = 3
    ALL = 4
    COORDINATOR = 5


def _unsaid(self: RoleMakerBase) -> Any:
    """What a role maker answers that does not say which role it makes. Throws: Error(config)."""
    raise Error(
        "config",
        f"{type(self).__name__} does not say which role this process has",
        "use PaddleCloudRoleMaker() or UserDefinedRoleMaker(...)",
    )


class RoleMakerBase:
    """A process's role, rank and peers. A subclass answers Paddle's questions, those with an underscore."""

    # fleet.util, from fleet.init() on.
    util: Any = None
    is_collective = False

    def __init__(self) -> None:
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1
        self._trainers_num = 1
        self._server_endpoints: list[Any] = []
        self._worker_endpoints: list[Any] = []

    _is_worker = _is_server = _is_first_worker = _worker_num = _server_num = _unsaid
    _worker_index = _server_index = _role_id = _node_num = _unsaid

    def _get_trainer_endpoints(self):
        return list(self._worker_endpoints)

    def _get_pserver_endpoints(self):
        return list(self._server_endpoints)

    def _all_reduce(self, input, mode="sum", comm_world="worker"):
        """None: it reaches nobody."""

    def _all_gather(self, input, comm_world="worker"):
        """None: it reaches nobody."""

    def _barrier(self, comm_world="worker"):
        """It reaches nobody."""

    def to_string(self) -> str:
        """What is known so far, as Paddle writes it."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, "
            f"worker_endpoints: {self._worker_endpoints}, server_endpoints: {self._server_endpoints}"
        )

    def is_worker(self) -> bool:
        """Whether this process is a trainer."""
        return self._is_worker()

    def is_server(self) -> bool:
        """Whether this process is a server."""
        return self._is_server()

    @property
    def rank(self) -> int:
        """The rank among those of this role."""
        return self._role_id()

    @property
    def trainers(self) -> int:
        """The number of trainers."""
        return self._worker_num()

    @property
    def server_endpoints(self) -> list[str]:
        """The servers, HOST:PORT."""
        return self._get_pserver_endpoints()

    @property
    def worker_endpoints(self) -> list[str]:
        """The trainers, HOST:PORT; empty where nobody says it."""
        return self._get_trainer_endpoints()

    @property
    def distributed(self) -> bool:
        """Whether parameters live on servers."""
        return bool(self.server_endpoints)

    def before_meeting(self) -> None:
        """What is to be done before collective trainers meet."""

    def check(self) -> None:
        """Throws: Error(config) when rank and counts disagree, or for several trainers that nothing joins."""
        if self.trainers < 1:
            raise Error("config", f"{self.trainers} trainers: there must be at least one")
        if self.is_worker() and not 0 <= self.rank < self.trainers:
            raise Error(
                "config", f"trainer rank {self.rank} with {self.trainers} trainers: ranks are below the count"
            )
        for endpoint in self.server_endpoints:
            host, colon, port = endpoint.rpartition(":")
            if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
                raise Error("config", f'server endpoint "{endpoint}" is not HOST:PORT')
        if not self.distributed and not self.is_collective and self.trainers > 1:
            raise Error(
                "config",
                f"{self.trainers} trainers and no server",
                "start servers too: fleetrun --server_num=1 --trainer_num=2 train.py; or train collectively: "
                "fleet.init(is_collective=True)",
            )


class PaddleCloudRoleMaker(RoleMakerBase):
    """Reads the environment that the launcher sets (table above), when it is first asked.

    Throws, then: Error(config) naming the variable that is missing, malformed or contradicts another.
    """

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        super().__init__()
        self.is_collective = self._is_collective = bool(is_collective)
        self._kwargs = kwargs

    def _generate_role(self):
        """Finds the role, once."""
        if not self._role_is_generated:
            self._find_role()
            self._role_is_generated = True

    def _found(self, name):
        self._generate_role()
        return getattr(self, name)

    def _is_worker(self):
        return self._found("_role") == Role.WORKER

    def _is_server(self):
        return self._found("_role") == Role.SERVER

    def _is_first_worker(self):
        return self._is_worker() and self._current_id == 0

    def _role_id(self):
        return self._found("_current_id")

    def _worker_num(self):
        return self._found("_trainers_num")

    def _server_num(self):
        return len(self._found("_server_endpoints"))

    def _get_trainer_endpoints(self):
        return list(self._found("_worker_endpoints"))

    def _get_pserver_endpoints(self):
        return list(self._found("_server_endpoints"))

    def _get_trainer_endpoint(self):
        return self._worker_endpoints[self._current_id] if self._is_worker() else ""

    def _node_num(self):
        return len({one.rpartition(":")[0] for one in self.worker_endpoints or self.server_endpoints}) or 1

    def _is_non_distributed(self):
        return self._worker_num() == 1 and not self.distributed

    def _get_local_rank(self):
        return int(os.environ.get("PADDLE_LOCAL_RANK") or 0)

    def _get_local_device_ids(self):
        return os.environ.get("PADDLE_LOCAL_DEVICE_IDS")

    def _get_world_device_ids(self):
        return os.environ.get("PADDLE_WORLD_DEVICE_IDS")

    def _heter_worker_num(self):
        return 0

    def _is_heter_worker(self):
        return False

    _is_coordinator = _is_heter_worker

    def _all_reduce(self, input, mode="sum", comm_world="worker"):
        return self.util.all_reduce(input, mode, comm_world) if self._is_joined() else input

    def _all_gather(self, input, comm_world="worker"):
        return self.util.all_gather(input, comm_world) if self._is_joined() else input

    def _barrier(self, comm_world="worker"):
        if self._is_joined():
            self.util.barrier(comm_world)

    def _is_joined(self):
        """Whether the other trainers can be asked."""
        if self.util is None:
            warn_once(
                "role_maker",
                f"{type(self).__name__} reaches no other trainer before fleet.init(role_maker): what it "
                "reduces or gathers is this process's own, as in Paddle",
            )
        return self.util is not None

    # What role makers of Paddle 1.x call these.
    generate_role = _generate_role
    is_first_worker = _is_first_worker
    worker_num = _worker_num
    server_num = _server_num
    _worker_index = _server_index = worker_index = server_index = role_id = _role_id
    get_trainer_endpoints = _get_trainer_endpoints
    get_pserver_endpoints = _get_pserver_endpoints
    all_gather = _all_gather
    barrier_worker = _barrier
    _get_node_num = _node_num

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Writes `input` reduced over all trainers into the array `output`."""
        output[...] = self._all_reduce(input, mode)

    def _find_role(self):
        wait_for_place()
        self._role = Role.WORKER
        if self.is_collective:
            self._collective()
        elif listed := _listed_servers():
            self._parameter_server(listed)
        else:
            self._alone()
        warn_where_alone()

    def _collective(self):
        # torchrun's variables count where the launcher is another one, as they do for the ranks' meeting.
        self._worker_endpoints = endpoints("PADDLE_TRAINER_ENDPOINTS")
        listed = len(self._worker_endpoints)
        self._trainers_num = _number("PADDLE_TRAINERS_NUM", listed or _number("WORLD_SIZE", 1))
        self._current_id = _number("PADDLE_TRAINER_ID", _number("RANK", 0))
        if listed and listed != self._trainers_num:
            raise Error(
                "config",
                f"PADDLE_TRAINERS_NUM={self._trainers_num}, but PADDLE_TRAINER_ENDPOINTS names {listed}",
                "name each trainer's IP:PORT there, separated by commas",
            )

    def _alone(self):
        if os.environ.get("TRAINING_ROLE") == "PSERVER":
            raise Error(
                "config",
                "TRAINING_ROLE=PSERVER, but PADDLE_PSERVERS_IP_PORT_LIST is not set",
                "set it to all servers' IP:PORT, separated by commas; fleetrun --server_num does",
            )
        self._trainers_num, self._current_id = _number("PADDLE_TRAINERS_NUM", 1), 0
        if self._trainers_num > 1:
            raise Error(
                "config",
                f"PADDLE_TRAINERS_NUM={self._trainers_num}, but PADDLE_PSERVERS_IP_PORT_LIST is not set: "
                "several trainers need servers",
                "start servers too: fleetrun --server_num=1 --trainer_num=2 train.py",
            )

    def _parameter_server(self, server_endpoints):
        self._server_endpoints = server_endpoints
        self._worker_endpoints = endpoints("PADDLE_TRAINER_ENDPOINTS")
        self._trainers_num = _number("PADDLE_TRAINERS_NUM")
        role = _required("TRAINING_ROLE")
        if role == "TRAINER":
            self._current_id = _number("PADDLE_TRAINER_ID")
            if not self._current_id < self._trainers_num:
                raise Error(
                    "config",
                    f"PADDLE_TRAINER_ID={self._current_id}, but PADDLE_TRAINERS_NUM={self._trainers_num}",
                    "trainer ids count from 0",
                )
        elif role == "PSERVER":
            self._role = Role.SERVER
            own = f"{_required('POD_IP')}:{_port()}"
            if own not in self._server_endpoints:
                raise Error(
                    "config",
                    f"POD_IP:PADDLE_PORT={own} is not one of {_servers_variable()}="
                    f"{','.join(self._server_endpoints)}",
                    "the two must be spelled the same",
                )
            self._current_id = self._server_endpoints.index(own)
        else:
            raise Error("config", f"TRAINING_ROLE={role} is not a role", "set it to TRAINER or PSERVER")


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """The role as the script says: current_id, role (Role.WORKER or Role.SERVER), worker_num or
    worker_endpoints, server_endpoints. Collective trainers that no launcher has started meet at the first of
    worker_endpoints. Any other argument is ignored with a warning, as in Paddle.

    Throws, when it is first asked: Error(config) naming the argument that is missing or contradicts another.
    """

    def __init__(
        self,
        is_collective: bool = False,
        init_gloo: bool = False,
        current_id: int | None = None,
        role: int | None = None,
        worker_num: int = 0,
        worker_endpoints: Sequence[str] = (),
        server_endpoints: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(is_collective, **kwargs)
        self._said = (current_id, role, worker_num, worker_endpoints, server_endpoints)

    def _find_role(self):
        current_id, role, worker_num, worker_endpoints, server_endpoints = self._said
        for name in sorted(self._kwargs):
            warn_once(
                f"UserDefinedRoleMaker.{name}",
                f"UserDefinedRoleMaker({name}={self._kwargs[name]!r}) has no effect: it reads current_id, "
                "role, worker_num, worker_endpoints and server_endpoints",
            )
        if current_id is None:
            raise Error(
                "config",
                "UserDefinedRoleMaker: current_id is not given",
                "it is this process's rank in its role",
            )
        if role is None:
            role = Role.WORKER if self.is_collective else None
        if role not in (Role.WORKER, Role.SERVER):
            raise Error(
                "config",
                f"UserDefinedRoleMaker: role={role!r} is not a role",
                "use Role.WORKER or Role.SERVER",
            )
        self._role = role
        self._current_id = int(current_id)
        self._worker_endpoints = list(worker_endpoints or ())
        self._server_endpoints = list(server_endpoints or ())
        self._trainers_num = int(worker_num) or len(self._worker_endpoints)
        if self._trainers_num < 1:
            raise Error("config", "UserDefinedRoleMaker: neither worker_num nor worker_endpoints is given")
        if role == Role.SERVER and not self._current_id < len(self._server_endpoints):
            raise Error(
                "config",
                f"UserDefinedRoleMaker: server {self._current_id}, but "
                f"{len(self._server_endpoints)} server_endpoints",
            )

    def before_meeting(self) -> None:
        """Says where the trainers are, to what reads it from the environment, unless a launcher has said
        it."""
        if self.worker_endpoints and not os.environ.get("PADDLE_TRAINER_ENDPOINTS"):
            os.environ.update(
                PADDLE_TRAINER_ID=str(self.rank),
                PADDLE_TRAINERS_NUM=str(self.trainers),
                PADDLE_TRAINER_ENDPOINTS=",".join(self.worker_endpoints),
                PADDLE_CURRENT_ENDPOINT=self.worker_endpoints[self.rank],
            )


def _servers_variable():
    name = "PADDLE_PSERVERS_IP_PORT_LIST"
    return name if os.environ.get(name) or not os.environ.get("PADDLE_PSERVERS") else "PADDLE_PSERVERS"


def _required(name):
    value = os.environ.get(name)
    if not value:
        raise Error(
            "config",
            f"{name} is not set, but {_servers_variable()} is",
            "start the script with fleetrun --server_num=… --trainer_num=…, which sets all of them",
        )
    return value


def _number(name, default=None):
    value = os.environ.get(name)
    if not value and default is not None:
        return default
    value = value or _required(name)
    if not value.isdigit():
        raise Error("config", f'{name}="{value}" is not a number')
    return int(value)


def _listed_servers():
    listed = endpoints("PADDLE_PSERVERS_IP_PORT_LIST")
    return listed or [host if ":" in host else f"{host}:{_port()}" for host in endpoints("PADDLE_PSERVERS")]


def _port():
    """This process's, and of all servers where only their hosts are said: with Paddle 1.5's default then."""
    return _number("PADDLE_PORT", None if os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST") else 6174)


def endpoints(name):
    text = os.environ.get(name)
    if text is None and os.environ.get("PADDLE_BACKUP_ENV_PATH"):  # too long for the environment
        with open(os.environ["PADDLE_BACKUP_ENV_PATH"]) as file:
            text = json.load(file).get(name)
    return [endpoint.strip() for endpoint in (text or "").split(",") if endpoint.strip()]
