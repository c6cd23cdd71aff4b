"""Cuts against taking every value away in turn; versions of a tensor as different values."""

import random

import pytest
import torch

from leadline.taps.dataflow import Flow, ancestry, cuts, operation, value_of


def random_graph(size: int, seed: int) -> dict[int, tuple[int, ...]]:
    """A directed acyclic graph on 0..size-1 in topological order: every node lies on a path from 0 to the last."""
    draw = random.Random(seed)
    parents = {0: ()} | {node: {draw.randrange(max(0, node - 3), node)} for node in range(1, size)}
    for node in range(1, size - 1):  # nothing ends early
        child = min(size - 1, node + draw.choice([1, 1, 2, 4]))
        parents[child] = {*parents[child], node}
    return {node: tuple(sorted(direct)) for node, direct in parents.items()}


def separates(parents: dict[int, tuple[int, ...]], node: int) -> bool:
    """Slow: whether the last node cannot be reached from 0 without `node`."""
    last = max(parents)
    if node in (0, last):
        return True
    reached = {0}
    for other in range(1, last + 1):
        if other != node and any(parent in reached for parent in parents[other]):
            reached.add(other)
    return last not in reached


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_the_values_that_separate(seed: int) -> None:
    parents = random_graph(25, seed)
    assert cuts(list(parents), parents) == [node for node in parents if separates(parents, node)]


def test_a_tensor_overwritten_in_place_is_another_value() -> None:
    x = torch.ones(3, requires_grad=True).clone()
    before = value_of(x)
    same_tensor = x.relu_()
    after = value_of(same_tensor)
    assert same_tensor is x and before != after
    assert operation(before) == "clone" and operation(after) == "relu"


def test_a_skip_hides_what_lies_beneath_it() -> None:
    source = torch.ones(3, requires_grad=True).clone()
    inner = (source * 2).exp()
    total = inner + source
    end = total.sin()
    flow = Flow(ancestry(value_of(end)), [value_of(source)])
    assert flow.cuts == [value_of(tensor) for tensor in (source, total, end)]
    assert [operation(value) for value in flow.between(value_of(source), value_of(total))] == [
        "clone",
        "mul",
        "exp",
        "add",
    ]


def test_between_is_empty_without_a_path() -> None:
    source = torch.ones(3, requires_grad=True).clone()
    left, right = source.exp(), source.sin()
    flow = Flow(ancestry(value_of(left + right)), [value_of(source)])
    assert flow.between(value_of(left), value_of(right)) == []


def test_values_without_history_are_none() -> None:
    assert value_of(torch.ones(2)) is None
    assert value_of(torch.arange(2)) is None
