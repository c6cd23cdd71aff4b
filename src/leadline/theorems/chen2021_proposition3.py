"""Chen et al., Proposition 3: a DenseNEst is no worse than the best linear predictor, whatever its features.

Sides: a minimum of the risk in W_{L+1} for the concatenated features, by Newton from a random start; the least risk
of a linear function of the input.
Needs: Assumption 2.
"""

from collections.abc import Iterator
from functools import partial

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._densenest import densenest
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, Basis, fitted, lowest
from leadline.theorems._rounding import excess

GROWTHS = ((3, 2), (1,), (5, 5, 5), ())  # D_1, ..., D_L


def check(draw: Draw, *, wordless: bool = False) -> Iterator[Case | Aside]:
    """`wordless` concatenates the new features only, without the input."""
    for growth in GROWTHS:
        net = densenest(draw, growth)
        x, y = net.data(draw)
        features = tuple(net.features(x))
        basis = Basis((), features[1:] if wordless and growth else features, y)
        for name, loss in LOSSES.items():
            heads = fitted(basis, loss, draw.normal(len(y), len(basis.stacked)))
            risk, best = float(basis.augmented_risk(heads, loss)), lowest(Basis((), (x,), y), loss)
            yield Case(f"{name}, D={growth}", excess(risk, best, scale=basis.scale), basis.tolerance)
            yield Aside(f"risk over that of the best linear predictor, {name}, D={growth}", risk / best)


STATEMENTS = (
    Statement(
        place="Proposition 3",
        text="A local minimum of (PD) is at most the least risk of a linear predictor.",
        check=check,
        broken=partial(check, wordless=True),
    ),
)
