"""Each rule sees what it is for, and nothing in readings of a sound network."""

import math
from typing import Any

import numpy as np
import pytest
from diagnosis.plain import evidence

from leadline import remedies
from leadline.core import plugins
from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.judge import PACKAGE, judge, rules
from leadline.diagnosis.thresholds import thresholds

FALLING = list(np.linspace(2.0, 0.5, 20))
FLAT = [2.0] * 60
SKIPPING: dict[str, Any] = {"kind": "identity", "lengths": [2]}

SOUND = {
    "gradient_norm_ratio/ratio": [1.05, 0.95, 1.02, 0.9, 1.1, 1.0, 0.97, 1.03],
    "gradient_norm_ratio/norm": [1.0] * 8,
    "activation_range/min": [-3.0] * 9,
    "activation_range/max": [3.0] * 9,
    "collinearity/cosine": [0.3, 0.35, 0.33, 0.3, 0.31, 0.3, 0.36, 0.3, 0.3],
    "hidden_condition/dead": [0.0] * 9,
    "hidden_condition/rank/channel": [8.0] * 9,
    "feature_predictability/predictable": [0.2] * 8,
    "weight_condition/kappa": [20.0] * 8,
    "start/frozen": 0.0,
    "start/unreached": 0.0,
}

SICK: dict[str, Evidence] = {
    "representation_collapse": evidence({"collinearity/cosine": [0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0, 1.0]}),
    "vanishing_gradient": evidence({"gradient_norm_ratio/ratio": [4.0] * 8, "activation_range/max": [1.0] * 9}),
    "exploding_gradient": evidence({"gradient_norm_ratio/ratio": [0.5] * 8}),
    "broken_transition": evidence({"gradient_norm_ratio/ratio": [1, 1.01, 1, 500.0, 1, 1, 0.99, 1]}),
    "exploding_output": evidence(
        {
            "activation_range/min": [0.0] * 9,
            "activation_range/max": [2.0**k for k in range(9)],
            "start/loss": 90.0,
        }
    ),
    "ill_conditioned_weights": evidence({"weight_condition/kappa": [1e6, math.inf, 1e5, 1e7, 10.0]}),
    "dead_channels": evidence({"hidden_condition/dead": [0, 8, 8, 8, 8, 8, 8, 8, 8]}),
    "flat_start": evidence({"gradient_norm_ratio/ratio": [1.0001] * 8}, kind="identity", lengths=[3]),
    "shortcut_length_one": evidence({}, kind="identity", lengths=[1]),
    "bottleneck": evidence({"hidden_condition/rank/channel": [8, 8, 8, 8, 1, 1, 1, 1, 1]}),
    "predictable_blocks": evidence({"feature_predictability/predictable": [0.2, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}),
    "narrow_expansion": evidence({}, **SKIPPING),
    "last_nonlinearity": evidence({"activation_range/min": [0.0] * 9, "activation_range/max": [2.0] * 9}, **SKIPPING),
    "rate_too_high": evidence({}, losses={"": FLAT, "slower": FALLING}),
    "rate_too_low": evidence({}, losses={"": FLAT, "faster": FALLING}),
    "not_connected": evidence({"start/unreached": 0.9}, connection={"unreached": ["stem.weight"]}),
    "frozen_parameters": evidence({"start/frozen": 0.95}, connection={"frozen": ["stem.weight"]}),
    "labels_or_data": evidence({}, losses={"": FLAT, "one-batch": FALLING}),
    "numerical_format": evidence(
        {"activation_range/min": [-1.0] * 4 + [math.nan] * 5, "activation_range/max": [2.0] * 9}
    ),
}


@pytest.mark.parametrize("name", plugins.names(PACKAGE))
def test_sees_what_it_is_for(name: str) -> None:
    rule = rules()[name]
    sign = rule.look(SICK[name], thresholds()[name])
    assert sign is not None, f"{name} needs a case in SICK that triggers it"
    assert sign.evidence and sign.cause.endswith(".") and 0 <= sign.strength <= 1
    found = judge(SICK[name], select=[rule.ID])
    assert [finding.id for finding in found.findings] == [rule.ID]
    assert rule.TITLE in str(found)


@pytest.mark.parametrize("name", plugins.names(PACKAGE))
def test_is_silent_on_sound_readings(name: str) -> None:
    sound = evidence(SOUND, losses={"": FALLING}, kind="plain")
    assert rules()[name].look(sound, thresholds()[name]) is None


@pytest.mark.parametrize("name", plugins.names(PACKAGE))
def test_is_silent_where_nothing_was_read(name: str) -> None:
    nothing = evidence({}, blocks=0)
    assert rules()[name].look(nothing, thresholds()[name]) is None


def test_ids_are_unique_and_known_to_each_other() -> None:
    ids = [rule.ID for rule in rules().values()]
    assert len(set(ids)) == len(ids)
    for name, rule in rules().items():
        assert set(rule.EXPLAINS) <= set(ids) - {rule.ID}, name
        assert plugins.card(PACKAGE, name) and rule.REFERENCE and rule.CHANGE


def test_no_two_rules_explain_each_other() -> None:
    pairs = {(rule.ID, other) for rule in rules().values() for other in rule.EXPLAINS}
    assert not [pair for pair in pairs if pair[::-1] in pairs]


def test_remedies_by_name_exist() -> None:
    in_words = {"reconnect", "unfreeze", "check-labels", "look-at-inputs", "use-bf16", "rescale"}
    named = {remedy.name for rule in rules().values() for remedy in rule.REMEDIES} - in_words
    assert named <= set(remedies.names())


def test_every_limit_belongs_to_a_rule() -> None:
    assert set(thresholds()) - {"verdict"} <= set(rules())
