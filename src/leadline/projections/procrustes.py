"""Procrustes: keeps convolution kernels on the norm-preserving set while any optimiser trains them.

After an optimiser step the kernels' singular values are set to t = sqrt(d / min(c, d)) again (Zaeemzadeh et al.,
Algorithm 1, lines 2 to 5; norm_preserving.py says how). That is exact for circular padding and for 1x1 kernels; zero
padding lets part of the signal leave the map: of a 3x3 kernel on 8 x 8 pixels a third of the values drop below t.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from leadline.core.errors import UsageError, unknown
from leadline.linalg.conv_spectrum import checked, symbol_spectrum
from leadline.projections.norm_preserving import Isometry, correct, deviation, isometry, project, tangent
from leadline.projections.shape_changes import CONVOLUTIONS, Conv, transitions

SCHEDULES = ("steps", "random")
MOMENTUM = ("keep", "tangent")


@dataclass(frozen=True)
class Site:
    """One kernel and the set it is kept on."""

    name: str
    kernel: nn.Parameter
    onto: Isometry


@dataclass(frozen=True, kw_only=True)
class Projected:
    """What a projection did: the largest |sigma / target - 1| before and after, and |K' - K| / |K|."""

    name: str
    target: float
    before: float
    after: float
    moved: float
    note: str = ""


class Procrustes:
    """Projects the transitions of a model, or the given convolutions, after optimiser steps.

    `every` 2 is every second step with schedule "steps", each step with probability 1/2 with "random" (drawn from
    `seed`, the same on every rank). `relu` for convolutions that a ReLU follows. `momentum`: "keep" leaves gradients
    and buffers alone, "tangent" takes from the gradient what would leave the set before the optimiser sees it.

    >>> conv = nn.Conv2d(4, 8, 1, bias=False)
    >>> procrustes = Procrustes([conv]).attach(torch.optim.SGD(conv.parameters(), lr=0.1))
    >>> max(procrustes.deviations().values()) < 1e-6
    True
    """

    def __init__(
        self,
        model_or_convs: nn.Module | Mapping[str, nn.Module] | Iterable[nn.Module],
        *,
        every: int = 1,
        schedule: str = "steps",
        relu: bool = False,
        momentum: str = "keep",
        seed: int = 0,
    ) -> None:
        if schedule not in SCHEDULES:
            raise unknown("schedule", schedule, SCHEDULES)
        if momentum not in MOMENTUM:
            raise unknown("momentum", momentum, MOMENTUM)
        if every < 1:
            raise UsageError(f"expected to project every 1 or more steps; got every={every}")
        self.every, self.schedule, self.momentum = every, schedule, momentum
        self.sites = _sites(_named(model_or_convs), relu=relu)
        self.steps = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._handles: list[RemovableHandle] = []

    def attach(self, optimizer: Optimizer) -> Self:
        """Projects now, unless training has begun (a state was loaded), and from here on after optimiser steps."""
        if self._handles:
            raise UsageError("already attached to an optimiser; detach() first")
        stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        strangers = [site.name for site in self.sites if id(site.kernel) not in stepped]
        if strangers:
            raise UsageError(f"the optimiser does not train {', '.join(strangers)}; attach to the one that does")
        if self.steps == 0:
            self.project()
        self._handles = [optimizer.register_step_post_hook(self._after_step)]
        if self.momentum == "tangent":
            self._handles.append(optimizer.register_step_pre_hook(self._before_step))
        return self

    def detach(self) -> None:
        """Leaves the optimiser; the kernels stay as they are."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def project(self) -> tuple[Projected, ...]:
        """Every kernel onto its set, from wherever it is; one that is there already is left as it is."""
        former = [site.kernel.detach().clone() for site in self.sites]
        self._write(warm=False)
        return tuple(_report(site, kernel) for site, kernel in zip(self.sites, former, strict=True))

    def step(self) -> bool:
        """One optimiser step has been made: projects if it is time to, and says whether it did."""
        self.steps += 1
        if self.schedule == "random":
            due = bool(torch.rand((), generator=self._generator) * self.every < 1)
        else:
            due = self.steps % self.every == 0
        if due:
            self._write(warm=True)
        return due

    def deviations(self) -> dict[str, float]:
        """The largest |sigma / target - 1| of every kernel."""
        return {site.name: deviation(site.kernel, site.onto) for site in self.sites}

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was saved; the kernels are the model's own state."""
        if set(state) != {"steps", "generator"}:
            raise UsageError(f"expected the state of a Procrustes (steps, generator); got {', '.join(map(str, state))}")
        self.steps = int(state["steps"])
        self._generator.set_state(state["generator"].cpu())

    def projected(self, site: Site, *, warm: bool) -> Tensor:
        """The new kernel of one site."""
        return correct(site.kernel, site.onto) if warm else project(site.kernel, site.onto)

    @torch.no_grad()
    def _write(self, *, warm: bool) -> None:
        """All new kernels are found before the first is written; if anything fails, every kernel is as it was."""
        found = [self._found(site, warm=warm) for site in self.sites]
        former = [site.kernel.clone() for site in self.sites]
        try:
            for site, kernel in zip(self.sites, found, strict=True):
                site.kernel.copy_(kernel)
        except BaseException:
            for site, kernel in zip(self.sites, former, strict=True):
                site.kernel.copy_(kernel)
            raise

    def _found(self, site: Site, *, warm: bool) -> Tensor:
        try:
            return checked(self.projected(site, warm=warm))
        except UsageError as error:
            raise UsageError(f"{site.name}: {error}") from None

    def _after_step(self, *_: object) -> None:
        self.step()

    @torch.no_grad()
    def _before_step(self, *_: object) -> None:
        for site in self.sites:
            if site.kernel.grad is not None:
                site.kernel.grad.copy_(tangent(site.kernel.grad, site.kernel, site.onto))


