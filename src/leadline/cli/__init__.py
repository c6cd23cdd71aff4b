"""The command line: one file per verb. Nothing else stands here: a verb called `list` hides the built-in one."""

from leadline.cli._main import main

__all__ = ["main"]
