"""paddle.dataset.image: pictures as arrays [height, width, channels], as OpenCV has them, which decodes and
resizes them."""

from __future__ import annotations

import importlib
import os
import pickle
import tarfile
from typing import Any

import numpy

from fleetrun import _lazy
from fleetrun._error import Error

__all__ = [
    "batch_images_from_tar", "center_crop", "left_right_flip", "load_and_transform", "load_image",
    "load_image_bytes", "random_crop", "resize_short", "simple_transform", "to_chw",
]  # fmt: skip


def needed(module: str, package: str) -> Any:
    """A module that the package does not bring. Throws: Error(host) where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        what = f"pictures of paddle.dataset need {module}, which is not here"
        raise Error("host", what, f"pip install {package}") from error


def _opencv() -> Any:
    return needed("cv2", "opencv-python-headless")


def load_image_bytes(bytes: bytes, is_color: bool = True) -> numpy.ndarray:
    """A picture of what is in its file. Shape: [height, width, 3], or [height, width] without is_color."""
    found: numpy.ndarray = _opencv().imdecode(numpy.frombuffer(bytes, "uint8"), int(is_color))
    return found


def load_image(file: str, is_color: bool = True) -> numpy.ndarray:
    """A picture of a file."""
    found: numpy.ndarray = _opencv().imread(file, int(is_color))
    return found


def resize_short(im: numpy.ndarray, size: int) -> numpy.ndarray:
    """The picture with `size` as its shorter side."""
    opencv = _opencv()
    height, width = im.shape[:2]
    sides = (size, size * height // width) if height > width else (size * width // height, size)
    found: numpy.ndarray = opencv.resize(im, sides, interpolation=opencv.INTER_CUBIC)
    return found


def to_chw(im: numpy.ndarray, order: tuple[int, ...] = (2, 0, 1)) -> numpy.ndarray:
    """The picture with its channels first."""
    made: numpy.ndarray = im.transpose(order)
    return made


def center_crop(im: numpy.ndarray, size: int, is_color: bool = True) -> numpy.ndarray:
    """The middle, `size` high and wide."""
    top, left = ((side - size) // 2 for side in im.shape[:2])
    return im[top : top + size, left : left + size]


def random_crop(im: numpy.ndarray, size: int, is_color: bool = True) -> numpy.ndarray:
    """A part somewhere, `size` high and wide."""
    top, left = (numpy.random.randint(0, side - size + 1) for side in im.shape[:2])
    return im[top : top + size, left : left + size]


def left_right_flip(im: numpy.ndarray, is_color: bool = True) -> numpy.ndarray:
    """The picture in a mirror."""
    return im[:, ::-1]


def simple_transform(
    im: numpy.ndarray,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> numpy.ndarray:
    """The picture resized, cut to crop_size, float32, its channels first and without `mean`: one value, one
    of each channel, or a picture. In training it is cut somewhere, and every other one is mirrored."""
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size)
        im = left_right_flip(im) if numpy.random.randint(2) == 0 else im
    else:
        im = center_crop(im, crop_size)
    im = (to_chw(im) if im.ndim == 3 else im).astype("float32")
    if mean is not None:
        mean = numpy.array(mean, "float32")
        im -= mean[:, None, None] if mean.ndim == 1 and is_color else mean
    return im


def load_and_transform(
    filename: str,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> numpy.ndarray:
    """simple_transform() of a file's picture."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: dict[str, Any], num_per_batch: int = 1024
) -> str:
    """Writes the pictures of an archive that have a label to files beside it, as pickles of {"data": [bytes],
    "label": [label]}; gives the path of a list of these. What is there already is left as it is."""
    folder = f"{data_file}_batch/{dataset_name}"
    if os.path.exists(folder):
        return folder + ".txt"
    os.makedirs(folder)
    paths: list[str] = []
    batch: dict[str, list[Any]] = {"label": [], "data": []}

    def write() -> None:
        paths.append(os.path.abspath(f"{folder}/batch_{len(paths)}"))
        with open(paths[-1], "wb") as file:
            pickle.dump(batch, file, protocol=2)
        for values in batch.values():
            values.clear()

    with tarfile.open(data_file) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name in img2label else None
            if file is not None:
                batch["data"].append(file.read())
                batch["label"].append(img2label[member.name])
                if len(batch["data"]) == num_per_batch:
                    write()
    if batch["data"]:
        write()
    with open(folder + ".txt", "w", encoding="utf-8") as listed:
        listed.writelines(f"{path}\n" for path in paths)
    return folder + ".txt"


__getattr__, __dir__ = _lazy.attach(__name__)
