"""Tables against plain Python lists."""

import numpy as np
import pytest

from leadline.core.errors import UsageError
from leadline.core.table import Table


def sample() -> Table:
    return Table(name=["a", "b", "a"], step=[2, 1, 1], value=[0.5, float("inf"), 1.5])


def test_selecting_and_sorting() -> None:
    assert sample().where(name="a", step=1)["value"].tolist() == [1.5]
    assert sample().sort("step", "name")["name"].tolist() == ["a", "b", "a"]
    assert Table.concat([sample(), sample()]).height == 6
    assert Table.concat([]).height == 0


def test_rows_round_trip() -> None:
    rows = list(sample().rows())
    assert list(Table.from_rows(rows).rows()) == rows
    assert all(type(row["step"]) is int for row in rows)


def test_csv_is_what_it_says() -> None:
    assert sample().to_csv().splitlines() == ["name,step,value", "a,2,0.5", "b,1,inf", "a,1,1.5"]


def test_pandas_has_the_same_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = sample().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    np.testing.assert_array_equal(frame["value"], sample()["value"])


def test_wrong_columns_are_named() -> None:
    with pytest.raises(UsageError, match="'vaule'; did you mean 'value'"):
        sample()["vaule"]
    with pytest.raises(UsageError, match="one length"):
        Table(a=[1], b=[1, 2])
