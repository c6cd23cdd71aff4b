"""The projection among several processes: each kernel is projected by one of them and handed to all."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.projections import Procrustes
from leadline.projections.norm_preserving import tangent
from leadline.projections.procrustes import Projected, Site, _report
from leadline.train.processes import added, fill, rank, whole, world


class SpreadProcrustes(Procrustes):
    """`Procrustes` on every process alike: the kernels are the same bit for bit, wherever they were projected.

    A kernel of which each process holds a shard (FSDP) is put together, projected once, and cut again.
    """

    @torch.no_grad()
    def project(self) -> tuple[Projected, ...]:
        former = self._wholes()
        self._write(warm=False)
        return tuple(_report(site, was.kernel) for site, was in zip(self._wholes(), former, strict=True))

    @torch.no_grad()
    def _write(self, *, warm: bool) -> None:
        """All new kernels are known to all before the first is written."""
        sites = self._wholes()
        found = _spread([site.kernel for site in sites], lambda place: self._found(sites[place], warm=warm))
        for site, kernel in zip(self.sites, found, strict=True):
            if not kernel.isfinite().all():
                raise UsageError(f"{site.name}: its kernel could not be projected")
            fill(site.kernel, kernel)

    @torch.no_grad()
    def _before_step(self, *_: object) -> None:
        moved = [site for site in self.sites if site.kernel.grad is not None]
        gradients = [whole(site.kernel.grad) for site in moved if site.kernel.grad is not None]
        kernels = [whole(site.kernel) for site in moved]
        found = _spread(gradients, lambda place: tangent(gradients[place], kernels[place], moved[place].onto))
        for site, gradient in zip(moved, found, strict=True):
            assert site.kernel.grad is not None
            fill(site.kernel.grad, gradient)

    def _wholes(self) -> list[Site]:
        return [replace(site, kernel=nn.Parameter(whole(site.kernel).detach().clone())) for site in self.sites]


def _spread(like: Sequence[Tensor], make: Callable[[int], Tensor]) -> list[Tensor]:
    """make(place) of every place, each made by one process, the largest first in turn.

    What a process could not make is nan for the others, so that all of them learn of it; it raises its own error.
    """
    order = sorted(range(len(like)), key=lambda place: -like[place].numel())
    mine = set(order[rank() :: world()])
    trouble: UsageError | None = None
    parts = []
    for place, tensor in enumerate(like):
        made = torch.zeros_like(tensor)
        if place in mine:
            try:
                made = make(place)
            except UsageError as error:
                made, trouble = torch.full_like(tensor, torch.nan), trouble or error
        parts.append(made.reshape(-1))
    everything = added(torch.cat(parts)) if parts else torch.empty(0)
    if trouble:
        raise trouble
    pieces = torch.split(everything, [tensor.numel() for tensor in like])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, like, strict=True)]
