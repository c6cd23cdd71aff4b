"""Ray: runs are the same however they are executed, workers and nodes that go away included; all on loopback."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from leadline.cli import main
from leadline.core.config import RunConfig
from leadline.core.errors import UsageError
from leadline.core.study import Study, Unit
from leadline.execute.cluster import LOSSES, _environment, _on_loopback, execute
from leadline.execute.run_one import Settings, Stopped, run_one
from leadline.execute.unit import Outcome, Unseen
from leadline.store.reader import read

pytest.importorskip("ray", reason="Ray is not installed")

RECIPE = "li2016_fig8"
WAYS = {"here": ("--workers", "0"), "pool": ("--workers", "2"), "ray": ("--workers", "2", "--ray", "auto")}
PLACE = "execute.failing"
LONG = RunConfig.parse(
    {
        "model": {"name": "resnet-20", "args": {"widths": [4, 4, 8]}},
        "data": {"name": "digits", "batch_size": 64},
        "training": {"steps": 500},
        "probes": ["light"],
    }
)


def writer_of(root: Path) -> psutil.Process:
    """A process below this one that has a file of a run open."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if any(Path(file.path).is_relative_to(root) for file in child.open_files()):
                    return child
        time.sleep(0.01)
    raise TimeoutError(f"nobody writes in {root}")


def content(folder: Path) -> tuple[bytes, bytes]:
    """Readings and final weights."""
    (*_, last) = sorted((folder / "checkpoint").iterdir())
    return (folder / "readings.jsonl").read_bytes(), (last / "model.safetensors").read_bytes()


def study(name: str, **args: object) -> Study:
    return Study.of(f"{PLACE}:{name}", **args)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:65536", "127.0.0.1:{free}"])
def test_a_cluster_that_does_not_answer_is_one_clear_line(address: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        named = address.format(free=taken.getsockname()[1])
        start = time.monotonic()
        with pytest.raises(UsageError, match=f"no Ray cluster answers at '{named}'; expected auto or HOST:PORT"):
            list(execute([study("fine", seed=0)], tmp_path, address=named))
        assert time.monotonic() - start < 30


def test_a_recipe_has_the_same_table_in_this_process_in_two_and_with_a_killed_worker_of_ray(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = []

    def kill() -> None:
        victim = writer_of(tmp_path.resolve() / "ray" / "runs")
        victim.kill()
        killed.append(victim.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    for way, words in reversed(WAYS.items()):
        assert main(["reproduce", RECIPE, "--scale", "smoke", "--out", str(tmp_path / way), *words]) in (0, 1)
        killer.join()
        said = capsys.readouterr().err
        assert said.count("its worker went away") == (way == "ray"), said
    results = [tmp_path / way / "smoke" / RECIPE for way in WAYS]
    for name in ("table.csv", "table.json", "published.csv"):
        assert len({(folder / name).read_bytes() for folder in results}) == 1
    runs = [sorted((tmp_path / way / "runs").iterdir()) for way in WAYS]
    for same in zip(*runs, strict=True):
        assert len({(folder / "readings.jsonl").read_bytes() for folder in same}) == 1
    print(f"\n{len(runs[0])} runs three ways, {len(killed)} worker killed: {RECIPE} byte-identical")


class Nodes:
    """A Ray of three nodes on this machine: one that leads and runs nothing, and two that may be lost."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        small: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small}
        )
        self.nodes = [self.cluster.add_node(num_cpus=1, num_gpus=gpus, **small) for gpus in (1, 0)]
        self.cluster.add_node(num_cpus=1, num_gpus=1, **small)

    def lose(self, process: psutil.Process) -> None:
        """The node that this process runs on goes away at once, as one whose power fails."""
        raylet = process.parent()
        for node in self.cluster.list_all_nodes():
            if raylet is not None and node.all_processes["raylet"][0].process.pid == raylet.pid:
                self.cluster.remove_node(node, allow_graceful=False)
                return
        raise LookupError(f"{process} runs on no node")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    import ray

    with _on_loopback(), _environment({"PYTHONPATH": str(Path(__file__).parents[1])}):
        nodes = Nodes()
        ray.init(address=nodes.cluster.address, log_to_driver=False, logging_level="CRITICAL")
        yield nodes
        ray.shutdown()
        nodes.cluster.shutdown()


class Listener(Unseen):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.shares: list[float] = []

    def advanced(self, unit: Unit, share: float) -> None:
        self.shares.append(share)

    def note(self, text: str) -> None:
        self.told.append(text)


def executed(units: list[Unit], root: Path, **how: Any) -> dict[str, Outcome]:
    return {outcome.unit.identity: outcome for outcome in execute(units, root, **how)}


def test_what_fails_is_tried_again_and_what_cannot_be_meant_is_not(nodes: Nodes, tmp_path: Path) -> None:
    once, killed = (study(name, marker=str(tmp_path / name)) for name in ("raises_once", "killed_once"))
    twice, never, always, fine = (
        study("raises"),
        study("cannot_be_meant"),
        study("aborts_always"),
        study("fine", seed=1),
    )
    listener = Listener()
    ended = executed([once, killed, twice, never, always, fine], tmp_path / "runs", progress=listener)
    attempts = [ended[unit.identity].attempts for unit in (once, killed, twice, never, always, fine)]
    assert attempts == [2, 2, 2, 1, LOSSES, 1]
    assert all(ended[unit.identity].finished for unit in (once, killed, fine))
    assert read(ended[killed.identity].folder).readings["value"].tolist() == [1.0, 2.0]
    assert ended[twice.identity].error == "ZeroDivisionError: nothing to divide by"
    assert ended[never.identity].error == "depth -1: expected at least 1"
    assert ended[always.identity].error.startswith("its worker went away") and "\n" not in ended[always.identity].error
    assert sum("tried once more" in text for text in listener.told) == 3 + LOSSES - 1
    assert all(outcome.attempts == 1 for outcome in executed([fine], tmp_path / "runs").values())


def test_two_runs_share_a_gpu(nodes: Nodes, tmp_path: Path) -> None:
    """The GPUs here are counted by Ray and not there: what is tested is who is given which."""
    units: list[Unit] = [study("meets", here=str(tmp_path / "here"), seed=seed, others=2) for seed in range(2)]
    ended = executed(units, tmp_path / "runs", gpus=0.5)
    assert [ended[unit.identity].error for unit in units] == ["", ""]
    assert {float(read(ended[unit.identity].folder).readings["value"][0]) for unit in units} == {0.0}


def test_a_stop_leaves_a_run_to_go_on_and_a_lost_node_does_not_end_it(nodes: Nodes, tmp_path: Path) -> None:
    whole = content(run_one(LONG, tmp_path / "whole").folder.path)
    folder, listener = tmp_path / "runs" / LONG.identity, Listener()
    with pytest.raises(Stopped):
        executed([LONG], tmp_path / "runs", settings=Settings(stop=lambda: bool(listener.shares)), progress=listener)
    assert read(folder).state == "dead" and sorted((folder / "checkpoint").iterdir())
    lost: list[int] = []

    def lose() -> None:
        victim = writer_of(tmp_path.resolve() / "runs")
        nodes.lose(victim)
        lost.append(victim.pid)

    thread = threading.Thread(target=lose)
    thread.start()
    ended = executed([LONG], tmp_path / "runs", progress=listener)
    thread.join()
    assert ended[LONG.identity].finished and ended[LONG.identity].attempts == 2 and len(lost) == 1
    assert content(folder) == whole
    print(f"\n1 run, stopped once, its node lost once: bit for bit as undisturbed ({listener.told[-1][:90]})")
