"""One image file: read, then seen the way ImageNet models are trained (random resized crop) or tested (centre)."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from leadline.core.errors import UnreadableError
from leadline.data.place import explained

if TYPE_CHECKING:
    from PIL.Image import Image

_LEAST_AREA, _WIDEST, _ATTEMPTS = 0.08, 4 / 3, 10
_FORMATS = ("JPEG", "PNG")  # of the others some are handed to other programs
_SHORT_SIDE = 256 / 224  # of the whole image, in sides of the central crop

DRAWS = 4 * _ATTEMPTS + 1

Box = tuple[int, int, int, int]  # left, top, right, bottom


def opened(path: Path) -> "Image":
    """The decoded RGB image."""
    from PIL import Image

    try:
        with explained("read", path), Image.open(path, formats=_FORMATS) as file:
            return file.convert("RGB")
    except (SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnreadableError(f"{path} is not an image that can be read: {error}") from error


def random_view(image: "Image", size: int, draws: list[float]) -> Tensor:
    """A random box scaled to `size`, mirrored in half of the cases; `draws` are DRAWS uniform numbers."""
    pixels = _scaled(image.crop(random_box(image.size, draws)), (size, size))
    return pixels.flip(2) if draws[-1] < 0.5 else pixels


def central_view(image: "Image", size: int) -> Tensor:
    """The central square after the shorter side was scaled to 256/224 of it."""
    short = round(size * _SHORT_SIDE)
    width, height = (int(short * side / min(image.size)) for side in image.size)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return _scaled(image, (width, height))[:, top : top + size, left : left + size]


def random_box(sides: tuple[int, int], draws: list[float]) -> Box:
    """A box of 8% to 100% of the area and an aspect of 3/4 to 4/3, the first of ten tries that fits.

    Area and the logarithm of the aspect are uniform (Szegedy et al., 2015, section 6). If none fits: the largest
    central box of an allowed aspect.
    """
    width, height = sides
    for area, aspect, left, top in zip(*[iter(draws[:-1])] * 4, strict=True):
        pixels = width * height * (_LEAST_AREA + (1 - _LEAST_AREA) * area)
        ratio = _WIDEST ** (2 * aspect - 1)
        w, h = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = int(left * (width - w + 1)), int(top * (height - h + 1))
            return x, y, x + w, y + h
    w, h = min(width, round(height * _WIDEST)), min(height, round(width * _WIDEST))
    x, y = (width - w) // 2, (height - h) // 2
    return x, y, x + w, y + h


def _scaled(image: "Image", sides: tuple[int, int]) -> Tensor:
    from PIL import Image

    pixels = np.array(image.resize(sides, Image.Resampling.BILINEAR))
    return torch.from_numpy(pixels).permute(2, 0, 1)
