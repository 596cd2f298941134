"""Where the ranks of a job of PyTorch's own torchrun meet. Its agent serves a store of its own at
MASTER_PORT, so ours needs another port: rank 0 finds one, and the agent's store tells the others."""

from __future__ import annotations

import os
import socket

__all__ = ["meeting_place"]


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
    name = f"fleetrun/{environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/port"
    if environ["RANK"] == "0":
        with socket.create_server(("", 0)) as held:
            port = held.getsockname()[1]
        store.set(name, str(port))
    return {**environ, "MASTER_PORT": store.get(name).decode()}
