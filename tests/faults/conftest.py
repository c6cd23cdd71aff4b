"""One nursery for all tests."""

from collections.abc import Iterator

import pytest
from faults.nursery import Nursery, nursery


@pytest.fixture(scope="session")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(tmp_path_factory.mktemp("said")) as made:
        yield made
