"""The cases of the diagnosis benchmark: networks sound and sick, each with the fault that was put into it, if any.

A case is plain data; `build` makes its network. Cases of one group (architecture and kind of trouble) stand together
in the development part or in the test part, never in both: rules are tuned on the first and judged on the second.

What the truth is (fixed before any rule existed; `truth.py` measures it). All networks see the embedded digits in
batches of 64 for at most K = 200 steps; L is the mean training loss over the last ten steps, C = log 10 the loss of
guessing, T the first step at which L <= C / 2. A case is trained at the rate asked for, r, and at r / 4 and 4 r; its
twin, a sound network of the same depth and width, at its optimiser's usual rate, a quarter and four times of it.

    trains            T <= 3 T_twin + 10 at the rate asked for, T_twin the twin's best
    does not train    L never below 0.9 C, or not finite, or back above 0.9 C at the end, at the rate asked for
    trains slowly     everything else

Its construction is the fault put in, or what theory says of the design. Its cause is none if it trains, whatever was
done to it; the learning rate, if r / 4 or 4 r alone makes it train; else the construction. A diagnosis has named the
root cause if it names the cause or the construction.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import networks
import torch
from torch import nn

RATES = {"sgd": 0.05, "adam": 1e-3}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One network, the way it is trained, and what is wrong with it."""

    group: str
    net: str
    args: dict[str, Any] = field(default_factory=dict)
    twin: dict[str, Any] = field(default_factory=dict)
    optimizer: str = "sgd"
    factor: float = 1.0
    fault: str = "none"
    construction: str = "none"
    seed: int = 0

    @property
    def id(self) -> str:
        text = repr(sorted(asdict(self).items(), key=lambda item: item[0]))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def rate(self) -> float:
        """The learning rate asked for."""
        return RATES[self.optimizer] * self.factor

    @property
    def part(self) -> str:
        """`development` or `test`, by group alone."""
        return "test" if hashlib.sha256(self.group.encode()).digest()[0] % 2 else "development"

    def build(self) -> nn.Module:
        """The network of this case, its fault built in."""
        torch.manual_seed(self.seed)
        return networks.broken(networks.NETS[self.net](**self.args), self.fault)

    def build_twin(self) -> nn.Module:
        """The sound network it is compared with."""
        torch.manual_seed(self.seed)
        return networks.NETS[self.net](**{**self.args, **self.twin})


SOUND = {"skip": True, "norm": "batch", "init": "he", "activation": "relu", "length": 2}
DEPTHS = (6, 12, 24, 40)


def designs() -> Iterator[Case]:
    """Trouble, or none, that comes from the design alone: skips, norms, starts, activations, depth."""
    for net, depth, optimizer in ((n, d, o) for n in ("conv", "mlp") for d in DEPTHS for o in RATES):
        common: dict[str, Any] = {"net": net, "optimizer": optimizer, "twin": SOUND, "seed": depth}
        shape = {"depth": depth}
        for norm in ("none", "batch", "layer"):
            for skip in (False, True):
                cause = {
                    (False, "none"): "signal or gradient dies with depth",
                    (False, "batch"): "gradient explodes with depth",
                    (False, "layer"): "gradient explodes with depth",
                    (True, "none"): "output explodes without norm",
                }.get((skip, norm), "none")
                args = {**shape, "skip": skip, "norm": norm}
                yield Case(group=f"{net}-{'skip' if skip else 'plain'}-{norm}", args=args, construction=cause, **common)
        for init, cause in (("tiny", "signal or gradient dies with depth"), ("huge", "output explodes without norm")):
            args = {**shape, "skip": False, "norm": "none", "init": init}
            yield Case(group=f"{net}-plain-{init}", args=args, construction=cause, **common)
        for activation in ("tanh", "identity"):
            args = {**shape, "skip": False, "norm": "none", "activation": activation}
            yield Case(
                group=f"{net}-{activation}", args=args, construction="signal or gradient dies with depth", **common
            )
        for length in (1, 3):
            args = {**shape, "skip": True, "norm": "none", "init": "near-zero", "length": length}
            cause = "shortcut length 1" if length == 1 else "flat stationary start"
            yield Case(group=f"{net}-length-{length}", args=args, construction=cause, **common)
        args = {**shape, "skip": True, "norm": "none", "init": "near-zero"}
        yield Case(group=f"{net}-near-zero", args=args, **common)


