"""Reduction: what is kept of a tensor, computed where the tensor is, merged in float64 on the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reduction:
    """`map` turns the tensor into a small one on its device; `merge` makes one result of several maps.

    There are several when the same place is met more than once: micro-batches, repeated calls, processes.
    `degree` says how the map scales, map(c t) = c**degree map(t) for c > 0, so that a loss scale can be undone later.
    """

    name: str
    map: Callable[[Tensor], Tensor]
    merge: Callable[[Sequence[Array]], Array]
    degree: int = 1


def accumulated(tensor: Tensor) -> torch.dtype:
    """The dtype sums over this tensor are taken in: its own, single precision for half precision."""
    return torch.float64 if tensor.dtype in (torch.float64, torch.complex128) else torch.float32


def sample_norms(tensor: Tensor) -> Tensor:
    """||t_b||_2 of every sample b; merged in float64, as one float32 norm over millions would be off by 5e-4."""
    if tensor.ndim < 2:
        return tensor.detach().abs().to(accumulated(tensor))
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.detach().resolve_conj())
    norms: Tensor = torch.linalg.vector_norm(tensor, dim=tuple(range(1, tensor.ndim)), dtype=accumulated(tensor))
    return norms


def _sum_of_squares(parts: Sequence[Array]) -> Array:
    return np.asarray(np.sqrt(sum(float(np.sum(np.square(part))) for part in parts)))


FROBENIUS = Reduction("frobenius norm", sample_norms, _sum_of_squares)
