"""paddle.fluid.incubate.fleet.base.role_maker: the role makers of Paddle 1.x, on today's."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fleetrun import _lazy
from fleetrun.distributed.fleet import _roles
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker, Role, RoleMakerBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "GeneralRoleMaker", "MPISymetricRoleMaker", "PaddleCloudRoleMaker", "Role", "RoleMakerBase",
    "UserDefinedCollectiveRoleMaker", "UserDefinedRoleMaker",
]  # fmt: skip


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """PaddleCloudRoleMaker that counts the trainers by PADDLE_TRAINER_ENDPOINTS, and may know a server by
    PADDLE_PSERVER_ID. Trainers meet through their servers, not through the file system or the HTTP server
    that arguments name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(False, **kwargs)

    def _find_role(self):
        trainers = _roles.endpoints("PADDLE_TRAINER_ENDPOINTS")
        if trainers:
            os.environ.setdefault("PADDLE_TRAINERS_NUM", str(len(trainers)))
        servers, number = (
            _roles.endpoints("PADDLE_PSERVERS_IP_PORT_LIST"),
            os.environ.get("PADDLE_PSERVER_ID", ""),
        )
        if number.isdigit() and int(number) < len(servers):
            host, _, port = servers[int(number)].rpartition(":")
            os.environ.setdefault("POD_IP", host)
            os.environ.setdefault("PADDLE_PORT", port)
        super()._find_role()


class UserDefinedRoleMaker(_roles.UserDefinedRoleMaker):
    """Today's, with the order of arguments that it had."""

    def __init__(
        self,
        current_id: int = 0,
        role: int = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            current_id=current_id,
            role=role,
            worker_num=worker_num,
            server_endpoints=server_endpoints or (),
            **kwargs,
        )


class UserDefinedCollectiveRoleMaker(_roles.UserDefinedRoleMaker):
    """UserDefinedRoleMaker of a collective trainer."""

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        endpoints = list(worker_endpoints or ())
        super().__init__(True, current_id=current_id, worker_num=len(endpoints), worker_endpoints=endpoints)


class MPISymetricRoleMaker(RoleMakerBase):
    """Refused: processes are not started by MPI. Throws: ImportError, as Paddle does without mpi4py."""

    def __init__(self) -> None:
        raise ImportError(
            "MPISymetricRoleMaker: jobs are not started by MPI here; start the script with fleetrun "
            "--server_num=… --trainer_num=…, and use PaddleCloudRoleMaker()"
        )


__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.fluid.incubate.fleet.base.role_maker")