STAGED_TWIN = {"family": "resnet", "norm": "batch", "init": None, "activation": "relu"}


def staged() -> Iterator[Case]:
    """Networks of three stages with their transitions, as the papers have them."""
    causes = {
        ("plainnet", "none"): "signal or gradient dies with depth",
        ("plainnet", "batch"): "gradient explodes with depth",
        ("resnet", "none"): "output explodes without norm",
    }
    for depth, optimizer in ((d, o) for d in (20, 38, 56) for o in RATES):
        common: dict[str, Any] = {"net": "staged", "optimizer": optimizer, "twin": STAGED_TWIN, "seed": depth}
        for family, norm in ((f, n) for f in ("plainnet", "resnet", "preresnet-basic") for n in ("none", "batch")):
            cause = causes.get((family.replace("preresnet-basic", "resnet"), norm), "none")
            args = {"family": family, "depth": depth, "norm": norm}
            yield Case(group=f"{family}-{norm}", args=args, construction=cause, **common)
        for init, cause in (
            ("xavier", "signal or gradient dies with depth"),
            ("orthogonal", causes["plainnet", "none"]),
        ):
            args = {"family": "plainnet", "depth": depth, "norm": "none", "init": init}
            yield Case(group=f"plainnet-{init}", args=args, construction=cause, **common)
        args = {"family": "resnet", "depth": depth, "norm": "none", "init": "near-zero"}
        yield Case(group="resnet-near-zero", args=args, **common)


FAULTS = {
    "detached": "loss not connected or frozen",
    "frozen": "loss not connected or frozen",
    "labels": "labels or data",
    "fp16": "numerical format",
    "transition": "norm broken at a transition",
    "dead": "dead channels",
    "narrow": "a block too narrow for what it carries",
}


def faults() -> Iterator[Case]:
    """A fault put into a network that is sound by design."""
    for net, depth, fault in ((n, d, f) for n in ("conv", "mlp") for d in (6, 24) for f in FAULTS):
        for norm, seed in (("batch", 1), ("none", 2), ("layer", 3)):
            init = "near-zero" if norm == "none" else "he"
            args = {"depth": depth, "skip": True, "norm": norm, "init": init}
            common: dict[str, Any] = {"net": net, "args": args, "twin": SOUND, "seed": seed}
            yield Case(group=f"{net}-fault-{fault}", fault=fault, construction=FAULTS[fault], **common)


def rates() -> Iterator[Case]:
    """A sound network at a rate that is not: too high, too low, or just unusual."""
    for net, optimizer in ((n, o) for n in ("conv", "mlp") for o in RATES):
        for depth, factor in ((d, f) for d in (6, 24) for f in (1e-4, 1e-3, 0.2, 5.0, 300.0, 1e4)):
            cause = "learning rate too high" if factor > 10 else "learning rate too low" if factor < 0.1 else "none"
            args = {"depth": depth, "skip": True, "norm": "batch"}
            yield Case(
                group=f"{net}-rate-{'high' if factor > 1 else 'low'}",
                net=net,
                args=args,
                twin=SOUND,
                optimizer=optimizer,
                factor=factor,
                construction=cause,
                seed=4,
            )


def cases() -> list[Case]:
    """All cases, in a fixed order."""
    found = [*designs(), *staged(), *faults(), *rates()]
    assert len({case.id for case in found}) == len(found)
    return found
