"""unit: n weight matrices and an identity skip around them (Li et al., Definitions 1 and 2)."""

from torch import nn

from leadline.models.layers import activation, sequence
from leadline.models.residual import Residual


def unit(
    width: int,
    *,
    layers: int = 2,
    pre: str = "identity",
    mid: str = "identity",
    post: str = "identity",
    bias: bool = False,
    plain: bool = False,
) -> Residual:
    """y = post(W_n mid(... mid(W_1 pre(x) + b))) + x, with `layers` = n; only the first matrix may have a bias.

    The activations are on the branch, so that without its skip the unit keeps them at the same positions.
    """
    parts: dict[str, nn.Module | None] = {"pre": activation(pre)}
    for layer in range(1, layers + 1):
        parts[f"linear{layer}"] = nn.Linear(width, width, bias=bias and layer == 1)
        parts[f"mid{layer}"] = activation(mid) if layer < layers else None
    return Residual(sequence(**parts, post=activation(post)), plain=plain)
