"""One self-contained HTML file from run folders; nothing is requested when it is opened, and torch is not needed.

`write(path, folders)` makes it, `found(words)` finds the runs that somebody means.
"""

from leadline.report.find import found
from leadline.report.write import write

__all__ = ["found", "write"]
