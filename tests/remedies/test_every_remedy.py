"""What holds for every remedy on anybody's model: it says what it did, the model works, undo is bit for bit."""

import ast
import copy
import gc
import subprocess
import sys
import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from foreign import MODELS, Foreign, build, same_state, state
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models, remedies
from leadline.core import plugins
from leadline.core.errors import UsageError

ON_MODELS = tuple(name for name in remedies.names() if not name.endswith("-learning-rate"))
FOREIGN = ("inplace_resnet", "preactivation", "functional_resnet", "twice", "two_heads", "mlp", "unet")
FOREIGN += ("gpt2", "hf_vit", "volumes", "lstm")
LARGE = tuple(name for name in MODELS if name not in FOREIGN)
OWN = ("plainnet-14", "resnet-14", "resnest-conv-6", "densenest-conv-5", "diracnet-8", "procresnet-13")


HEADS_ELSEWHERE = ("bert", "a-resnest-heads")  # they add to the pooled output, and the loss here is on the tokens


def make(name: str) -> Foreign:
    if name not in OWN:
        return build(name)
    torch.manual_seed(1)
    options = {} if "nest" in name else {"widths": (4, 8, 8)}
    return Foreign(models.create(name, **options), torch.randn(2, 3, 8, 8), torch.tensor([1, 2]), F.cross_entropy)


@pytest.mark.parametrize("remedy", ON_MODELS)
@pytest.mark.parametrize("name", [*FOREIGN, *OWN, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_it_says_what_it_did_and_takes_it_back(name: str, remedy: str) -> None:
    foreign = make(name)
    optimizer = torch.optim.SGD(foreign.model.parameters(), lr=0.1, momentum=0.9)
    foreign.loss().backward()
    before = everything(foreign.model, optimizer)
    change = remedies.apply(foreign.model, remedy, (foreign.inputs, foreign.targets), optimizer)
    assert torch.equal(torch.get_rng_state(), before["random"])
    told = str(change)
    assert change.no_op == (not change.changed) == bool(change.reason)
    if change.no_op:
        assert told.startswith(f"{remedy}: nothing changed, as {change.reason}")
    else:
        assert told.splitlines()[0] == remedy
        assert {id(p) for p in change.parameters} == new_parameters(foreign.model, before)
        assert {id(p) for p in change.parameters} <= {id(p) for p in optimizer.param_groups[0]["params"]}
        works(foreign, () if (name, remedy) == HEADS_ELSEWHERE else change.parameters)
    torch.set_rng_state(before["random"])
    change.undo()
    assert same_state(everything(foreign.model, optimizer), before)


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """All that undo has to bring back, in its order; only version counters go on counting."""
    found = state(model)
    del found["versions"]
    owned = [(name, type(module).__name__, [*map(id, module.parameters())]) for name, module in model.named_modules()]
    groups = [{**group, "params": [*map(id, group["params"])]} for group in optimizer.param_groups]
    return {**found, "owned": owned, "groups": groups, "hooks on steps": len(optimizer._optimizer_step_post_hooks)}


def new_parameters(model: nn.Module, before: dict[str, Any]) -> set[int]:
    return {id(p) for p in model.parameters()} - set(before["owned"][0][2])


def works(foreign: Foreign, new: tuple[nn.Parameter, ...]) -> None:
    """Copying, training a step, evaluating, saving, loading, half precision and another memory format."""
    model = foreign.model
    twin, third = (replace(foreign, model=copy.deepcopy(model)) for _ in range(2))
    names = [name for name, parameter in model.named_parameters() if any(parameter is p for p in new)]
    assert torch.equal(evaluated(twin), evaluated(foreign))
    twin.model.train().zero_grad()
    twin.loss().backward()
    parameters = dict(twin.model.named_parameters())
    assert all(parameters[name].grad is not None for name in names)
    torch.optim.SGD(parameters.values(), lr=0.01).step()
    missing = third.model.load_state_dict(twin.model.state_dict())
    assert not missing.missing_keys and torch.equal(evaluated(third), evaluated(twin))
    if isinstance(foreign.inputs, Tensor) and foreign.inputs.ndim == 4:
        third.model.to(memory_format=torch.channels_last)
        third.inputs.to(memory_format=torch.channels_last)
        torch.testing.assert_close(evaluated(third), evaluated(twin), rtol=1e-3, atol=1e-4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert third.loss().isfinite()


@torch.no_grad()
def evaluated(foreign: Foreign) -> Tensor:
    mode = foreign.model.training
    foreign.model.eval()
    loss = foreign.loss()
    foreign.model.train(mode)
    return loss


def plain() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)) for _ in range(4)), nn.Linear(6, 3)
    )


@pytest.mark.parametrize(("name", "remedy"), [("plainnet-20", "add-identity-skips"), ("resnet-20", "a-resnest-heads")])
def test_gradients_are_those_without_checkpointing(name: str, remedy: str) -> None:
    model, x = (
        models.create(name, widths=(4, 4, 4), norm="none", init="xavier").double(),
        torch.randn(2, 3, 8, 8).double(),
    )
    change = remedies.apply(model, remedy, x)
    for parameter in change.parameters:
        nn.init.normal_(parameter)
    found = []
    for model.checkpoint_blocks in (False, 2, 2):
        model.zero_grad()
        model(x).square().sum().backward()
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    assert same_state(found[0], found[1]) and same_state(found[0], found[2])


