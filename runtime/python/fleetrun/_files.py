"""Files that are whole or not there."""

import contextlib
import os
from collections.abc import Iterator
from typing import IO

from fleetrun._error import Error


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
