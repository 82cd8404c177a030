"""The site: sphinx-build -W -c docs . site. The source folder is the root, so that links lead as on GitHub."""

import fedarena

project = "FedArena"
author = "The FedArena developers"
release = fedarena.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/methods/*.md",
    "benchmarks/README.md",
    "reports/*/*.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
html_theme = "furo"
html_title = "FedArena"

myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # reports begin their sections at the third level
    "myst.strikethrough",
    "toc.not_included",  # reports are reached by links
]

autodoc_member_order = "bysource"
autodoc_mock_imports = ["flwr"]
