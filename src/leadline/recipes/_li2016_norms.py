"""What Figs 2 and 3 of Li et al. claim of average Frobenius norms: the deeper the network, the smaller they are.

Tables have the columns `depth`, `seed`, `epoch` and `norm`; every depth is read at the same epochs.
"""

import itertools

from leadline.analysis.claims import ordered
from leadline.analysis.slopes import log_slope
from leadline.analysis.stats import seeds, spread, summarise
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core.table import Table

COLUMNS = ("depth", "seed", "epoch", "loss", "norm")
ABOUT = 0.1
"""An exponent this near to that of eq. (7) is the same."""


def at_the_end(table: Table) -> Verdict:
    """Means over starts at the last epoch, by growing depth; measured is the least ratio of one to the next."""
    last = ends(table)
    spreads = {depth: spread(last.where(depth=depth)["norm"]) for depth in sorted(set(last["depth"].tolist()))}
    note = ", ".join(f"{each} at {depth}" for depth, each in spreads.items())
    return ordered([each.mean for each in spreads.values()], seeds=seeds(table), note=note)


def throughout(table: Table) -> Verdict:
    """The same at every epoch that is read after the start; measured is the least ratio at any of them."""
    means = {
        (row["depth"], row["epoch"]): row["mean"] for row in summarise(table, "norm", by=["depth", "epoch"]).rows()
    }
    depths = sorted({depth for depth, _ in means})
    least: dict[float, float] = {}
    for epoch in sorted({epoch for _, epoch in means if epoch > 0}):
        pairs = itertools.pairwise(means[depth, epoch] for depth in depths if (depth, epoch) in means)
        least[epoch] = min((one / other for one, other in pairs), default=float("nan"))
    if not least:
        return undecided("nothing is read after the start")
    worst = min(least, key=lambda epoch: least[epoch])
    kept = [epoch for epoch, ratio in least.items() if ratio > 1]
    note = f"in order at {len(kept)} of {len(least)} epochs read, least apart at epoch {worst:.3g}"
    return judge(len(kept) == len(least), least[worst], seeds=seeds(table), note=note)


def as_a_root(table: Table) -> Verdict:
    """The exponent of depth in the norm at the end, against the -1/2 of eq. (7)."""
    last = ends(table)
    found = log_slope(last["depth"], last["norm"])
    return judge(abs(found.value + 0.5) <= ABOUT, found.value, seeds=seeds(table), note=f"exponent {found}")


def ends(table: Table) -> Table:
    """The rows of the last epoch."""
    return table.where(epoch=float(table["epoch"].max())) if table.height else table
