"""The four endings a pre-activation network has in Chen et al., Tables 1 and 2: what follows the last addition."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from leadline.core.errors import unknown
from leadline.models.chain import Chain, Input
from leadline.models.estimators import ResNEst
from leadline.models.heads import pooled_linear
from leadline.models.layers import Style
from leadline.models.residual import Residual

ENDINGS = {"standard": "", "resnest": "resnest-", "bn-resnest": "bn-resnest-", "a-resnest": "a-resnest-"}


def prefixes(prefix: str) -> dict[str, dict[str, Any]]:
    """The names of a network with each ending."""
    return {f"{before}{prefix}": {"ending": ending} for ending, before in ENDINGS.items()}


def end(
    ending: str,
    stem: nn.Module,
    blocks: Mapping[str, Residual],
    *,
    channels: int,
    num_classes: int,
    style: Style,
    takes: Input,
) -> Chain:
    """Norm, activation, pooling, linear; resnest without the first two, bn-resnest without the second.

    a-resnest has neither, nor the last convolution: a linear head on each block's pooled feature instead.
    """
    if ending not in ENDINGS:
        raise unknown("ending", ending, ENDINGS)
    norm = style.normalise(channels) if ending in ("standard", "bn-resnest") else None
    act = style.activate() if ending == "standard" else None
    kind = Chain if ending == "standard" else ResNEst
    chain = kind(stem, blocks, pooled_linear(channels, num_classes, norm=norm, act=act), takes=takes)
    return chain.augmented() if ending == "a-resnest" and isinstance(chain, ResNEst) else chain
