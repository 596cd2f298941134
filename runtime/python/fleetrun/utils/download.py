"""paddle.utils.download: files that are there already."""

from __future__ import annotations

import os

from fleetrun import _lazy
from fleetrun._error import Error

__all__ = ["get_path_from_url", "get_weights_path_from_url"]


def get_path_from_url(
    url: str,
    root_dir: str,
    md5sum: str | None = None,
    check_exist: bool = True,
    decompress: bool = True,
    method: str = "get",
) -> str:
    """root_dir/FILE, or the folder that it was unpacked to. Throws: Error(host) where neither is there."""
    path = os.path.join(root_dir, url.rpartition("/")[2])
    unpacked = path
    for ending in (".gz", ".tar", ".tgz", ".zip"):
        unpacked = unpacked.removesuffix(ending)
    for one in (unpacked, path):
        if os.path.exists(one):
            return one
    raise Error("host", f"{path} is not there, and fleetrun downloads nothing", f"put {url} there")


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """get_path_from_url() in ~/.cache/paddle/hapi/weights."""
    return get_path_from_url(url, os.path.expanduser("~/.cache/paddle/hapi/weights"), md5sum)


__getattr__, __dir__ = _lazy.attach(__name__)
