"""`--plain`: the same words on a terminal, without colours."""

import os

import pytest

from leadline.cli import main

ESCAPE = "\x1b"


@pytest.mark.parametrize("words", [("list", "models", "resnet-2*"), ("verify", "li2016_lemma1")])
def test_plain_words_have_no_colours(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    said = []
    for more in ((), ("--plain",)):
        assert main([*words, *more]) == 0
        said.append(capsys.readouterr().out)
    assert ESCAPE in said[0] and ESCAPE not in said[1]
    assert words[1].rstrip("*") in said[1]
    assert os.environ["TERM"] == "xterm-256color" and "NO_COLOR" not in os.environ
