"""Fig. 3: gradient norm ratio of every block while plain, residual and Procrustes residual networks train.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.1. CIFAR-10, depths 20, 83 and 164, the first 100 epochs at rate 0.1; ||dE/dx_{l+1}|| / ||dE/dx_l|| of every block.
Run: leadline reproduce zaeemzadeh2018_fig3 --scale laptop (about ten minutes on one core).
Expect: plain networks drift from one, the more the deeper they are; identity blocks of ResNet and ProcResNet stay at
one, the closer the deeper; in deep ResNets only the transitions stand out, in ProcResNet only the stem.
Differs: ratios are those of one batch each, read several times an epoch; blocks that change no dimension are drawn as
a band, the darker part of which holds half of them, and plain networks on a scale of their own. The projection is the
exact one, not the iteration of eq. (9) followed by a crop; zaeemzadeh2018_stem_fault compares them. The laptop scale
has half the width, 3,000 images of 16 x 16 pixels (means of four), batches of 64 in bfloat16 and six epochs; the smoke
scale the digits that come with the package and depths 20 and 29.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leadline.analysis.claims import Claim, Test, below, ordered
from leadline.analysis.stats import seeds, spread
from leadline.analysis.verdict import Verdict, at_least, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import (
    COMPARED,
    NAMES,
    deepest_common,
    depths,
    distance,
    per_epoch,
    shown_epochs,
    trained,
    watched,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes; those in the text are in the claims."""
TRANSITIONS = {1: "first transition", 2: "second", 3: "third"}
SHALLOWEST = 20
CLOSE = 1.5
"""What "roughly concentrated around 1" is taken to mean for a median."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from watched(scale, seeds=3)


def table(made: Sequence[Made]) -> Table:
    parts = [_ratios(one, key) for one, key in trained(made)]
    return Table.concat([part for part in parts if part.height] or [_empty()])


def _empty() -> Table:
    return Table(net=[], depth=[], seed=[], diverged=[], epoch=[], block=[], transition=[], ratio=[])


def _ratios(one: Made, key: dict[str, object]) -> Table:
    """One row a block and reading; the ProcResNet's stem is its first transition, those of the others are left out."""
    blocks = one.run.record["anatomy"]["blocks"]
    changes = [block["kind"] == "transition" or block["in_shape"][1:] != block["out_shape"][1:] for block in blocks]
    transition = np.where(changes, np.cumsum(changes) + (key["net"] == "procresnet"), 0)
    found, stem = one.readings("ratio"), one.readings("ratio/stem")
    columns = [
        (found["step"], found["block"], transition[found["block"]], found["value"]),
        (stem["step"], stem["block"], np.ones(stem.height, dtype=int), stem["value"]),
    ]
    steps, block, number, ratio = (
        np.concatenate(pair) for pair in zip(*(columns if key["net"] == "procresnet" else columns[:1]), strict=True)
    )
    epoch = steps / per_epoch(one)
    whole = {name: np.full(len(steps), value) for name, value in key.items()}
    whole["net"] = whole["net"].astype(object)
    whole["diverged"] = np.full(len(steps), int(one.diverged))
    rows = Table(
        whole, epoch=epoch.round(4), block=block, transition=number, ratio=np.array([_short(r) for r in ratio])
    )
    return rows.select(epoch <= shown_epochs(one))


def _short(ratio: float) -> float:
    """Five digits, which is more than any drawing shows."""
    return float(f"{ratio:.5g}")


def figure(table: Table) -> "Figure":
    from leadline.figures import block_lines
    from leadline.figures.style import blank, styled

    every = sorted(set(table["depth"].tolist()))
    with styled():
        drawn = blank(width=8.4, height=0.8 + 2.0 * len(every))
        panels = drawn.subplots(len(every), len(COMPARED), sharex=True, squeeze=False)
        for line, depth in zip(panels, every, strict=True):
            for panel, net in zip(line, COMPARED, strict=True):
                rows = table.where(net=net, depth=depth, seed=0)
                named = {str(number): name for number, name in TRANSITIONS.items()}
                block_lines.draw(
                    panel, _labelled(rows), x="epoch", y="ratio", by="line", marked=named, others="other blocks"
                )
                panel.set_title(f"{NAMES[net]} {depth + 2 * (net == 'procresnet')}")
                if len(set(rows["epoch"].tolist())) < 2:
                    panel.text(
                        0.5, 0.6, "no reading after the start", transform=panel.transAxes, ha="center", color="0.4"
                    )
        for columns in (panels[:, :1], panels[:, 1:]):  # the range of plain networks would hide the others
            block_lines.share_scale(columns.ravel().tolist())
        for panel in panels[:, 0]:
            panel.set_ylabel("gradient norm ratio")
        for panel in panels[-1]:
            panel.set_xlabel("epoch")
        handles, labels = max((panel.get_legend_handles_labels() for panel in panels.flat), key=lambda p: len(p[0]))
        drawn.legend(handles, labels, loc="outside lower center", ncols=4)
    return drawn


