"""Settings of the documentation site: ``make docs``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent)]
# Examples run as on one machine with nobody else on it, and send nothing anywhere.
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
}

from locole import __version__  # noqa: E402

project = "locole"
author = "The locole contributors"
project_copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "contents",
    "formulas",
    "api_pages",
]
root_doc = "index"
exclude_patterns = ["_*", "examples", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]
# Every cross reference must resolve, without asking the network.
nitpicky = True
default_role = "py:obj"

# Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 6
myst_links_external_new_tab = True

# Docstrings: types are those of the text, classes show the members that are ours.
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "capture_repr": (),
    "doc_module": ("locole",),
    "backreferences_dir": "gallery/uses",
    "min_reported_time": 1_000,
    "image_scrapers": ("matplotlib",),
    "plot_gallery": "True",
    "default_thumb_file": str(DOCS / "_static" / "prompt.svg"),
}

# Pages
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "locole"
html_static_path = ["_static"]
html_css_files = ["locole.css"]
html_favicon = "_static/locole.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "locole"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}
