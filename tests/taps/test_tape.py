"""What a tape hears, against autograd on models without hooks; and that listening changes nothing."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from foreign import MODELS, InPlaceResNet, build, same_state, state
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from leadline.core.errors import UsageError
from leadline.taps.anatomy import anatomy
from leadline.taps.places import Place, leaves, pick
from leadline.taps.reductions import FROBENIUS, Reduction
from leadline.taps.tape import Heard, Tap, Tape, quiet

WHOLE = Reduction("whole tensor", lambda tensor: tensor.detach().clone(), lambda parts: parts[-1])


def boundary_taps(model: nn.Module, inputs: Any, reduction: Reduction = FROBENIUS) -> tuple[list[Tap], list[Tap]]:
    """Gradients and values at the boundaries of the model's blocks."""
    boundaries = anatomy(model, inputs).boundaries
    return [Tap(place, reduction, "gradient") for place in boundaries], [Tap(place, reduction) for place in boundaries]


def out_of_place(model: InPlaceResNet, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The same function written without in-place operations, and its boundaries."""
    x = F.relu(model.stem(x))
    boundaries = [x]
    for block in model.blocks:
        branch = block.bn2(block.conv2(F.relu(block.bn1(block.conv1(x)))))
        x = F.relu(branch + (x if block.skip is None else block.skip(x)))
        boundaries.append(x)
    return model.fc(x.mean((2, 3))), boundaries


def test_values_and_gradients_under_in_place_operations() -> None:
    foreign = build("inplace_resnet")
    model, x = foreign.model.double(), foreign.inputs.double()
    gradients, values = boundary_taps(model, x, WHOLE)
    with Tape(model, [*gradients, *values]) as tape:
        F.cross_entropy(model(x), foreign.targets).backward()
        heard = tape.read()
    logits, boundaries = out_of_place(model, x)
    expected = torch.autograd.grad(F.cross_entropy(logits, foreign.targets), boundaries)
    for tap, tensor in zip([*values, *gradients], [*boundaries, *expected], strict=True):
        np.testing.assert_allclose(heard[tap], tensor.detach().numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_listening_to_a_step_changes_nothing(name: str) -> None:
    foreign, twin = build(name), build(name)
    gradients, values = boundary_taps(foreign.model, foreign.inputs)
    torch.manual_seed(5)
    with Tape(foreign.model, [*gradients, *values]) as tape:
        loss = foreign.loss()
        loss.backward()
        heard = tape.read()
    torch.manual_seed(5)
    expected = twin.loss()
    expected.backward()
    assert torch.equal(loss, expected)
    one, two = state(foreign.model), state(twin.model)
    assert all(
        same_state(one[key], two[key]) for key in ("tensors", "modes", "requires", "hooks", "random", "attributes")
    )
    pairs = zip(foreign.model.parameters(), twin.model.parameters(), strict=True)
    assert all(same_state(a.grad, b.grad) for a, b in pairs)
    missing = [tap for tap in (*gradients, *values) if tap not in heard]
    assert all(np.isfinite(heard[tap]) and heard[tap] >= 0 for tap in heard)
    assert all(heard.why(tap) == "the tensor does not require a gradient" for tap in missing)
    assert len(missing) <= 1  # a first block that takes the data itself


def test_a_value_overwritten_afterwards_is_heard_as_it_was() -> None:
    class Overwriting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x)
            hidden *= 10
            return self.second(hidden)

    model, x = Overwriting(), torch.randn(2, 3)
    out, into = Place("first", "out"), Place("second", "in", (0,))
    taps = [Tap(place, WHOLE, of) for place in (out, into) for of in ("value", "gradient")]
    with Tape(model, taps) as tape:
        model(x).sum().backward()
    heard = tape.read()
    np.testing.assert_allclose(heard[taps[2]], 10 * heard[taps[0]], rtol=1e-6)
    np.testing.assert_allclose(heard[taps[1]], 10 * heard[taps[3]], rtol=1e-6)


def test_a_boundary_of_two_blocks_is_reduced_once() -> None:
    seen: list[tuple[int, ...]] = []

    def count(tensor: Tensor) -> Tensor:
        seen.append(tuple(tensor.shape))
        return tensor.detach().sum()

    counting = Reduction("count", count, lambda parts: parts[-1])
    foreign = build("inplace_resnet")
    found = anatomy(foreign.model, foreign.inputs)
    taps = [
        Tap(place, counting, of) for b in found.blocks for place in (b.input, b.output) for of in ("value", "gradient")
    ]
    with Tape(foreign.model, taps) as tape:
        foreign.loss().backward()
        heard = tape.read()
    assert len(heard) == len(taps) == 4 * len(found.blocks)
    assert len(seen) == 2 * (len(found.blocks) + 1)


def test_nested_outputs_are_reached() -> None:
    nest = {"a": (torch.ones(1), [torch.zeros(2), "text"]), "b": torch.ones(3)}
    assert [path for path, _ in leaves(nest)] == [("a", 0), ("a", 1, 0), ("b",)]
    assert all(pick(nest, path) is tensor for path, tensor in leaves(nest))
    assert pick(nest, ("a", 7)) is None and pick(nest, ("c",)) is None
    foreign = build("bert")
    place = Place("", "out", ("pooler_output",))
    with Tape(foreign.model, [Tap(place, WHOLE)]) as tape:
        out = foreign.model(**foreign.inputs)
    np.testing.assert_array_equal(tape.read()[Tap(place, WHOLE)], out.pooler_output.detach().double().numpy())


# -- several passes ----------------------------------------------------------------------------------------------------


def norms(model: nn.Module, taps: list[Tap], run: Any, **reading: Any) -> np.ndarray:
    with Tape(model, taps) as tape:
        run()
        heard = tape.read(**reading)
    return np.array([heard[tap] for tap in taps])


def accumulate(model: nn.Module, x: Tensor, y: Tensor, parts: int) -> None:
    for some, targets in zip(x.chunk(parts), y.chunk(parts), strict=True):
        (F.cross_entropy(model(some), targets) / parts).backward()


def test_accumulated_gradients_are_those_of_the_whole_batch() -> None:
    model, x, y = build("inplace_resnet").model.eval(), torch.randn(6, 3, 16, 16), torch.arange(6)
    gradients, values = boundary_taps(model, x)
    taps = [*gradients, *values]
    whole = norms(model, taps, lambda: accumulate(model, x, y, 1))
    thirds = norms(model, taps, lambda: accumulate(model, x, y, 3))
    np.testing.assert_allclose(thirds, whole, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 2e-2), (torch.float16, 2e-2)])
def test_autocast_and_loss_scaling_are_undone(dtype: torch.dtype, tolerance: float) -> None:
    model, x, y = build("inplace_resnet").model.eval(), torch.randn(6, 3, 16, 16), torch.arange(6)
    taps, _ = boundary_taps(model, x)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)

    def mixed() -> None:
        with torch.autocast("cpu", dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()

    plain = norms(model, taps, lambda: F.cross_entropy(model(x), y).backward())
    scaler.scale(torch.zeros(()))  # the scale exists from the first use on
    np.testing.assert_allclose(norms(model, taps, mixed, scale=scaler.get_scale()), plain, rtol=tolerance)


class Checkpointed(nn.Module):
    """An in-place ResNet that recomputes each block in the backward pass."""

    def __init__(self, inner: nn.Module, reentrant: bool) -> None:
        super().__init__()
        self.inner, self.reentrant = inner, reentrant

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu_(self.inner.stem(x))
        for block in self.inner.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.inner.fc(x.mean((2, 3)))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_is_heard_once(reentrant: bool) -> None:
    inner, x, y = build("inplace_resnet").model, torch.randn(6, 3, 16, 16), torch.arange(6)
    model = Checkpointed(inner.eval(), reentrant)
    found = anatomy(model, x)
    assert [block.name for block in found.blocks] == [f"inner.blocks.{i}" for i in range(4)]
    assert [block.kind for block in found.blocks].count("transition") == 1
    taps = [
        Tap(place, FROBENIUS, of) for b in found.blocks for place in (b.input, b.output) for of in ("gradient", "value")
    ]
    inside = [Tap(Place("inner.blocks.1.conv2", "out"), FROBENIUS, of) for of in ("gradient", "value")]
    heard = norms(model, [*taps, *inside], lambda: F.cross_entropy(model(x), y).backward())
    renamed = [
        Tap(Place(t.place.module.removeprefix("inner."), t.place.side, t.place.path), FROBENIUS, t.of)
        for t in (*taps, *inside)
    ]
    plain = norms(inner, renamed, lambda: F.cross_entropy(inner(x), y).backward())
    np.testing.assert_allclose(heard, plain, rtol=1e-5)


def test_calls_of_one_module_apart_and_together() -> None:
    foreign = build("twice")
    apart = [Tap(Place("shared", "out", call=number), FROBENIUS, "gradient") for number in range(2)]
    together = Tap(Place("shared", "out"), FROBENIUS, "gradient")
    first, second, both = norms(foreign.model, [*apart, together], lambda: foreign.loss().backward())
    assert first != second
    np.testing.assert_allclose(both, np.hypot(first, second), rtol=1e-12)


def test_only_accepted_passes_are_heard() -> None:
    foreign = build("inplace_resnet")
    taps, _ = boundary_taps(foreign.model, foreign.inputs)
    with Tape(foreign.model, taps, accept=lambda model: model.training) as tape:
        foreign.loss().backward()
        foreign.model.eval()
        foreign.loss().backward()
        both = tape.read()
    foreign.model.train()
    once = norms(foreign.model, taps, lambda: foreign.loss().backward())
    np.testing.assert_allclose([both[tap] for tap in taps], once, rtol=1e-5)


def test_what_all_processes_heard_is_merged() -> None:
    model, x, y = build("inplace_resnet").model.eval(), torch.randn(6, 3, 16, 16), torch.arange(6)
    taps, _ = boundary_taps(model, x)
    whole = norms(model, taps, lambda: F.cross_entropy(model(x), y).backward())
    others: list[Any] = []
    with Tape(model, taps) as tape:
        F.cross_entropy(model(x[:3]), y[:3]).backward()
        tape.read(gather=lambda mine: [others.append(mine) or {}])
    both = norms(
        model,
        taps,
        lambda: F.cross_entropy(model(x[3:]), y[3:]).backward(),
        gather=lambda mine: [*others, mine],
        scale=2,
    )
    np.testing.assert_allclose(both, whole, rtol=1e-5)


# -- attaching ---------------------------------------------------------------------------------------------------------


def test_attaching_twice_is_an_error_and_detaching_frees() -> None:
    foreign = build("mlp")
    taps, _ = boundary_taps(foreign.model, foreign.inputs)
    before = state(foreign.model)
    tape = Tape(foreign.model, taps).attach()
    with pytest.raises(UsageError, match="already attached to this Sequential"):
        Tape(foreign.model, taps).attach()
    with quiet(foreign.model):
        anatomy(foreign.model, foreign.inputs)
        foreign.loss().backward()
    assert all("not called" in tape.read().why(tap) for tap in taps)
    foreign.model.zero_grad()
    tape.pause()
    with quiet(foreign.model):
        anatomy(foreign.model, foreign.inputs)
    assert same_state(state(foreign.model), before)  # still paused
    tape.resume()
    foreign.loss().backward()
    tape.detach()
    tape.detach()
    assert len(tape.read()) == len(taps) - 1  # the data need no gradient
    with Tape(foreign.model, taps):
        pass
    foreign.model.zero_grad()
    assert same_state(state(foreign.model), before)


def test_hooks_are_removed_when_the_model_fails() -> None:
    foreign = build("mlp")
    taps, _ = boundary_taps(foreign.model, foreign.inputs)
    before = state(foreign.model)
    with pytest.raises(RuntimeError), Tape(foreign.model, taps):
        foreign.model(torch.ones(2, 7))
    assert same_state(state(foreign.model), before)


def test_a_tensor_of_the_callers_keeps_no_hook() -> None:
    model, x = nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
    tap = Tap(Place("", "in", (0,)), WHOLE, "gradient")
    with Tape(model, [tap]) as tape:
        model(x).sum().backward()
        np.testing.assert_array_equal(tape.read()[tap], x.grad.numpy())
        assert x._backward_hooks
    assert not x._backward_hooks


def test_an_unknown_module_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match=r"unknown module 'blocks\.7'; did you mean 'blocks\.\d'"):
        Tape(build("inplace_resnet").model, [Tap(Place("blocks.7", "out"), FROBENIUS)])


# -- why there is nothing ----------------------------------------------------------------------------------------------


def test_complex_values_have_norms() -> None:
    x = torch.randn(3, 4, dtype=torch.complex128)
    place = Tap(Place("", "in", (0,)), FROBENIUS)
    with Tape(nn.Identity(), [place]) as tape:
        tape.model(x)
        assert tape.read()[place] == pytest.approx(float(x.norm()), rel=1e-12)


def test_what_was_not_heard_says_why() -> None:
    foreign = build("twice")
    model = foreign.model
    model.stem.requires_grad_(False)
    broken = Reduction("logdet", torch.linalg.cholesky, lambda parts: parts[-1])
    reasons = {
        Tap(Place("unused", "out"), FROBENIUS): "the module was not called",
        Tap(Place("stem", "out"), FROBENIUS, "gradient"): "the tensor does not require a gradient",
        Tap(Place("fc", "out", (1,)), FROBENIUS): "there was no tensor at that place",
        Tap(Place("last", "out"), FROBENIUS, "gradient"): "no backward pass reached it",
        Tap(Place("last", "out"), broken): "logdet failed: ",
    }
    with Tape(model, list(reasons)) as tape:
        model(foreign.inputs)
        heard = tape.read()
        nothing = tape.read()
    assert len(heard) == 0
    for tap, reason in reasons.items():
        assert heard.why(tap).startswith(reason), heard.why(tap)
        assert nothing.why(tap) == "the model was not called while the tape listened"
    assert Heard({}, {}).why(next(iter(reasons))) == "nothing listened there"


@pytest.mark.parametrize("fill", [float("nan"), float("inf")])
def test_non_finite_values_come_through(fill: float) -> None:
    foreign = build("mlp")
    gradients, values = boundary_taps(foreign.model, foreign.inputs)
    with Tape(foreign.model, [*gradients, *values]) as tape:
        foreign.model(torch.full((2, 3, 4, 4), fill)).sum().backward()
        heard = tape.read()
    assert not np.isfinite(heard[values[-1]]) or fill == float("inf")
    assert len(heard) >= len(values)


# -- compiled models ---------------------------------------------------------------------------------------------------


def test_a_model_compiled_beforehand_is_read_eagerly() -> None:
    compiled_calls: list[int] = []

    def backend(graph: Any, _: Any) -> Any:
        compiled_calls.append(0)
        return graph.forward

    foreign = build("inplace_resnet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(foreign.model, backend=backend)
        F.cross_entropy(compiled(foreign.inputs), foreign.targets).backward()
    compilations = len(compiled_calls)
    assert compilations
    with pytest.warns(UserWarning, match="was compiled; the eager module inside it is read instead"):
        found = anatomy(compiled, foreign.inputs)
    assert len(found.blocks) == 4
    taps = [Tap(place, FROBENIUS, "gradient") for place in found.boundaries]
    with pytest.warns(UserWarning, match="was compiled"):
        tape = Tape(compiled, taps)
    with tape:
        F.cross_entropy(compiled(foreign.inputs), foreign.targets).backward()
        heard = tape.read()
    plain = norms(foreign.model, taps, lambda: foreign.loss().backward())
    np.testing.assert_allclose([heard[tap] for tap in taps], plain, rtol=1e-6)
    assert len(compiled_calls) == compilations  # nothing was compiled anew
    compiled(foreign.inputs)
    assert len(compiled_calls) == compilations


def test_a_copied_or_pickled_model_does_not_take_the_tape_along() -> None:
    foreign = build("mlp")
    _, taps = boundary_taps(foreign.model, foreign.inputs)
    with Tape(foreign.model, taps) as tape:
        for twin in (copy.deepcopy(foreign.model), pickle.loads(pickle.dumps(foreign.model))):
            assert twin(foreign.inputs).shape == (5, 10)
        assert not tape.read()