def test_whatever_fails_leaves_the_model_as_it_was() -> None:
    foreign = build("inplace_resnet")
    optimizer = torch.optim.SGD(foreign.model.parameters(), lr=0.1)
    foreign.model.fc.add_module("norm", nn.Identity())
    before = everything(foreign.model, optimizer)
    with pytest.raises(UsageError, match="Linear already has something called 'norm'"):
        remedies.apply(foreign.model, "norm-before-head", foreign.inputs, optimizer)
    assert same_state(everything(foreign.model, optimizer), before)


def test_undone_in_reverse_order_only_and_once() -> None:
    model, x = plain(), torch.randn(4, 6)
    before = model(x)
    skips = remedies.apply(model, "add-identity-skips", x)
    small = remedies.apply(model, "near-zero-branches", x)
    norm = remedies.apply(model, "norm-before-head", x)
    with pytest.raises(UsageError, match="was not the last remedy; undo norm-before-head, near-zero-branches first"):
        skips.undo()
    for change in (norm, small, skips):
        change.undo()
        assert str(change).startswith(f"{change.remedy}: undone")
    assert torch.equal(model(x), before)
    with pytest.raises(UsageError, match="add-identity-skips was already undone"):
        skips.undo()


def test_undo_keeps_what_training_did_elsewhere() -> None:
    model, x = plain(), torch.randn(4, 6)
    change = remedies.apply(model, "add-identity-skips", x)
    with torch.no_grad():
        model[0][0].weight.add_(1)
    trained = model[0][0].weight.clone()
    change.undo()
    assert torch.equal(model[0][0].weight, trained)


def test_a_model_is_let_go() -> None:
    model, x = plain(), torch.randn(4, 6)
    change, gone = remedies.apply(model, "add-identity-skips", x), weakref.ref(model)
    del model, change
    gc.collect()
    assert gone() is None


def test_a_scheduler_goes_on_with_new_parameters() -> None:
    model, x = plain(), torch.randn(4, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    change = remedies.apply(model, "norm-before-head", x, optimizer)
    model(x).sum().backward()
    optimizer.step()
    scheduler.step()
    assert all(parameter in optimizer.state for parameter in change.parameters)
    change.undo()
    assert not any(parameter in optimizer.state for parameter in change.parameters)


def test_compiled_code_is_compiled_anew() -> None:
    model, x = plain(), torch.randn(4, 6)
    compiled = torch.compile(model, backend="eager")
    before = compiled(x)
    change = remedies.apply(compiled, "add-identity-skips", x)
    after = compiled(x)
    assert torch.equal(after, model(x)) and not torch.equal(after, before)
    change.undo()
    assert torch.equal(compiled(x), before)


def test_new_parameters_come_before_data_parallel_wrapping(tmp_path: Any) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(plain())
        x = torch.randn(4, 6)
        with pytest.raises(UsageError, match="norm-before-head adds parameters, which are to be there first"):
            remedies.apply(wrapped, "norm-before-head", x)
        assert not hasattr(wrapped.module[-1], "norm")
        assert remedies.apply(wrapped, "add-identity-skips", x).changed
    finally:
        torch.distributed.destroy_process_group()


def test_mistakes_are_one_line() -> None:
    model, x = plain(), torch.randn(4, 6)
    for message, words, options in (
        ("unknown remedy 'zero-norm'; did you mean 'zero-last-norm'", ("zero-norm", x), {}),
        (
            "near-zero-branches has to run the model to see how it is wired; give it a batch",
            ("near-zero-branches",),
            {},
        ),
        ("unknown option of he-init 'sed'; did you mean 'seed'", ("he-init",), {"sed": 1}),
        ("zero-last-norm has no options", ("zero-last-norm", x), {"seed": 1}),
        ("scale=-1: expected a positive number", ("add-identity-skips", x), {"scale": -1}),
        ("factor=2: expected 0 or more and less than 1", ("near-zero-branches", x), {"factor": 2}),
        ("unknown norm 'bach'; did you mean 'batch'", ("norm-before-head", x), {"norm": "bach"}),
        ("unknown form 'dirac'; expected one of additive, normalised", ("dirac-reparametrise", x), {"form": "dirac"}),
        ("every=0: expected a whole number of steps", ("procrustes-transitions", x), {"every": 0}),
        ("raise-learning-rate acts on an optimiser; give it optimizer=", ("raise-learning-rate",), {}),
        ("the model failed on this batch", ("add-identity-skips", torch.randn(4, 5)), {}),
    ):
        with pytest.raises(UsageError) as caught:
            remedies.apply(model, *words, **options)
        assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", remedies.names())
def test_its_card_says_what_a_person_has_to_know(name: str) -> None:
    card = plugins.card("leadline.remedies", name.replace("-", "_"))
    for word in ("Changes:", "Helps:", "Costs:", "Undone:"):
        assert word in card
    assert "et al." in card
    source = (plugins.folder("leadline.remedies") / f"{name.replace('-', '_')}.py").read_text()
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert "apply" in defined


def test_naming_them_does_not_import_torch() -> None:
    code = "import sys; from leadline import remedies; remedies.names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
