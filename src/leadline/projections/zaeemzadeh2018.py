"""The projection as published, for comparison only: Zaeemzadeh et al., Algorithm 1, and what its release computes.

printed   the n x n transform of the kernel, (P^H P)^(-1/2) at every frequency by the iteration (9) from a scaled start
          (unscaled it diverges), the inverse transform, cropped to k x k.
released  the same on the real matrices [[R, I], [-I, R]] with ten iterations, recombined as R - iI: the conjugate,
          which reverses the kernel in space before the crop. 1x1 kernels do not notice; a 3x3 stem loses all taps but
          one. Applied after a step with probability 1/2.

Both do per kernel what one matrix (1x1) or a 5 x 5 grid (3x3) determines; neither knows of stride.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError, unknown
from leadline.linalg.polar import inverse_root
from leadline.projections.procrustes import Procrustes, Site

ITERATIONS = 10


@torch.no_grad()
def printed(kernel: Tensor, n: int, *, relu: bool = False, iterations: int = ITERATIONS, scaled: bool = True) -> Tensor:
    """One projection of a kernel (d, c, k, k) for maps of n x n, by eqs (8), (9)."""
    d, c, k, _ = kernel.shape
    p = torch.fft.fft2(kernel.permute(2, 3, 0, 1), s=(n, n), dim=(0, 1))
    inner = p if d >= c else p.mH
    projected = target(c, d, relu=relu) * inner @ inverse_root(inner.mH @ inner, steps=iterations, scaled=scaled)
    return _crop(projected if d >= c else projected.mH, k)


@torch.no_grad()
def released(kernel: Tensor, n: int, *, relu: bool = False, iterations: int = ITERATIONS) -> Tensor:
    """One projection as the authors' program makes it."""
    d, c, k, _ = kernel.shape
    p = torch.fft.fft2(kernel.permute(2, 3, 0, 1), s=(n, n), dim=(0, 1))
    real = torch.cat([torch.cat([p.real, p.imag], -1), torch.cat([-p.imag, p.real], -1)], -2)
    inner = real if d >= c else real.mT
    found = target(c, d, relu=relu) * inner @ inverse_root(inner.mT @ inner, steps=iterations)
    found = found if d >= c else found.mT
    return _crop(torch.complex(found[..., :d, :c], -found[..., :d, c:]), k)


METHODS: dict[str, Callable[..., Tensor]] = {"printed": printed, "released": released}


class Algorithm1(Procrustes):
    """`Procrustes` with one of the published methods; `maps` gives the n of every kernel, at the convolution's output.

    The release is Algorithm1(convs, method="released", maps=..., every=2, schedule="random"); the text says every 2.
    """

    def __init__(
        self,
        convs: Mapping[str, nn.Module] | Iterable[nn.Module],
        *,
        method: str,
        maps: Mapping[str, int],
        every: int = 2,
        schedule: str = "steps",
        relu: bool = False,
        seed: int = 0,
    ) -> None:
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        super().__init__(convs, every=every, schedule=schedule, relu=relu, seed=seed)
        missing = [site.name for site in self.sites if site.name not in maps]
        if missing:
            raise UsageError(f"expected the map size of every kernel; got none for {', '.join(missing)}")
        self.method, self.maps, self.relu = METHODS[method], dict(maps), relu

    def projected(self, site: Site, *, warm: bool) -> Tensor:  # noqa: ARG002
        """The same whether it is the first time or not."""
        return self.method(site.kernel.detach(), self.maps[site.name], relu=self.relu)


def target(c: int, d: int, *, relu: bool = False) -> float:
    """sqrt(d / min(c, d)), times sqrt(2) before a ReLU; the release has no ReLU there."""
    return math.sqrt((2 if relu else 1) * d / min(c, d))


def _crop(symbol: Tensor, k: int) -> Tensor:
    whole: Tensor = torch.fft.ifft2(symbol, dim=(0, 1)).real
    return whole[:k, :k].permute(2, 3, 0, 1).contiguous()
