"""What the words of `leadline train` mean."""

import pytest

from leadline.cli._words import parse
from leadline.cli.train import Train, resolve
from leadline.core.errors import UsageError


def config(*words: str) -> tuple[str, ...]:
    return resolve(parse(Train, ["resnet-20", *words], verb="train")).probes


def test_probes_are_spelled_out_with_their_schedules() -> None:
    assert config() == ()
    assert config("--probes", "light") == ("gradient_norm_ratio@every:1", "weight_norm@every:1")
    assert config("--probes", "light,weight_norm@log:2,update_ratio") == (
        "gradient_norm_ratio@every:1",
        "weight_norm@log:2",
        "update_ratio@every:100",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("lihgt", "did you mean 'light'"),
        ("weight_norm@evry:2", "unknown schedule 'evry'"),
        ("weight_norm@every:0", "every:0"),
    ],
)
def test_probes_that_cannot_be_meant(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        config("--probes", words)
