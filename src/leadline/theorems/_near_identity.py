"""A matrix of positive determinant as a product of L matrices near the identity (the construction of Hardt and Ma).

R = U P with a rotation U and a positive P. The k-th roots of both stay near I: ||U^{1/k} - I|| <= pi / k and
||P^{1/k} - I|| <= e^{gamma / k} - 1, gamma the largest |log sigma_i|.
"""

import math

import torch
from torch import Tensor

from leadline.theorems._rounding import EPS


def gamma(matrix: Tensor) -> float:
    """max(|log sigma_max|, |log sigma_min|)."""
    return float(torch.linalg.svdvals(matrix).log().abs().amax())


def factors(matrix: Tensor, count: int) -> list[Tensor]:
    """[F_1, ..., F_count] with F_count ... F_1 = `matrix`: roots of P first, then of U, split as suits them best."""
    if count == 1:
        return [matrix]
    left, sigma, right = torch.linalg.svd(matrix)
    turn, angles = _diagonalised(left @ right)
    size, widest = float(sigma.log().abs().amax()), float(angles.abs().amax())
    turns = min(range(count + 1), key=lambda k: _largest(widest, k, size, count - k))
    stretches = count - turns
    stretch = right.T @ torch.diag(sigma ** (1 / max(stretches, 1))) @ right
    rotation = (turn @ torch.diag((1j * angles / max(turns, 1)).exp()) @ turn.mH).real
    return [stretch] * stretches + [rotation] * turns


def _largest(angle: float, turns: int, size: float, stretches: int) -> float:
    """max ||F - I|| of the split; inf if it leaves a part that is not the identity without a factor."""
    turned = 2 * math.sin(angle / (2 * turns)) if turns else math.inf if angle > EPS else 0.0
    stretched = math.exp(size / stretches) - 1 if stretches else math.inf if size > EPS else 0.0
    return max(turned, stretched)


def _diagonalised(rotation: Tensor) -> tuple[Tensor, Tensor]:
    """Unitary eigenvectors and angles in [-pi, pi], conjugate vectors with opposite angles (so that roots are real).

    cos and sin of the angles are the eigenvalues of two commuting Hermitian matrices, found by a mixture of them, the
    best of a few: two angles that one mixture takes for the same another tells apart. Turns by pi, whose sine has no
    sign, are taken in planes of two real vectors.
    """
    cosine, sine = (rotation + rotation.T) / 2, (rotation - rotation.T) / 2j
    mixtures = (torch.linalg.eigh(cosine + weight * sine)[1] for weight in (0.3, 0.6, 1.1, 2.3))
    vectors = min(mixtures, key=lambda v: _off_diagonal(v.mH @ rotation.to(v) @ v))
    half = torch.linalg.eigh(cosine)
    opposite = half[1][:, half[0] + 1 <= 8 * EPS]
    values = (vectors.mH @ rotation.to(vectors) @ vectors).diagonal()
    kept = values.real + 1 > 8 * EPS
    pairs = [opposite[:, k : k + 2] for k in range(0, opposite.shape[1] - 1, 2)]
    planes = [(pair[:, :1] + sign * pair[:, 1:]) / math.sqrt(2) for pair in pairs for sign in (1j, -1j)]
    angles = torch.tensor([math.pi, -math.pi] * len(pairs), dtype=torch.float64)
    return torch.cat([vectors[:, kept], *planes], dim=1), torch.cat([values[kept].angle(), angles])


def _off_diagonal(matrix: Tensor) -> float:
    return float((matrix - torch.diag(matrix.diagonal())).norm())
