"""Random float64 instances from one seed: vectors, matrices with a given spectrum, rotations, data."""

import math

import torch
from torch import Tensor


class Draw:
    """Every number comes from one generator, in the order it is asked for."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=self.generator)

    def uniform(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(*shape, dtype=torch.float64, generator=self.generator)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        """Integers low <= k < high, as float64."""
        return torch.randint(low, high, shape, generator=self.generator).double()

    def sign(self, *shape: int) -> Tensor:
        return 2 * self.whole(0, 2, *shape) - 1

    def unit(self, n: int, count: int) -> Tensor:
        """`count` columns of length one in R^n."""
        return torch.nn.functional.normalize(self.normal(n, count), dim=0)

    def orthogonal(self, n: int, columns: int | None = None) -> Tensor:
        """n x `columns` with orthonormal columns, square when not given."""
        q, r = torch.linalg.qr(self.normal(n, n if columns is None else columns))
        columns_of_q: Tensor = q * r.diagonal().sign()
        return columns_of_q

    def rotation(self, n: int) -> Tensor:
        """Orthogonal with determinant +1."""
        q = self.orthogonal(n)
        q[:, 0] *= torch.linalg.det(q).sign()
        return q

    def matrix(self, m: int, n: int, *, kappa: float, rank: int | None = None) -> Tensor:
        """m x n with singular values spaced evenly in the logarithm from 1 down to 1/kappa, zero beyond `rank`."""
        k = min(m, n) if rank is None else rank
        sigma = torch.logspace(0, -math.log10(kappa), k, dtype=torch.float64) if k else self.normal(0)
        return (self.orthogonal(m, k) * sigma) @ self.orthogonal(n, k).T if k else torch.zeros(m, n).double()
