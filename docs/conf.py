"""How the documentation is built: sphinx, furo, myst; warnings are errors."""

from leadline.core.version import VERSION

project = "Leadline"
author = "The Leadline authors"
version = release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_theme = "furo"
html_title = "Leadline"
html_static_path = ["_static"]
exclude_patterns = ["_build"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
