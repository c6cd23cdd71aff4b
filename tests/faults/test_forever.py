"""A model file or factory that runs for ever: the command ends with one line that says where it stands."""

import os
import time

import pytest
from faults.forever import WAY, WAYS
from faults.nursery import Nursery, command


def importing(way: str, words: list[str]) -> int:
    """What a child does: the file hangs while it is imported."""
    os.environ[WAY] = way
    import sys

    del sys.modules["faults.forever"]
    return command(words)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_file_that_never_ends(children: Nursery, way: str) -> None:
    words = ["check", "faults.forever:never", "--input", "3", "--import-timeout", "0.3"]
    factory = children.command(*words, "--arg", f"way={way}")
    imported = children.start("faults.test_forever:importing", way=way, words=words)
    until = time.monotonic() + 60
    for child in (factory, imported):
        ended = child.wait()
        lines = ended.err.splitlines()
        assert ended.code == 2 and not ended.out and len(lines) == 1, ended.err
        assert lines[0].startswith("leadline: faults.forever:never is not done after 0.3 s (it stands at ")
        assert f"in _{way})" in lines[0] and lines[0].endswith("--import-timeout gives it longer")
    assert time.monotonic() < until
    print(f"\n2 trials, 0 losses; {lines[0]}")
