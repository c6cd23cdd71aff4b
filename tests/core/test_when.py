"""Schedules are plain predicates."""

import pytest

from leadline.core.errors import UsageError
from leadline.core.when import AtEnd, Every, LogSpaced, Once, parse


def test_words_and_their_steps() -> None:
    steps = {
        word: [step for step in range(13) if parse(word).due(step, last=12)]
        for word in ("every:5", "once", "once:3", "end")
    }
    assert steps == {"every:5": [0, 5, 10], "once": [0], "once:3": [3], "end": [12]}


def test_log_spaced_has_as_many_steps_in_every_decade() -> None:
    steps = [step for step in range(100_000) if LogSpaced(4).due(step)]
    assert [sum(10**k <= step < 10 ** (k + 1) for step in steps) for k in range(1, 5)] == [4, 4, 4, 4]


@pytest.mark.parametrize("word", ["evry:3", "every:0", "every:x", "end:4", "log:-1"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        parse(word)


def test_schedules_are_data() -> None:
    assert {Every(3), Every(3), Once(), AtEnd()} == {Every(3), Once(0), AtEnd()}
