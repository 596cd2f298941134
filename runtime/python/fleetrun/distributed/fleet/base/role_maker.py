"""paddle.distributed.fleet.base.role_maker, and those of Paddle 1.x. Source: document 002."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker, Role, RoleMakerBase, UserDefinedRoleMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "GeneralRoleMaker", "PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedCollectiveRoleMaker",
    "UserDefinedRoleMaker",
]  # fmt: skip


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """PaddleCloudRoleMaker: trainers meet through their servers, not through a file system or an HTTP server
    that arguments name."""


class UserDefinedCollectiveRoleMaker(UserDefinedRoleMaker):
    """UserDefinedRoleMaker of a collective trainer."""

    def __init__(self, current_id: int = 0, worker_endpoints: Any = None) -> None:
        super().__init__(
            is_collective=True,
            current_id=current_id,
            worker_num=len(worker_endpoints or ()),
            worker_endpoints=worker_endpoints or (),
        )


__getattr__, __dir__ = _lazy.attach(__name__)
