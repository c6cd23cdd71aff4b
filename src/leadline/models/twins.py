"""Twins: the same layers with the skips taken away, or put where they were missing."""

from copy import deepcopy

from leadline.core.errors import UsageError
from leadline.models.chain import Chain
from leadline.models.dirac import DiracConv2d
from leadline.models.init import initialise
from leadline.models.residual import Dense, Residual


def plain_twin(model: Chain) -> Chain:
    """A copy without skips: all other parameters are the same. Of a Dirac kernel W + diag(a) delta, W is left.

    A concatenating block passes zeros on in the place of its input, which is the same for the ResNEst it equals.
    """
    twin = deepcopy(model)
    changed = 0
    for module in twin.modules():
        if isinstance(module, Residual | Dense) and module.skip is not None:
            module.skip, changed = None, changed + 1
        elif isinstance(module, DiracConv2d) and module.alpha is not None:
            module.alpha, changed = None, changed + 1
    return _renamed(twin, changed, f"{model.spec or 'the network'} has no skips to take away")


def residual_twin(model: Chain) -> Chain:
    """A copy with a skip around every block that has none, the identity where it fits; all else is the same.

    Skips with weights start as the network did (`model.init`).
    """
    twin = deepcopy(model)
    changed = 0
    for module in twin.modules():
        if isinstance(module, Residual | Dense) and module.skip is None:
            skip = module.make_skip()
            initialise(skip, model.init or "he-fan-in")
            module.skip, changed = skip.to(next(model.parameters())), changed + 1
    return _renamed(twin, changed, f"{model.spec or 'the network'} has a skip around every block")


def _renamed(twin: Chain, changed: int, nothing: str) -> Chain:
    if not changed:
        raise UsageError(nothing)
    twin.spec = None
    return twin
