"""Where a configuration may start from: how each paper trains, and shorter schedules for a first look."""

from typing import Any

from leadline.core.errors import unknown

PRESETS: dict[str, dict[str, Any]] = {
    # Li, Jiao, Han, Weissman, section 5.3.2, through the pre-activation networks it modifies
    "li2016": {
        "data": {"batch_size": 128, "augment": "crop-flip", "pad": "zero"},
        "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4},
        "schedule": {"name": "step", "milestones": [81, 122], "factor": 0.1},
        "training": {"epochs": 164},
    },
    # Zaeemzadeh, Rahnavard, Shah, section 5
    "zaeemzadeh2018": {
        "data": {"batch_size": 128, "augment": "crop-flip", "pad": "zero"},
        "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
        "schedule": {"name": "step", "milestones": [150, 225], "factor": 0.1},
        "training": {"epochs": 300},
    },
    # Chen, Lee, Garudadri, Rao, appendix on experiments
    "chen2021": {
        "data": {"batch_size": 128, "augment": "crop-flip", "pad": "reflect"},
        "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
        "schedule": {"name": "step", "milestones": [60, 120, 160], "factor": 0.2},
        "training": {"epochs": 200},
    },
    "quick": {
        "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
        "schedule": {"name": "one-cycle"},
        "training": {"epochs": 5},
    },
}


def named(name: str) -> dict[str, Any]:
    """The preset of that name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
