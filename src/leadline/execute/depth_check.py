"""The same recipe at growing depth: which readings grow with every block, and how deep it may get and still train.

At every depth the network is measured untrained under a few seeds, and one of them is trained for a few steps, as
`check` does at the rate asked for. What is measured, as a factor, and compared over depth in decades (log10):

    gradient       max / min of ||dE/dx_l|| over the boundaries l
    signal         max / min over the boundaries of the largest |x_l|
    likeness       1 / (1 - c), c the mean |cosine| between samples at the last boundary
    first loss     the loss of the untrained network over that of guessing
    steps          the steps it takes to come to half the loss of guessing
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn
from torch.optim import Adam, Optimizer

from leadline.analysis.deepest import DepthCheck, Rung, predict
from leadline.analysis.depth import trend
from leadline.core.errors import UsageError
from leadline.core.plain import plain
from leadline.diagnosis.evidence import Evidence, Numbers, decades
from leadline.diagnosis.judge import judge
from leadline.diagnosis.thresholds import Thresholds
from leadline.diagnosis.thresholds import thresholds as limits
from leadline.execute.check import RATE, STEPS
from leadline.execute.fault import located
from leadline.execute.keep import keep, usable
from leadline.execute.rehearse import Clock, Rehearsal, rehearse
from leadline.store.layout import FORMAT, write_json
from leadline.taps.inputs import eager
from leadline.train import seeds
from leadline.train.sound import sound
from leadline.train.sounder import LossFunction

BUDGET = 120.0
PROBES = ("gradient_norm_ratio", "activation_range", "collinearity")
RECORDED = "depths.json"

Factory = Callable[[int], nn.Module]
MakeOptimizer = Callable[[nn.Module], Optimizer | None]
Told = Callable[[str], object]
"""Is told what is measured and trained now."""


def depth_check(
    factory: Factory,
    depths: Iterable[int],
    batch: Any,
    loss_fn: LossFunction,
    optimizer: MakeOptimizer | None = None,
    *,
    batches: Iterable[Any] = (),
    repeats: int = 3,
    steps: int = STEPS,
    budget: float = BUDGET,
    seed: int = 0,
    family: str = "this family",
    thresholds: Path | None = None,
    to: str | Path | None = None,
    progress: Told | None = None,
) -> DepthCheck:
    """Measure what `factory(depth)` gives at every depth, train it for a few steps, and say how deep it may get.

    `batch`, `batches`, `loss_fn` and `steps` are those of `check`; `optimizer` makes one for a model, Adam at 1e-3 when
    not given. Untrained networks are measured under `repeats` seeds. `budget` is in seconds: it is shared out by depth
    and is kept but for the step that is under way. `to` is a folder that gets one for every depth, as `check` keeps it.
    """
    wanted = _increasing(depths)
    if min(steps, repeats) < 1 or budget <= 0:
        said = f"steps={steps}, repeats={repeats}, budget={budget}"
        raise UsageError(f"{said}: expected at least one step and seed, and more than 0 seconds")
    lab = Lab(
        factory=factory,
        optimizer=optimizer or (lambda _: None),
        batches=[batch, *islice(batches, steps - 1)],
        loss_fn=loss_fn,
        repeats=repeats,
        steps=steps,
        seed=seed,
        limits=limits(thresholds),
    )
    folders = {depth: None if to is None else usable(Path(to) / f"depth-{depth}") for depth in wanted}
    clock, found = Clock(budget), list[tuple[Rung, list[dict[str, float]]]]()
    with seeds.untouched():
        for depth in wanted:
            lab.built(depth, seed)
        for number, depth in enumerate(wanted):
            if progress:
                progress(f"{family} at depth {depth}")
            within = (budget - clock.spent) * depth / sum(wanted[number:])
            found.append(lab.rung(depth, within=max(within, 1e-3), to=folders[depth]))
    result = _result(family, found, seconds=clock.spent)
    if to is not None:
        write_json(Path(to) / RECORDED, {"format": FORMAT, **plain(result.to_json())})
    return result


def _increasing(depths: Iterable[int]) -> list[int]:
    wanted = sorted(set(depths))
    if len(wanted) < 3 or wanted[0] < 1:
        raise UsageError(f"depths {', '.join(map(str, wanted)) or 'none'}: expected at least three, of 1 and more")
    return wanted


def _result(family: str, found: Sequence[tuple[Rung, list[dict[str, float]]]], *, seconds: float) -> DepthCheck:
    rungs = tuple(rung for rung, _ in found)
    points = [(rung.blocks, point) for rung, several in found for point in several]
    blocks = [count for count, _ in points]
    trends = {name: trend(blocks, [point.get(name, math.nan) for _, point in points]) for name in QUANTITIES}
    prediction = predict(rungs, trends)
    return DepthCheck(family=family, rungs=rungs, trends=trends, prediction=prediction, seconds=seconds)


# -- one depth -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What the networks of all depths have in common."""

    factory: Factory
    optimizer: MakeOptimizer
    batches: Sequence[Any]
    loss_fn: LossFunction
    repeats: int
    steps: int
    seed: int
    limits: Thresholds

    def rung(self, depth: int, *, within: float, to: Path | None) -> tuple[Rung, list[dict[str, float]]]:
        """One depth, trained and measured; what was measured under every seed, by name, in decades."""
        model = self.built(depth, self.seed)
        found = self.rehearsed(model, depth, within)
        seen = Evidence(found.record, found.readings)
        if not seen.blocks:
            raise UsageError(f"no chain of blocks was found at depth {depth}; depth cannot be counted")
        diagnosis = judge(seen, seconds=found.seconds, limits=self.limits)
        if to is not None:
            keep(to, found.record, found.readings, diagnosis)
        rung = Rung(
            depth=depth,
            blocks=len(seen.blocks),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            verdict=diagnosis.verdict,
            reason=diagnosis.reason,
        )
        chance = seen.number("start/chance")
        others = [self.measured(depth, self.seed + more) for more in range(1, self.repeats)]
        return rung, [quantities(one, chance) for one in (seen, *others)]

    def rehearsed(self, model: nn.Module, depth: int, within: float) -> Rehearsal:
        """A training of at most `steps` steps, at the rate asked for alone."""
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not wanted:
            raise UsageError(f"the model of depth {depth} cannot be trained: no parameter of it is to be")
        stepper = self.optimizer(model) or Adam(wanted, lr=RATE)
        return rehearse(model, self.batches, self.loss_fn, stepper, steps=self.steps, budget=within, elsewhere=False)

    def measured(self, depth: int, seed: int) -> Evidence:
        """An untrained network of another seed."""
        model = self.built(depth, seed)
        with located(model, self.batches[0]):
            profile = sound(model, self.batches[0], self.loss_fn, probes=PROBES)
        return Evidence(profile.record, profile.readings)

    def built(self, depth: int, seed: int) -> nn.Module:
        seeds.seed_all(seed)
        return eager(self.factory(depth)).train()


