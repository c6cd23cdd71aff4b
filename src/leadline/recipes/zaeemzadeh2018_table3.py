"""Table 3: test errors of a ResNet with its transitions modified, and with these projected as well.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.3. CIFAR-100, 164 layers: original transition blocks, convolutions in front of identity blocks instead, and the same
kept norm-preserving.
Run: leadline reproduce zaeemzadeh2018_table3 --scale laptop (about 12 minutes, most of them shared with Table 2).
Expect: both steps lower the error, the change of architecture by more than the projection.
Differs: the least error over all epochs is taken, as the release does; the original's number is quoted in the paper
from another. Laptop: CIFAR-10 in place of CIFAR-100, half the width, 3,000 images of 16 x 16 pixels, 1,000 to test,
batches of 64 in bfloat16, eight epochs, depths 83 (three seeds) and 164. Smoke: digits, depth 20.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leadline.analysis.claims import Claim, Test
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import SIZES, at_every_depth, best_error, tabled, trained, training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = {
    "resnet": "original, not projected",
    "modified": "modified, not projected",
    "procresnet": "modified, projected",
}
NUMBERS = {"resnet": 24.33, "modified": 23.06, "procresnet": 22.61}
PUBLISHED = Table.from_rows(
    [
        {"net": net, "depth": 164, "data": "cifar100", "quantity": "error", "value": value, "source": "Table 3"}
        for net, value in NUMBERS.items()
    ]
)
PAPER_DEPTH = 164


def runs(scale: Scale) -> Iterator[Unit]:
    if scale != "paper":
        yield from tabled(scale, tuple(ROWS))
        return
    for net in ROWS:
        for seed in range(SIZES["paper"].tabled[PAPER_DEPTH]):
            yield training(net, PAPER_DEPTH, seed, scale, whole=True, data="cifar100")


def table(made: Sequence[Made]) -> Table:
    rows = [
        key | {"data": one.config.data.name, "error": best_error(one), "diverged": int(one.diverged)}
        for one, key in trained(made)
    ]
    return Table.from_rows(rows, ["net", "depth", "data", "seed", "error", "diverged"])


def figure(table: Table) -> "Figure":
    from leadline.figures import dots
    from leadline.figures.style import COLOURS, styled

    tones = dict(zip(ROWS.values(), (COLOURS[0], COLOURS[4], COLOURS[2]), strict=True))
    depths = sorted(set(table["depth"].tolist()))
    named = Table({**table, "name": np.array([ROWS[net] for net in table["net"].tolist()], dtype=object)})
    with styled():
        drawn, panels = dots.panels(len(depths), rows=len(ROWS), width=3.2)
        for panel, depth in zip(panels, depths, strict=True):
            rows = named.where(depth=depth)
            data = rows["data"][0]
            marked = {ROWS[net]: value for net, value in NUMBERS.items()} if data == "cifar100" else {}
            dots.draw(panel, rows, y="name", x="error", colours=tones, marked=marked, missing="diverged")
            panel.set(xlabel="test error, %", title=f"{data}, {depth} layers")
    return drawn


def better(first: str, second: str) -> Test:
    return lambda table: at_every_depth(table, "error", first, second, of="least test error in percent")


CLAIMS = (
    Claim(
        where="section 4.3, Table 3",
        text="moving the convolution from the skip to in front of the block lowers the error",
        published="23.06 < 24.33",
        test=better("modified", "resnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.3, Table 3",
        text="the projection lowers it further",
        published="22.61 < 23.06",
        test=better("procresnet", "modified"),
        since="laptop",
    ),
    Claim(
        where="section 4.3, Table 3",
        text="both together lower it",
        published="22.61 < 24.33",
        test=better("procresnet", "resnet"),
        since="laptop",
    ),
)
