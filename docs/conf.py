"""The site: `python -m sphinx -W docs build/site`, without a network.

The pages of the guide are the scripts of `examples/guide`, run while the site is built; the
reference is written from docstrings and rows by `_extensions/reference_pages.py`, and "coming from
PyTorch" from the tables of compatibility.md by `_extensions/coming_page.py`.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]
os.environ.setdefault("MPLBACKEND", "Agg")

import flambeau.hook  # noqa: E402

flambeau.hook.install()  # the guide says `import torch`


def short_warning(message, category, filename, lineno, line=None) -> str:
    """A warning as pages of the guide show it: without the folder where the site was built."""
    return f"{Path(filename).name}:{lineno}: {category.__name__}: {message}\n"


warnings.formatwarning = short_warning

project = "flambeau"
author = "the authors of flambeau"
copyright = "the authors of flambeau"
release = version = str(flambeau.__version__)

extensions = [
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
    "reference_pages",
    "coming_page",
    "outside_links",
    "pictures",
    "notebook_links",
]
exclude_patterns = ["_extensions", "**/GALLERY_HEADER.rst", "gallery/**/*.ipynb", "gallery/**/*.py"]
default_role = "code"
show_warning_types = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

GUIDE = sorted((HERE.parent / "examples/guide").glob("[0-9]*.py"))
FULL_WIDTH = ["index", "gallery/index", *[f"gallery/{page.stem}" for page in GUIDE]]
"""Pages whose lines of code need the room that the contents at the side would take."""

html_theme = "pydata_sphinx_theme"
html_title = "flambeau"
html_static_path = ["_static"]
html_css_files = ["flambeau.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **dict.fromkeys(FULL_WIDTH, [])},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_sidebars = {"reference/**": [], "coming": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/guide"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"[\\/]\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": (True, "jshtml"),
    "first_notebook_cell": "%load_ext flambeau\n%matplotlib inline",
    "download_all_examples": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "min_reported_time": 0,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]  # of functions in the gallery's settings
