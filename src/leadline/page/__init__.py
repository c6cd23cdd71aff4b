"""What the report and the live page share: a run as JSON-able data, and the page that shows such runs.

`describe(folder)` is a run: what it is, where it ran, its blocks and places, what explains its numbers, its diagnosis
and proofs, and its readings in compact form; `describe_all(folders)` the runs of one page. `assets` has what the page
is made of: `css()`, `js()`, `plotly()`.

The browser's side, `window.Leadline`, is documented at the top of files/page.js. A server gives each of them under an
address of its own and needs no inline script; this policy is enough, and plotly.js asks for the inline styles:

    default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;
    connect-src 'self'; base-uri 'none'; form-action 'none'
"""

from leadline.page.assets import css, js, plotly
from leadline.page.describe import describe, describe_all, explain
from leadline.page.judged import diagnosis

__all__ = ["css", "describe", "describe_all", "diagnosis", "explain", "js", "plotly"]
