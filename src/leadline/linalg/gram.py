"""Gram matrices and triangular factors of long matrices in float64, without a second copy of the data."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

CHUNK = 2**18  # elements converted to float64 at a time: what the second-level cache holds


def pieces(parts: Tensor) -> Iterator[Tensor]:
    """The matrix [X_1 X_2 ...] of parts (p, rows, columns), cut by columns into float64 pieces (q, rows, few)."""
    _, rows, columns = parts.shape
    for group in torch.split(parts, max(1, CHUNK // (rows * columns))):
        step = max(1, CHUNK // (rows * len(group)), 2 * rows if len(group) == 1 else 1)
        for piece in torch.split(group, step, dim=2):
            yield piece.double()


def gram(parts: Tensor) -> Tensor:
    """sum_p X_p X_p^T in float64 for parts (p, rows, columns); only blocks on and above the diagonal are multiplied."""
    rows = parts.shape[1]
    total = torch.zeros(rows, rows, dtype=torch.float64, device=parts.device)
    edges = [rows * quarter // 4 for quarter in range(5)] if rows >= 64 else [0, rows]
    for piece in pieces(parts):
        for start, stop in pairwise(edges):
            corner, block, right = total[start:stop, start:], piece[:, start:stop], piece[:, start:].mT
            if len(piece) == 1:
                corner.addmm_(block[0], right[0])
            else:
                corner += (block @ right).sum(0)
    return total.triu() + total.triu(1).mT


def triangle(parts: Tensor) -> Tensor:
    """R of the QR factorisation of [X_1 X_2 ...]^T, folded in piece by piece: its singular values are those of X."""
    factor = torch.zeros(0, parts.shape[1], dtype=torch.float64, device=parts.device)
    for piece in pieces(parts):
        factor = torch.linalg.qr(torch.cat([factor, piece.mT.flatten(0, 1)]), mode="r").R
    return factor


def small_grams(matrices: Tensor) -> Tensor:
    """X X^T or X^T X in float64, whichever is smaller, for every X of (count, m, n)."""
    short = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    if short.shape[0] == 1:
        return gram(short)[None]
    wide = short.double()
    return wide @ wide.mT


def root_eigenvalues(grams: Tensor) -> Tensor:
    """sqrt of the eigenvalues of (count, s, s), ascending: 0 where rounding went below, NaN if the matrix has any."""
    finite = torch.isfinite(grams).flatten(1).all(1)
    values = torch.linalg.eigvalsh(torch.where(finite[:, None, None], grams, 0.0))
    return torch.where(finite[:, None], values.clamp(min=0).sqrt(), torch.nan)
