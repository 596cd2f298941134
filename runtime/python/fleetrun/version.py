"""paddle.version: that of Paddle whose names and defaults these are."""

from fleetrun import _lazy

full_version = "2.6.2"
major, minor, patch = full_version.split(".")
rc = "0"
commit = "fleetrun"
istaged = True
with_pip_cuda_libraries = "OFF"


def cuda() -> str:
    """ "False": there is no CUDA."""
    return "False"


def cudnn() -> str:
    """ "False": there is no cuDNN."""
    return "False"


def show() -> None:
    """Prints the version."""
    import fleetrun

    print(f"fleetrun: {fleetrun.__version__}\nfull_version: {full_version}\ncuda: {cuda()}")


__getattr__, __dir__ = _lazy.attach(__name__)