# -- what is compared ----------------------------------------------------------------------------------------------


def quantities(seen: Evidence, chance: float) -> dict[str, float]:
    """Every reading that is compared over depth, in decades; nan where it was not read."""
    found = {name: quantity(seen) for name, quantity in QUANTITIES.items()}
    if chance > 0 and math.isfinite(chance):
        found["first loss"] -= math.log10(chance)
    return found


def _span(logs: Numbers) -> float:
    """The largest less the least; infinite where one of them is."""
    known = logs[~np.isnan(logs)]
    if not len(known):
        return math.nan
    return float(known.max() - known.min()) if np.isfinite(known).all() else math.inf


def _likeness(seen: Evidence) -> float:
    cosine = seen.profile("collinearity/cosine")
    if not len(cosine) or math.isnan(cosine[-1]):
        return math.nan
    return -math.log10(1 - cosine[-1]) if cosine[-1] < 1 else math.inf


def _first_loss(seen: Evidence) -> float:
    loss = seen.number("loss/train/loss")
    return math.log10(loss) if 0 < loss < math.inf else math.nan if loss <= 0 else math.inf


QUANTITIES: Mapping[str, Callable[[Evidence], float]] = {
    "gradient": lambda seen: _span(decades(seen.profile("gradient_norm_ratio/norm"))),
    "signal": lambda seen: _span(seen.forward),
    "likeness": _likeness,
    "first loss": _first_loss,
    "steps": lambda seen: math.log10(reach) if math.isfinite(reach := seen.course().reach) else math.nan,
}
