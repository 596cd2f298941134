"""Variables that scripts of Paddle 1.x with fluid.DistributeTranspiler read, before there was Fleet.

Whoever started them set these by hand; here they come from those that the launcher sets.
"""

from __future__ import annotations

from collections.abc import MutableMapping

__all__ = ["complete"]


def complete(environ: MutableMapping[str, str]) -> None:
    """Sets them in a job with parameter servers, unless the role is there: then somebody set them by hand.

    PADDLE_PSERVER_IPS and PADDLE_PSERVER_PORT say one port for all servers: they are left out where the
    servers have several.
    """
    role, servers = environ.get("TRAINING_ROLE"), environ.get("PADDLE_PSERVERS_IP_PORT_LIST")
    if not role or not servers or "PADDLE_TRAINING_ROLE" in environ:
        return
    own = environ.get("POD_IP", "")
    made = {
        "PADDLE_TRAINING_ROLE": role,
        "PADDLE_TRAINERS": environ.get("PADDLE_TRAINERS_NUM", "1"),
        "PADDLE_CURRENT_IP": own,
        "PADDLE_CURRENT_ENDPOINT": f"{own}:{environ.get('PADDLE_PORT', '')}",
        "PADDLE_PSERVER_ENDPOINTS": servers,
    }
    ips, ports = zip(*(server.rsplit(":", 1) for server in servers.split(",")))
    if len(set(ports)) == 1:
        made |= {"PADDLE_PSERVER_IPS": ",".join(ips), "PADDLE_PSERVER_PORT": ports[0]}
    environ.update(made)  # of an outer job's trainer, whose script started this one, they would be wrong
    environ.setdefault("PADDLE_TRAINER_ID", "0")  # a server has none, and these scripts read it there, too
