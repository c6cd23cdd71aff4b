"""Run folders by name in addresses: one word of ASCII for each, which is looked up and never taken for a path."""

import os
import re

_OTHER = re.compile(rb"[^A-Za-z0-9._-]")


def key(name: str) -> str:
    """The word for a folder's name: letters, digits, `.`, `_` and `-` as they are, every other byte as ~ and its hex.

    >>> key("resnet-20-s0-9f92b76a3c"), key("a<b"), key("a~b")
    ('resnet-20-s0-9f92b76a3c', 'a~3cb', 'a~7eb')
    """
    return _OTHER.sub(lambda found: b"~%02x" % found[0][0], os.fsencode(name)).decode()


def text(name: str) -> str:
    """A folder's name to be shown; bytes that are no UTF-8 become replacement characters."""
    return os.fsencode(name).decode("utf-8", "replace")
