"""How the documentation is built: offline, from the tree, with the notebooks as they were run.

The folder in ``MPC_LAB_EXECUTED`` holds executed copies of the notebooks, as
``tests/helpers/execute.py`` writes them. Without it the notebooks are shown without outputs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import mpc_lab  # noqa: E402

project = "mpc_lab"
author = "The mpc_lab developers"
copyright = author
release = version = mpc_lab.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "live_charts",
    "mathml",
    "readable_tables",
    "schema_tables",
    "tutorial_notebooks",
]
exclude_patterns = [
    "_build",
    "_ext",
    "explanation/measured",
    "tutorials/seen",
    "**.ipynb_checkpoints",
]
templates_path = ["_templates"]

# Equations are MathML, which browsers draw by themselves: no script, no font from elsewhere.
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_update_mathjax = False

# The notebooks were run before, in the environment of Binder.
nb_execution_mode = "off"
nb_output_stderr = "remove"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None),
    ("html", "image/svg+xml", 5),
]

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
nitpicky = True
nitpick_ignore_regex = [
    # Types of other libraries, which have no place in these pages.
    (r"py:.*", r"(numpy|pandas|xarray|altair|traitlets|ipywidgets|anywidget|pathlib|polars)\..*"),
]

html_theme = "pydata_sphinx_theme"
html_title = f"mpc_lab {release}"
html_static_path = ["_static"]
html_css_files = ["mpc_lab.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "mpc_lab"},
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
notebooks_folder = os.environ.get("MPC_LAB_EXECUTED", "")
