"""Random crop and flip of a whole batch at once, from uniform numbers that the caller brings."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from leadline.core.errors import UsageError, unknown

Kind = Literal["none", "crop-flip"]
Pad = Literal["zero", "reflect"]

MARGIN = 4


@dataclass(frozen=True)
class Augment:
    """What is done to a training batch: nothing, or a random crop out of the padded image and a random flip."""

    kind: Kind = "none"
    pad: Pad = "zero"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise unknown("augmentation", self.kind, get_args(Kind))
        if self.pad not in get_args(Pad):
            raise unknown("padding", self.pad, get_args(Pad))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse inputs that cannot be cropped and flipped."""
        if self.kind == "crop-flip" and (len(shape) != 3 or min(shape[1:]) <= MARGIN):
            raise UsageError(f"crop-flip needs images (C, H, W) of more than {MARGIN} pixels a side; got shape {shape}")


def crop_flip(images: Tensor, draws: Tensor, *, pad: Pad = "zero") -> Tensor:
    """Crop each image at its own place out of itself padded by 4, then mirror about half of them left to right.

    `images` is (batch, C, H, W), `draws` (batch, 3) uniform in [0, 1): top, left, flip. The padding is that of the
    raw image, so zero is black (He et al., 2016, section 4.2; reflection: Zagoruyko and Komodakis, 2016).
    """
    batch, _, height, width = images.shape
    offsets = (draws[:, :2] * (2 * MARGIN + 1)).long().to(images.device)
    flipped = (draws[:, 2] < 0.5).to(images.device)
    padded = functional.pad(images, (MARGIN,) * 4, mode="reflect" if pad == "reflect" else "constant")
    windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # (batch, C, top, left, H, W)
    cropped = windows[torch.arange(batch, device=images.device), :, offsets[:, 0], offsets[:, 1]]
    cropped[flipped] = cropped[flipped].flip(3)
    return cropped
