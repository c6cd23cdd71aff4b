"""Every example runs, in a process of its own, and says something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error", str(example), str(tmp_path / "run")]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not done.stderr


def test_there_are_examples() -> None:
    assert "someone_elses_model" in [path.stem for path in EXAMPLES]
