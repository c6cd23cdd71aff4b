"""Convolutions as explicit matrices and by frequencies (Zaeemzadeh et al., section 3). Kernels are (d, c, k, k)."""

import torch
from torch import Tensor


def dense(kernel: Tensor, n: int, *, circular: bool = True) -> Tensor:
    """The d n^2 x c n^2 matrix of y[o, p] = sum_{i, a} K[o, i, a] x[i, p + a] on an n x n map, entry by entry."""
    d, c, k, _ = kernel.shape
    matrix = torch.zeros(d, n, n, c, n, n).double()
    for p in range(n):
        for q in range(n):
            for a in range(k):
                for b in range(k):
                    if circular or (p + a < n and q + b < n):
                        matrix[:, p, q, :, (p + a) % n, (q + b) % n] += kernel[:, :, a, b]
    return matrix.reshape(d * n * n, c * n * n)


def by_frequency(kernel: Tensor, n: int) -> Tensor:
    """P^(u,v) = F_n(K_{:,:,i,j})_{u,v} as n^2 complex d x c matrices."""
    grid: Tensor = torch.fft.fft2(kernel, s=(n, n))
    return grid.permute(2, 3, 0, 1).flatten(0, 1)


def from_frequency(matrices: Tensor, n: int, k: int) -> Tensor:
    """The inverse transform, cut to the k x k taps of the kernel; complex, with an imaginary part of rounding size."""
    grid = matrices.reshape(n, n, *matrices.shape[1:]).permute(2, 3, 0, 1)
    taps: Tensor = torch.fft.ifft2(grid)
    return taps[:, :, :k, :k]


def target(kernel: Tensor) -> float:
    """sqrt(d / min(d, c))."""
    d, c = kernel.shape[:2]
    return float((d / min(d, c)) ** 0.5)


def polar(matrices: Tensor, sigma: float) -> Tensor:
    """sigma U V^H by SVD: the nearest matrices whose singular values are all sigma."""
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    isometry: Tensor = sigma * u @ vh
    return isometry
