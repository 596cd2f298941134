"""Which part of a job this process is: from the launcher's environment, or as the script says.

The variables (the environment contract; every one missing or contradictory is named in the error):
  PADDLE_PSERVERS_IP_PORT_LIST  servers, "IP:PORT,…"; without it the process is a job of its own
  PADDLE_TRAINERS_NUM           number of trainers
  TRAINING_ROLE                 TRAINER or PSERVER
  PADDLE_TRAINER_ID             a trainer's rank
  POD_IP, PADDLE_PORT           a server's own endpoint, one of the list
  PADDLE_TRAINER_ENDPOINTS      trainers' endpoints, for those who ask
"""

import json
import os
from collections.abc import Sequence
from typing import Any

from fleetrun._arguments import warn_once
from fleetrun._error import Error


class Role:
    """What a process is."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """A process's role, rank and peers. `distributed`: there are servers elsewhere."""

    # fleet.util, from when there is a Fleet.
    util: Any = None

    def __init__(self, is_collective: bool = False) -> None:
        self.is_collective = bool(is_collective)
        self.role = Role.WORKER
        self.rank = 0
        self.trainers = 1
        self.server_endpoints: list[Any] = []
        self.worker_endpoints: list[Any] = []

    @property
    def distributed(self) -> bool:
        """Whether parameters live on servers."""
        return bool(self.server_endpoints)

    def is_server(self) -> bool:
        """Whether this process is a server."""
        return self.role == Role.SERVER

    def is_worker(self) -> bool:
        """Whether this process is a trainer."""
        return self.role == Role.WORKER

    # Paddle's spellings, used by scripts that ask the role maker itself.
    _is_server = is_server
    _is_worker = is_worker

    def _is_first_worker(self):
        return self.is_worker() and self.rank == 0

    def _all_reduce(self, input, mode="sum", comm_world="worker"):
        return self._need_util().all_reduce(input, mode, comm_world)

    def _all_gather(self, input, comm_world="worker"):
        return self._need_util().all_gather(input, comm_world)

    def _barrier(self, comm_world="worker"):
        self._need_util().barrier(comm_world)

    def _need_util(self):
        if self.util is None:
            raise Error("config", "a role maker is asked before fleet.init", "call fleet.init(...) first")
        return self.util

    def _worker_index(self):
        return self.rank

    def _worker_num(self):
        return self.trainers

    def _server_num(self):
        return len(self.server_endpoints)

    def _server_index(self):
        return self.rank if self.is_server() else 0

    def _role_id(self):
        return self.rank

    def _is_non_distributed(self):
        return not self.distributed and self.trainers == 1

    def _get_trainer_endpoints(self):
        return list(self.worker_endpoints)

    def _get_trainer_endpoint(self):
        return self.worker_endpoints[self.rank] if self.is_worker() else ""

    def _get_pserver_endpoints(self):
        return list(self.server_endpoints)

    def _node_num(self):
        return len({one.rpartition(":")[0] for one in self.worker_endpoints or self.server_endpoints}) or 1

    def _get_local_rank(self):
        return int(os.environ.get("PADDLE_LOCAL_RANK") or 0)

    def _generate_role(self):
        """Nothing: a role maker knows its role from when it is made."""

    # What role makers of Paddle 1.x call these.
    generate_role = _generate_role
    is_first_worker = _is_first_worker
    worker_index = _worker_index
    worker_num = _worker_num
    server_index = _server_index
    server_num = _server_num
    role_id = _role_id
    get_trainer_endpoints = _get_trainer_endpoints
    get_pserver_endpoints = _get_pserver_endpoints
    all_gather = _all_gather
    barrier_worker = _barrier

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
    """Reads the environment that the launcher sets (table above).

    Throws: Error(config) naming the variable that is missing, malformed or contradicts another.
    """

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        super().__init__(is_collective)
        if self.is_collective:
            self._collective()
        elif os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST"):
            self._parameter_server()
        else:
            self._alone()

    def _collective(self):
        self.trainers = _number("PADDLE_TRAINERS_NUM", 1)
        self.rank = _number("PADDLE_TRAINER_ID", 0)
        self.worker_endpoints = _list("PADDLE_TRAINER_ENDPOINTS")

    def _alone(self):
        if os.environ.get("TRAINING_ROLE") == "PSERVER":
            raise Error(
                "config",
                "TRAINING_ROLE=PSERVER, but PADDLE_PSERVERS_IP_PORT_LIST is not set",
                "set it to all servers' IP:PORT, separated by commas; fleetrun --server_num does",
            )
        self.trainers = _number("PADDLE_TRAINERS_NUM", 1)
        self.rank = _number("PADDLE_TRAINER_ID", 0)
        if self.trainers > 1:
            raise Error(
                "config",
                f"PADDLE_TRAINERS_NUM={self.trainers}, but PADDLE_PSERVERS_IP_PORT_LIST is not set: "
                "several trainers need servers",
                "start servers too: fleetrun --server_num=1 --trainer_num=2 train.py",
            )

    def _parameter_server(self):
        self.server_endpoints = _list("PADDLE_PSERVERS_IP_PORT_LIST")
        self.worker_endpoints = _list("PADDLE_TRAINER_ENDPOINTS")
        self.trainers = _number("PADDLE_TRAINERS_NUM")
        role = _required("TRAINING_ROLE")
        if role == "TRAINER":
            self.rank = _number("PADDLE_TRAINER_ID")
            if not self.rank < self.trainers:
                raise Error(
                    "config",
                    f"PADDLE_TRAINER_ID={self.rank}, but PADDLE_TRAINERS_NUM={self.trainers}",
                    "trainer ids count from 0",
                )
        elif role == "PSERVER":
            self.role = Role.SERVER
            own = f"{_required('POD_IP')}:{_number('PADDLE_PORT')}"
            if own not in self.server_endpoints:
                raise Error(
                    "config",
                    f"POD_IP:PADDLE_PORT={own} is not one of PADDLE_PSERVERS_IP_PORT_LIST="
                    f"{','.join(self.server_endpoints)}",
                    "the two must be spelled the same",
                )
            self.rank = self.server_endpoints.index(own)
        else:
            raise Error("config", f"TRAINING_ROLE={role} is not a role", "set it to TRAINER or PSERVER")


