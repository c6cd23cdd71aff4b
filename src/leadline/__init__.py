"""Leadline sounds the depth of neural networks: where signal, gradient or curvature dies, and what keeps it alive."""

import importlib
from typing import TYPE_CHECKING, Any

from leadline.core.version import VERSION as __version__

if TYPE_CHECKING:
    from leadline import models as models
    from leadline import remedies as remedies
    from leadline.analysis.profile import Profile as Profile
    from leadline.diagnosis.finding import Diagnosis as Diagnosis
    from leadline.diagnosis.finding import Finding as Finding
    from leadline.execute.check import check as check
    from leadline.execute.depth_check import depth_check as depth_check
    from leadline.execute.prove import prove as prove
    from leadline.projections import Procrustes as Procrustes
    from leadline.projections import transitions as transitions
    from leadline.taps.anatomy import anatomy as anatomy
    from leadline.train.recorder import Recorder as Recorder
    from leadline.train.sound import sound as sound

# where each public name lives; it is imported when first asked for, so that `import leadline` needs no torch
_PLACES = {
    # listen to a model
    "anatomy": "leadline.taps.anatomy",
    "sound": "leadline.train.sound",
    "Recorder": "leadline.train.recorder",
    "Profile": "leadline.analysis.profile",
    # say what is wrong
    "check": "leadline.execute.check",
    "depth_check": "leadline.execute.depth_check",
    "prove": "leadline.execute.prove",
    "Diagnosis": "leadline.diagnosis.finding",
    "Finding": "leadline.diagnosis.finding",
    # keep gradients' norms
    "Procrustes": "leadline.projections",
    "transitions": "leadline.projections",
    "remedies": "leadline.remedies",
    # networks of the papers
    "models": "leadline.models",
}

__all__ = [
    "Diagnosis",
    "Finding",
    "Procrustes",
    "Profile",
    "Recorder",
    "__version__",
    "anatomy",
    "check",
    "depth_check",
    "models",
    "prove",
    "remedies",
    "sound",
    "transitions",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'leadline' has no attribute {name!r}; it has {', '.join(_PLACES)}")
    module = importlib.import_module(_PLACES[name])
    found = module if module.__name__ == f"leadline.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
