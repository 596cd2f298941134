"""Files that are whole or not there."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import IO

from fleetrun._error import Error


def on_this_host(call: str, path: str | os.PathLike[str]) -> str:
    """The path as a text. Throws: Error(config) for a name like s3://bucket/model, where servers alone copy
    tables to."""
    text = os.fspath(path)
    if re.match(r"(hdfs|afs):|[A-Za-z0-9+.-]+://", text):
        raise Error(
            "config",
            f"{call}: {text} is not a directory of this host",
            "name a directory and copy it there; tables of servers go there by fleet.save_persistables",
        )
    return text


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Within `with`: a new file beside `path`, whose folder is made; at the end it is moved there. Of several
    processes that do so at once the last one's stays, whole. Throws: Error(host)."""
    beside = f"{path}.{os.urandom(4).hex()}.new"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(beside, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(beside)
        if isinstance(error, OSError):
            raise Error(
                "host",
                f"{path} cannot be written: {error.strerror}",
                "choose a directory that can be written",
            ) from error
        raise