class UserDefinedRoleMaker(RoleMakerBase):
    """The role as the script says: current_id, role (Role.WORKER or Role.SERVER), worker_num or
    worker_endpoints, server_endpoints. Collective trainers that no launcher has started meet at the first of
    worker_endpoints. Any other argument is ignored with a warning, as in Paddle.

    Throws: Error(config) naming the argument that is missing or contradicts another.
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
        super().__init__(is_collective)
        for name in sorted(kwargs):
            warn_once(
                f"UserDefinedRoleMaker.{name}",
                f"UserDefinedRoleMaker({name}={kwargs[name]!r}) has no effect: it reads current_id, role, "
                "worker_num, worker_endpoints and server_endpoints",
            )
        if current_id is None:
            raise Error(
                "config",
                "UserDefinedRoleMaker: current_id is not given",
                "it is this process's rank in its role",
            )
        if role is None:
            role = Role.WORKER if is_collective else None
        if role not in (Role.WORKER, Role.SERVER):
            raise Error(
                "config",
                f"UserDefinedRoleMaker: role={role!r} is not a role",
                "use Role.WORKER or Role.SERVER",
            )
        self.role = role
        self.rank = int(current_id)
        self.worker_endpoints = list(worker_endpoints or ())
        self.server_endpoints = list(server_endpoints or ())
        self.trainers = int(worker_num) or len(self.worker_endpoints)
        if self.trainers < 1:
            raise Error("config", "UserDefinedRoleMaker: neither worker_num nor worker_endpoints is given")
        if self.is_server() and not self.rank < len(self.server_endpoints):
            raise Error(
                "config",
                f"UserDefinedRoleMaker: server {self.rank}, but "
                f"{len(self.server_endpoints)} server_endpoints",
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


def _required(name):
    value = os.environ.get(name)
    if not value:
        raise Error(
            "config",
            f"{name} is not set, but PADDLE_PSERVERS_IP_PORT_LIST is",
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


def _list(name):
    text = os.environ.get(name)
    if text is None and os.environ.get("PADDLE_BACKUP_ENV_PATH"):  # too long for the environment
        with open(os.environ["PADDLE_BACKUP_ENV_PATH"]) as file:
            text = json.load(file).get(name)
    return [endpoint.strip() for endpoint in (text or "").split(",") if endpoint.strip()]
