"""n-shortcut networks as plain functions of their weights, for derivatives at zero (Li et al., Definitions 1 and 2).

Weights are (R, n, d, d) in the order of application; samples are columns, X (d, m). Activations are functions; `relu`
is the parabola through (-1, 0), (0, 0), (1, 1), the local polynomial the paper speaks of: torch has relu'(0) = 0, with
which every derivative at zero would vanish for the wrong reason.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict

import torch
from torch import Tensor

from leadline.theorems._draw import Draw

Activation = Callable[[Tensor], Tensor]


def identity(x: Tensor) -> Tensor:
    return x


def symmetric_sigmoid(x: Tensor) -> Tensor:
    """(1 - e^-x) / (1 + e^-x)."""
    return torch.tanh(x / 2)


def relu_parabola(x: Tensor) -> Tensor:
    """(x^2 + x) / 2."""
    return (x**2 + x) / 2


# activation and its derivative at zero
AT_ZERO: dict[str, tuple[Activation, float]] = {
    "identity": (identity, 1.0),
    "tanh": (torch.tanh, 1.0),
    "symmetric sigmoid": (symmetric_sigmoid, 0.5),
    "ReLU": (relu_parabola, 0.5),
}


class Places(TypedDict, total=False):
    """Where an activation is put, as arguments of a Net."""

    pre: Activation
    mid: Activation
    post: Activation


@dataclass(frozen=True, kw_only=True)
class Net:
    """`pre`, `mid` and `post` on the branch; `skip` is I in the paper and anything in a broken instance."""

    x: Tensor
    y: Tensor
    pre: Activation = identity
    mid: Activation = identity
    post: Activation = identity
    skip: Callable[[Tensor, int], Tensor] = field(default=lambda h, _: h)

    def branch(self, unit: Tensor, h: Tensor) -> Tensor:
        """sigma_post(W^n sigma_mid(... W^1 sigma_pre(h)))."""
        h = unit[0] @ self.pre(h)
        for weight in unit[1:]:
            h = weight @ self.mid(h)
        return self.post(h)

    def output(self, weights: Tensor) -> Tensor:
        h = self.x
        for r, unit in enumerate(weights):
            h = self.skip(h, r) + self.branch(unit, h)
        return h

    def loss(self, weights: Tensor) -> Tensor:
        """1/(2m) sum_mu ||y^mu - output^mu||^2."""
        return (self.output(weights) - self.y).square().sum() / (2 * self.x.shape[1])

    def moment(self) -> Tensor:
        """Sigma^{X sigma_pre(X)} - Sigma^{Y sigma_pre(X)}."""
        moment: Tensor = (self.x - self.y) @ self.pre(self.x).T / self.x.shape[1]
        return moment


def whitened(draw: Draw, d: int, m: int) -> Tensor:
    """Samples in columns with Sigma^{XX} = I."""
    basis = draw.orthogonal(m, d)
    return basis.T * math.sqrt(m)


def problems(draw: Draw, d: int, m: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Data: regression, one-hot classes on whitened inputs."""
    yield "Gaussian data", draw.normal(d, m), draw.normal(d, m)
    classes = torch.eye(d).double()[draw.whole(0, d, m).long()].T
    yield "whitened data, one-hot labels", whitened(draw, d, m), classes


def activated(name: str, place: str) -> tuple[Places, float]:
    """The activation at `place` (all: everywhere) as arguments of a Net, and its slope at zero.

    At `pre` the activation meets the data, not zero: there ReLU is the real one.
    """
    function, slope = AT_ZERO[name]
    before = torch.relu if name == "ReLU" else function
    everywhere = Places(pre=before, mid=function, post=function)
    alone = {"pre": Places(pre=before), "mid": Places(mid=function), "post": Places(post=function), "all": everywhere}
    return alone[place], slope
