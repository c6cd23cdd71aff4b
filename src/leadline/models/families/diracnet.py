"""diracnet: plain networks whose kernels carry the skip, W + diag(a) delta (Zagoruyko and Komodakis 2017).

Layers, widths and depths are those of plainnet with basic blocks, so that the two can be held side by side; the first
convolution is an ordinary one. Oyedotun et al., section 6.5 (c), is about `a` drifting away from one in training.
"""

from collections.abc import Sequence

from leadline.models.blocks.basic import basic
from leadline.models.chain import Chain
from leadline.models.dirac import DiracStyle
from leadline.models.family import Family
from leadline.models.layers import Style
from leadline.models.postactivation import BASIC, checked_widths, counted, postactivation
from leadline.models.residual import Residual
from leadline.models.stages import Place


def construct(
    depth: int,
    *,
    num_classes: int | None = None,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    widths: Sequence[int] | None = None,
    parametrisation: str = "additive",
) -> Chain:
    """6n + 2 layers; kernels W + diag(a) delta ("additive") or beta normalize(W) + diag(alpha) delta ("normalised")."""
    style = DiracStyle(norm=norm, activation=activation, parametrisation=parametrisation)
    kind, counts = counted("diracnet-{}", depth, (BASIC,), stem=stem, block=None)

    def make(_place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return basic(c_in, c_out, stride=stride, style=style, plain=True)

    return postactivation(
        make,
        counts,
        block=kind,
        widths=checked_widths(widths, stem=stem),
        stem=stem,
        in_channels=in_channels,
        num_classes=num_classes,
        style=Style(norm=norm, activation=activation),
    )


FAMILY = Family(
    construct=construct,
    paper="oyedotun2021",
    init="he-fan-in",
    prefixes={"diracnet": {}},
    rows={f"diracnet-{depth}{variant}": "Section 6.5 (c)" for depth in (20, 110) for variant in ("", "-normalised")},
    variants={"linear": {"activation": "identity"}, "normalised": {"parametrisation": "normalised"}},
)
