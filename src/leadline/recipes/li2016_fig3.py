"""Fig. 3: average Frobenius norm of the weights of 2-shortcut networks of growing depth in the course of training.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 4.1 and appendix B. Whitened MNIST of ten dimensions,
one-hot targets, full-batch gradient descent from 0.01 times Xavier; linear on the left, ReLUs in mid positions on the
right.
Run: leadline reproduce li2016_fig3 --scale laptop (the left half is that of paper scale, and takes about a minute; the
right half shares its runs with li2016_fig8).
Expect: the norms rise from nearly zero and stay; the deeper the network, the lower. The root of the depth, which bounds
them in eq. (7), is what they come to in the limit: a unit has to be the R-th root of a map that shrinks most directions
to little, and I + W^2 W^1 = a^(1/R) for small a falls more slowly while R is small.
Differs: the paper prints neither depths nor rate. Ours are depths 4, 8, 16, 32 and 64 for 1000 epochs at the rate that
ends lowest (of 10^-4 to 10, four per decade), which each start has for itself on the left and each depth on the right;
three starts, on the right at paper scale ten. Linear nets train on second moments, which is exact. Right half at laptop
scale: 1000 images, nine rates, three starts. Smoke: digits that come with the package, depths 4 and 8, fewer epochs.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leadline.analysis.claims import Claim, Test
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _li2016_norms as norms
from leadline.recipes._li2016_best import at_best
from leadline.recipes._li2016_linear import EPOCHS, SECONDS_OF_LONE_LAYER, SECONDS_OF_NET_LAYER, scanned, study
from leadline.recipes._li2016_relu import DEPTHS, POINTS, by_shape, final_losses, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NET = "2-shortcut"
SEEDS: dict[Scale, int] = {"smoke": 2, "laptop": 3, "paper": 3}
PUBLISHED = Table(part=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""
PARTS = {"linear": "without nonlinearities", "relu": "ReLUs in mid positions"}


def runs(scale: Scale) -> Iterator[Unit]:
    among, epochs = scanned(scale), EPOCHS[scale]
    for depth in DEPTHS[scale]:
        seconds = depth * epochs * (SECONDS_OF_NET_LAYER * len(among) + SECONDS_OF_LONE_LAYER)
        shape = {"net": NET, "depth": depth, "rates": among, "epochs": epochs, "every": epochs // POINTS}
        for seed in range(SEEDS[scale]):
            yield study("norms", scale, seconds=seconds, seed=seed, **shape)
    yield from trainings(scale, (NET,))


def table(made: Sequence[Made]) -> Table:
    """Parts `linear` and `relu`: a row for each depth, start and epoch read."""
    relu = [one for one in made if "samples" in one.args]
    rows = [row for one in made if one not in relu for row in _linear(one)]
    for (_, depth), ones in by_shape(relu).items():
        rate = next(at_best(final_losses(ones), ones[0].args["rates"]))["rate"]
        rows += [row for one in ones for row in _relu(one, depth, rate)]
    return Table.from_rows(rows, ["part", "rate", *norms.COLUMNS])


def _linear(one: Made) -> Iterator[dict[str, Any]]:
    run = {"part": "linear", "depth": one.args["depth"], "seed": one.seed, "rate": one.last("rate")}
    epochs, losses = one.curve("loss")
    for epoch, loss, norm in zip(epochs.tolist(), losses.tolist(), one.curve("norm")[1].tolist(), strict=True):
        yield run | {"epoch": float(epoch), "loss": loss, "norm": norm}


def _relu(one: Made, depth: int, rate: float) -> Iterator[dict[str, Any]]:
    among = list(one.args["rates"])
    if rate not in among:
        return
    run = {"part": "relu", "depth": depth, "seed": one.seed, "rate": rate}
    for epoch in dict.fromkeys(one.readings("norm")["step"].tolist()):
        loss, norm = (float(one.profile(name, step=epoch)[among.index(rate)]) for name in ("loss", "norm"))
        yield run | {"epoch": float(epoch), "loss": loss, "norm": norm}


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    depths = sorted(set(table["depth"].tolist()))
    with styled():
        drawn, panels = series.panels(2, width=3.7, height=3.2)
        for panel, (part, title) in zip(panels, PARTS.items(), strict=True):
            labels = {depth: f"{depth} layers" for depth in depths}
            series.draw(panel, table.where(part=part), x="epoch", y="norm", by="depth", names=labels, marker="")
            panel.set(title=title, xlabel="epoch", ylim=(0, None))
        panels[0].set_ylabel("average Frobenius norm")
        handles, labelled = panels[0].get_legend_handles_labels()
        drawn.legend(handles, labelled, loc="outside lower center", ncols=len(depths))
    return drawn


def of(part: str, test: Test) -> Test:
    return lambda table: test(table.where(part=part))


CLAIMS = tuple(
    Claim(where=where, text=f"{text}, {PARTS[part]}", test=of(part, test), since="laptop")
    for part in PARTS
    for where, text, test in (
        ("section 4.1, Fig. 3", "when training ends the norm is the smaller the deeper the network", norms.at_the_end),
        ("section 4.1, Fig. 3", "it is the smaller during all of the training", norms.throughout),
        ("section 4.1, eq. (7)", "already at these depths it falls as one over the root of the depth", norms.as_a_root),
    )
)
