"""How the documentation is built: sphinx, furo, myst; warnings are errors."""

import sys
from pathlib import Path

from leadline.core.version import VERSION

sys.path.insert(0, str(Path(__file__).parent))

project = "Leadline"
author = "The Leadline authors"
version = release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "_papers"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_theme = "furo"
html_title = "Leadline"
html_static_path = ["_static"]
html_css_files = ["papers.css"]
exclude_patterns = ["_build", "results"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
smartquotes = False
