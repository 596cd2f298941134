"""Where ranks meet that PyTorch brings together: those of its own torchrun, whose agent serves a store at
MASTER_PORT, and those that init_process_group alone knows, as of a script that starts its ranks itself. Our
store needs a port of its own: rank 0 finds one, and PyTorch's store tells the others."""

from __future__ import annotations

import os
import socket
from typing import Any

__all__ = ["meeting_place", "meeting_place_of"]


def meeting_place() -> dict[str, str] | None:
    """The environment with the port; None where the environment's own is right."""
    environ = dict(os.environ)
    has_agent = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if not has_agent or environ.get("PADDLE_TRAINER_ENDPOINTS") or environ.get("WORLD_SIZE", "1") == "1":
        return None
    from torch.distributed import TCPStore

    store = TCPStore(
        environ["MASTER_ADDR"], int(environ["MASTER_PORT"]), is_master=False, wait_for_workers=False
    )
    name = f"fleetrun/{environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    return {**environ, "MASTER_PORT": _port(store, name, int(environ["RANK"]))}


def meeting_place_of(store: Any, rank: int, size: int, is_again: bool) -> dict[str, str] | None:
    """The environment of a rank of those that a store of torch.distributed has brought together; None where
    they are the launcher's own, and its place is not one where ranks may have met before (is_again)."""
    name = f"fleetrun/{store.add(f'fleetrun/met/{rank}', 1)}"  # they may meet by one store again
    said = [os.environ.get(name) for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM")]
    is_own = said == [str(rank), str(size)] and not is_again
    own = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "") if is_own else ""
    if _is_of_all(store, name, rank, size, own.split(",")[0]):
        return None
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_")}
    environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    if size > 1:
        store.set(f"{name}/host/{rank}", socket.gethostname())
        hosts = [store.get(f"{name}/host/{each}").decode() for each in range(size)]
        environ["MASTER_ADDR"] = "127.0.0.1" if len(set(hosts)) == 1 else hosts[0]
        environ["MASTER_PORT"] = _port(store, name, rank)
    return environ


def _is_of_all(store, name, rank, size, place):
    """Whether the launcher told this place to all: of ranks that a trainer started, one may have its rank."""
    store.set(f"{name}/place/{rank}", place)
    if rank == 0:
        places = {store.get(f"{name}/place/{each}").decode() for each in range(size)}
        store.set(f"{name}/is_launchers", str(len(places) == 1 and places != {""}))
    return store.get(f"{name}/is_launchers") == b"True"


def _port(store, name, rank):
    if rank == 0:
        with socket.create_server(("", 0)) as held:
            store.set(f"{name}/port", str(held.getsockname()[1]))
    return store.get(f"{name}/port").decode()
