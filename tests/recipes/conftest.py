"""One folder of smoke runs for the whole session: each unit is executed once, whichever test asks for it first."""

import os
from pathlib import Path

import pytest

from leadline.execute.pool import execute
from leadline.recipes._reproduce import Plan
from leadline.recipes._results import Result


class Smoke:
    """Makes recipes at smoke scale below one folder."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def made(self, name: str) -> Result:
        """The recipe's result, written below the folder; an error of a unit is raised."""
        plan = Plan.of([name], "smoke", self.out)
        failed = {o.unit.identity: o.error for o in execute(list(plan.units.values()), plan.root, workers=0) if o.error}
        assert not failed, failed
        return plan.conclude(name, failed)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    """Where `leadline reproduce all --scale smoke` has been before, LEADLINE_REPRODUCED may say so."""
    base = tmp_path_factory.getbasetemp()
    # workers of one test run share what they make
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Smoke(Path(os.environ.get("LEADLINE_REPRODUCED") or shared / "reproduced"))
