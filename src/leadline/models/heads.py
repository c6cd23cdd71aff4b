"""Heads: global average pooling and one linear layer, after a last norm and activation where the family has them."""

from torch import nn

from leadline.core.errors import UsageError
from leadline.models.layers import sequence


def pooled_linear(
    channels: int, num_classes: int, *, norm: nn.Module | None = None, act: nn.Module | None = None
) -> nn.Sequential:
    """linear(mean over pixels of act(norm(x)))."""
    if not isinstance(num_classes, int) or num_classes < 1:
        raise UsageError(f"num_classes={num_classes!r}: expected a positive whole number")
    linear = nn.Linear(channels, num_classes)
    return sequence(norm=norm, act=act, pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), linear=linear)