def _labelled(rows: Table) -> Table:
    """With a column that says which line a row belongs to: the number of a transition, or the block."""
    pairs = zip(rows["transition"].tolist(), rows["block"].tolist(), strict=True)
    names = np.array([str(number) if number else f"block {block}" for number, block in pairs], dtype=object)
    return Table({**{name: rows[name] for name in rows}, "line": names})


def distances(table: Table, net: str, depth: int, *, transitions: bool | None = None) -> list[float]:
    """For every seed the mean |log10 ratio| over blocks and time, of transitions, of the others or of all."""
    rows = table.where(net=net, depth=depth)
    if transitions is not None:
        rows = rows.select((rows["transition"] > 0) == transitions)
    return [distance(rows.where(seed=seed)["ratio"]) for seed in sorted(set(rows["seed"].tolist()))]


def by_depth(table: Table, net: str, *, transitions: bool | None = None) -> dict[int, float]:
    """The mean over seeds of `distances` at every depth."""
    return {depth: spread(distances(table, net, depth, transitions=transitions)).mean for depth in depths(table, net)}


def range_over_time(table: Table, net: str, depth: int) -> tuple[float, float]:
    """The largest ratio of a block over the smallest, at the first reading and at the worst one after it; seed 0."""
    rows = table.where(net=net, depth=depth, seed=0)
    ranges = []
    for epoch in sorted(set(rows["epoch"].tolist())):
        known = rows.where(epoch=epoch)["ratio"]
        known = known[np.isfinite(known) & (known > 0)]
        ranges.append(float(known.max() / known.min()) if len(known) else float("nan"))
    return (ranges[0], float(np.nanmax(ranges[1:]))) if len(ranges) > 1 else (float("nan"), float("nan"))


def drifts(table: Table) -> Verdict:
    depth = max(depths(table, "plain"), default=0)
    start, worst = range_over_time(table, "plain", depth)
    note = f"Plain {depth}: largest over smallest ratio {start:.3g} at the start, {worst:.3g} at the worst"
    return judge(worst > start, worst / start, note=note)


def enforced(table: Table) -> Verdict:
    depth = deepest_common(table, COMPARED)
    worst = {net: range_over_time(table, net, depth)[1] for net in COMPARED}
    note = f"at the worst, depth {depth}: " + ", ".join(f"{NAMES[net]} {value:.3g}" for net, value in worst.items())
    largest = max(worst["resnet"], worst["procresnet"])
    return judge(largest < worst["plain"], worst["plain"] / largest, note=note)


def worse_with_depth(table: Table) -> Verdict:
    return _falls(table, by_depth(table, "plain"), backwards=True)


def better_with_depth(net: str) -> Test:
    return lambda table: _falls(table, by_depth(table, net, transitions=False))


def _falls(table: Table, found: dict[int, float], *, backwards: bool = False) -> Verdict:
    note = "mean |log10 ratio| " + ", ".join(f"{value:.3g} at {depth}" for depth, value in found.items())
    values = list(found.values())
    return ordered(values[::-1] if backwards else values, seeds=seeds(table), note=note)


def only_transitions(table: Table) -> Verdict:
    """Of the deepest ResNet, are the three blocks farthest from one over time its transitions?"""
    depth = max(depths(table, "resnet"), default=0)
    rows = table.where(net="resnet", depth=depth)
    far = {block: distance(rows.where(block=block)["ratio"]) for block in sorted(set(rows["block"].tolist()))}
    changes = set(rows["block"][rows["transition"] > 0].tolist())
    if not far:
        return undecided("no ResNet was trained")
    worst = sorted(far, key=far.__getitem__, reverse=True)[:3]
    note = f"ResNet {depth}: farthest from 1 " + ", ".join(
        f"block {block + 1} ({'transition' if block in changes else 'identity'}, {far[block]:.3g})" for block in worst
    )
    return at_least(sum(block in changes for block in worst), 3, seeds=seeds(rows), note=note)


def only_the_stem(table: Table) -> Verdict:
    depth = max(depths(table, "procresnet"), default=0)
    rows = table.where(net="procresnet", depth=depth)
    of = {number: distance(rows.where(transition=number)["ratio"]) for number in (1, 2, 3)}
    rest = distance(rows.where(transition=0)["ratio"])
    note = f"ProcResNet {depth + 2}: mean |log10 ratio| " + ", ".join(f"{TRANSITIONS[n]} {of[n]:.3g}" for n in of)
    others = max(of[2], of[3], rest)
    return judge(of[1] > others, of[1] / others, seeds=seeds(rows), note=f"{note}, identity blocks {rest:.3g}")


