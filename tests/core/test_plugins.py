"""Plug-ins are found by the names of their files."""

import subprocess
import sys

import pytest

from leadline.core import plugins
from leadline.core.errors import UsageError


def test_unknown_names_offer_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown part 'specs'; did you mean 'spec'"):
        plugins.module("leadline.core", "specs", kind="part")


def test_every_listed_plug_in_has_a_card() -> None:
    for package in ("leadline.cli", "leadline.data.datasets", "leadline.probes"):
        for name in plugins.names(package):
            assert plugins.card(package, name).strip(), f"{package}.{name} does not say what it is"


@pytest.mark.parametrize("words", [["--help"], ["list"], ["list", "models", "--json"]])
def test_listing_does_not_import_torch(words: list[str]) -> None:
    code = f"import sys; from leadline.cli import main; main({words!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
