"""What servers and their clients are told when the hosts of their job change (fleetrun.elastic)."""

import os

from fleetrun import _native, elastic


def _servers(world):
    """Where they are. Worlds that do not go on in place have processes of their own."""
    return {server.rank: server.endpoint for server in world.servers} if world.in_place else {}


def addresses_of(endpoints):
    """The endpoints of this job's servers, and where they are from now on. None where they stay: without
    standbys, and for endpoints that are not the job's."""
    of_job = ",".join(endpoints) == os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST")
    if not of_job or os.environ.get("FLEETRUN_PS_REPLICAS") != "1":
        return None
    addresses = _native.ServerAddresses(list(endpoints))

    def move(world):
        addresses.move(_servers(world))

    elastic.on_world_change(move, thread=True)
    if (world := elastic.world()) is not None:
        move(world)
    return addresses


def tell_server(server, world):
    trainers = {trainer.rank: trainer.id for trainer in world.trainers}
    server.update(world.epoch, world.in_place, trainers, _servers(world))