def already_at_20(table: Table) -> Verdict:
    depth = min(SHALLOWEST, *depths(table, "procresnet"), *depths(table, "resnet"))
    pair = (distances(table, net, depth) for net in ("procresnet", "resnet"))
    return below(*pair, note=f"mean |log10 ratio| over all blocks of ProcResNet and ResNet, depth {depth}")


def enhanced(table: Table) -> Verdict:
    depth = deepest_common(table, ("procresnet", "resnet"))
    pair = (distances(table, net, depth, transitions=True) for net in ("procresnet", "resnet"))
    return below(*pair, note=f"mean |log10 ratio| of the transitions of ProcResNet and ResNet, depth {depth}")


def concentrated(table: Table) -> Verdict:
    medians = {
        (net, depth): float(np.median(known))
        for net in COMPARED
        for depth in depths(table, net)
        if len(known := _known(table.where(net=net, depth=depth, diverged=0)))
    }
    if not medians:
        return undecided("no training was stable")
    far = {key: max(value, 1 / value) for key, value in medians.items()}
    net, depth = max(far, key=far.__getitem__)
    note = f"the median farthest from 1 is {medians[net, depth]:.3g}, of {NAMES[net]} {depth}"
    return at_most(max(far.values()), CLOSE, seeds=seeds(table), note=note)


def _known(rows: Table) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    ratios = rows["ratio"]
    known: np.ndarray[tuple[int], np.dtype[np.float64]] = ratios[np.isfinite(ratios) & (ratios > 0)]
    return known


def converge(table: Table) -> Verdict:
    depth = max(depths(table, "resnet"), default=0)
    rows = table.where(net="resnet", depth=depth)
    rows = rows.select(rows["transition"] > 0)
    last = rows["epoch"].max(initial=0.0)
    early, late = (distance(rows["ratio"][part]) for part in (rows["epoch"] <= last / 4, rows["epoch"] >= 3 * last / 4))
    note = (
        f"ResNet {depth}, mean |log10 ratio| of transitions: {early:.3g} in the first quarter, {late:.3g} in the last"
    )
    return judge(late < early, early / late, seeds=seeds(rows), note=note)


def similar_when_shallow(table: Table) -> Verdict:
    common = [depth for depth in depths(table, "plain") if depth in depths(table, "resnet")]
    plain, residual = by_depth(table, "plain"), by_depth(table, "resnet")
    apart = [plain[depth] / residual[depth] for depth in common]
    if len(apart) < 2:
        return undecided("fewer than two depths of both")
    note = "mean |log10 ratio|, Plain over ResNet: " + ", ".join(
        f"{value:.3g} at {depth}" for depth, value in zip(common, apart, strict=True)
    )
    return judge(abs(np.log(apart[0])) < abs(np.log(apart[-1])), apart[0], seeds=seeds(table), note=note)


def unstable(table: Table) -> Verdict:
    depth = max(depths(table, "plain"), default=0)
    rows = table.where(net="plain", depth=depth)
    stopped = bool(rows.height) and bool(rows["diverged"].all())
    reached = float(rows["epoch"].max(initial=0.0))
    note = f"Plain {depth} " + ("diverged" if stopped else "did not diverge") + f"; last reading at epoch {reached:.3g}"
    return judge(stopped, reached, seeds=seeds(rows), note=note)


CLAIMS = (
    Claim(
        where="section 4.1 (1)",
        text="plain networks are norm-preserving at the start; in training the range of ratios becomes very large",
        test=drifts,
        since="laptop",
    ),
    Claim(
        where="section 4.1 (1)",
        text="identity skips of ResNet and ProcResNet keep norms preserved during training",
        test=enforced,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="plain networks become less norm-preserving as they become deeper",
        test=worse_with_depth,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="non-transition blocks of ResNet become more norm-preserving as it becomes deeper",
        test=better_with_depth("resnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="non-transition blocks of ProcResNet become more norm-preserving as it becomes deeper",
        test=better_with_depth("procresnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="in deep ResNets only the three transition blocks are not norm-preserving",
        published="depths 83 and 164",
        test=only_transitions,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="in ProcResNet the only block that is less norm-preserving is the first transition, 3 to 64 channels",
        test=only_the_stem,
        since="laptop",
    ),
    Claim(
        where="caption of Fig. 3",
        text="the regularisation makes the transition blocks norm-preserving",
        test=enhanced,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="even at depth 20 ProcResNet is more norm-preserving than ResNet",
        test=already_at_20,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="ResNet and plain networks behave alike at depth 20",
        test=similar_when_shallow,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="ratios of all networks, even plain ones, are roughly around 1 while training is stable",
        published="about 1",
        test=concentrated,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="transition blocks of ResNet tend to become more norm-preserving as it trains",
        test=converge,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="the plain network of 164 layers becomes numerically unstable and stops",
        published="after 10 epochs",
        test=unstable,
        since="paper",
    ),
)
