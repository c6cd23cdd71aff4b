"""The report as a file: complete, closed, written all at once or not at all, and without torch."""

import base64
import json
import re
import subprocess
import sys
import zlib
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
import written
from live.served import describe

from leadline import page
from leadline.cli import main
from leadline.core.errors import UnreadableError, UsageError
from leadline.report import found, write

MARKUP = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)>"


class Parts(HTMLParser):
    """The scripts of a page, by id where they have one, its policy, and everything that would be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self.fetched: list[str] = []
        self._open: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "script":
            self._open = named
            self.scripts.append((named, ""))
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(named["content"])
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.scripts[-1] = (self._open, self.scripts[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None

    def of(self, name: str) -> str:
        return next(text for attrs, text in self.scripts if attrs.get("id") == name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written.judged(written.run(tmp_path_factory.mktemp("runs") / "a"))


def test_only_its_own_scripts_may_run_and_nothing_is_fetched(folder: Path) -> None:
    parts = Parts(write(folder.parent / "page.html", [folder]).read_text(encoding="utf-8"))
    allowed = set(re.findall(r"'sha256-([^']+)'", parts.policy))
    drawing = zlib.decompress(base64.b64decode(parts.of("plotly"))).decode()
    scripts = [text for attrs, text in parts.scripts if not attrs.get("type")]
    assert {base64.b64encode(sha256(text.encode()).digest()).decode() for text in [*scripts, drawing]} == allowed
    assert drawing.encode() == page.plotly()
    rules = dict(rule.split(" ", 1) for rule in parts.policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in rules["script-src"] and "http" not in parts.policy and "connect-src" not in rules
    assert parts.fetched == []


def test_what_a_run_says_ends_no_element(tmp_path: Path) -> None:
    folder = written.judged(written.run(tmp_path / "a", said=MARKUP), said=MARKUP)
    text = write(tmp_path / "page.html", [folder]).read_text(encoding="utf-8")
    parts = Parts(text)
    assert len(parts.scripts) == 4
    (run,) = json.loads(parts.of("runs"))
    assert run["model"] == f"resnet-8{MARKUP}" and MARKUP in run["diagnosis"]["reason"]
    assert "<img" not in text


@pytest.mark.parametrize("name", ["a<b>&\"'", "ünï çødé", "%2e%2e", "$title {css}", "-rf", "a\nb"])
def test_any_name_can_be_shown(tmp_path: Path, name: str) -> None:
    folder = written.run(tmp_path / name)
    parts = Parts(write(tmp_path / "page.html", [folder]).read_text(encoding="utf-8"))
    assert json.loads(parts.of("runs"))[0]["name"] == name


def test_a_name_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    folder = written.run(tmp_path / b"\xff\xfe".decode("utf-8", "surrogateescape"))
    assert write(tmp_path / "page.html", [folder]).read_bytes().decode("utf-8").startswith("<!doctype html>")


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    folders = [written.run(tmp_path / parent / "a") for parent in "xyz"]
    runs = page.describe_all(folders)
    assert [run["name"] for run in runs] == ["a", "a (2)", "a (3)"] and len({run["id"] for run in runs}) == 3


def test_a_growing_a_broken_and_a_torn_run_are_shown_as_they_are(tmp_path: Path) -> None:
    dead = written.run(tmp_path / "dead", finished=False)
    with (dead / "readings.jsonl").open("ab") as file:
        file.write(b'{"step": 1, "pro')
    (run,) = page.describe_all([dead])
    assert run["state"] == "dead" and run["notes"] == ["a torn last line of 16 bytes was dropped"]
    assert run["readings"]


def test_a_damaged_diagnosis_is_a_note_and_the_readings_are_judged(tmp_path: Path) -> None:
    folder = written.judged(written.run(tmp_path / "a"))
    (folder / "diagnosis.json").write_text("{")
    (run,) = page.describe_all([folder])
    assert run["diagnosis"]["from_readings"] and "diagnosis.json is damaged" in run["notes"][0]


def test_folders_of_runs_are_looked_through(tmp_path: Path) -> None:
    one, two = written.run(tmp_path / "runs" / "a"), written.run(tmp_path / "runs" / "b")
    (tmp_path / "runs" / "c").mkdir()
    assert found([tmp_path / "runs"]) == [one, two]
    assert found([two, tmp_path / "runs"]) == [two, one]


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["none"], "none does not exist; expected a run folder", 3),
        (["empty"], "empty holds no run; expected a run folder", 3),
        (["file"], "file is no folder; expected a run folder", 3),
        (["damaged"], "run.json is damaged", 3),
        (["nonsense"], "nonsense cannot be shown", 3),
        (["good", "-o", "empty"], "empty is a folder; expected the name of a file", 2),
        (["good", "-o", "file/report.html"], "cannot write file/report.html", 3),
        (["good", "--out", "/proc/none/report.html"], "cannot write /proc/none/report.html", 3),
        ([], "runs", 2),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(
    words: list[str],
    said: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").touch()
    describe(Path("damaged"), "{")
    describe(Path("nonsense"), '{"anatomy": {"blocks": [1, 2]}, "places": {"block": ["a", "b"]}}')
    written.run(Path("good"))
    assert main(["report", *words]) == code
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and told.out == ""
    assert not list(tmp_path.rglob("*.html")) and not list(tmp_path.rglob("*.part"))


def test_too_many_and_no_runs_are_refused(tmp_path: Path) -> None:
    for count in (0, 65):
        with pytest.raises(UsageError, match=f"{count} runs were given; a report shows 1 to 64"):
            write(tmp_path / "page.html", [tmp_path] * count)


def test_a_former_page_is_replaced_only_by_a_whole_one(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "sub" / "page.html"
    write(target, [folder])
    former = target.read_bytes()
    with pytest.raises(UnreadableError):
        write(target, [folder, describe(tmp_path / "damaged", "[")])
    assert target.read_bytes() == former and list(target.parent.iterdir()) == [target]


def test_the_command_says_what_it_wrote(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(folder)]) == 0
    assert re.fullmatch(r"report\.html: 1 run, \d\.\d MB\n", capsys.readouterr().out)
    assert main(["report", str(folder), "-o", "other.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == Path("other.html").stat().st_size and told["runs"] == [str(folder)]


def test_it_works_where_torch_is_not(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Away:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name in ('torch', 'matplotlib'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Away())\n"
        "from leadline.cli import main\n"
        f"sys.exit(main(['report', {str(folder)!r}, '-o', {str(tmp_path / 'page.html')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").stat().st_size > 1_000_000