def _named(given: nn.Module | Mapping[str, nn.Module] | Iterable[nn.Module]) -> Mapping[str, nn.Module]:
    if isinstance(given, CONVOLUTIONS):
        return {"conv": given}
    if isinstance(given, nn.Module) and not isinstance(given, nn.ModuleList | nn.ModuleDict):
        found: Mapping[str, nn.Module] = transitions(given)
        if not found:
            raise UsageError(f"no convolution of {type(given).__name__} changes the shape; pass those to project")
        return found
    if isinstance(given, Mapping | nn.ModuleDict):
        return dict(given.items())
    return {str(place): conv for place, conv in enumerate(given)}


def _sites(convs: Mapping[str, nn.Module], *, relu: bool) -> tuple[Site, ...]:
    """One site per kernel: modules that share one must mean the same by it."""
    sites: dict[int, Site] = {}
    for name, conv in convs.items():
        if not isinstance(conv, CONVOLUTIONS):
            raise UsageError(f"{name}: expected a Conv1d, Conv2d or Conv3d; got {type(conv).__name__}")
        kernel = _own_kernel(name, conv)
        onto = isometry(tuple(kernel.shape), stride=conv.stride, dilation=conv.dilation, groups=conv.groups, relu=relu)
        former = sites.setdefault(id(kernel), Site(name, kernel, onto))
        if former.onto != onto:
            raise UsageError(f"{former.name} and {name} share a kernel but differ in stride, dilation or groups")
    return tuple(sites.values())


def _own_kernel(name: str, conv: Conv) -> nn.Parameter:
    kernel = conv._parameters.get("weight")
    if parametrize.is_parametrized(conv, "weight") or not isinstance(kernel, nn.Parameter):
        raise UsageError(f"{name}: its kernel is computed from other parameters; remove that parametrisation first")
    if isinstance(kernel, nn.parameter.UninitializedParameter):
        raise UsageError(f"{name}: its kernel has no shape yet; run the model once first")
    return kernel


def _report(site: Site, former: Tensor) -> Projected:
    new, form = site.kernel.detach(), site.onto.layout
    lost = symbol_spectrum(former, form, tuple(2 * taps - 1 for taps in form.axes)).condition.lost
    return Projected(
        name=site.name,
        target=site.onto.target,
        before=deviation(former, site.onto),
        after=deviation(new, site.onto),
        moved=float(torch.linalg.vector_norm((new - former).double()) / torch.linalg.vector_norm(former.double())),
        note=f"rank-deficient before, {lost} directions chosen arbitrarily" if lost else "",
    )
