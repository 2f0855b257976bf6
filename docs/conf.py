"""The documentation site: `python -m sphinx -W --keep-going docs build/site` builds it, without the network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import exactshap

project = "exactshap"
author = "The exactshap developers"
project_copyright = f"{author}, BSD-3-Clause"
version = release = exactshap.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "mathml",
]
exclude_patterns = [
    "examples",
    "gallery",
    "_templates",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = True  # a name that leads nowhere is a warning, and a warning is an error
nitpick_ignore_regex = [  # names of other libraries: their sites are not queried
    (
        r"py:.*",
        r"(numpy|np|pandas|pd|polars|sklearn|scipy|shap|shapiq|matplotlib|pyarrow|collections|dataclasses|typing|pathlib|joblib)\..*",
    ),
    (r"py:.*", r"(array|optional|callable|default.*|sequence|mapping|iterable|any)"),
    (r"py:class", r"exactshap\.readers\._traits\..*"),  # types of fields that a reader of one's own leaves at their defaults
]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "mathml"

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the sections of the docstrings say it, with shapes
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "write_computation_times": False,
    "reset_modules": ("matplotlib", "gallery_pictures.whole_pictures"),
}


RESULTS = {
    "Explanation",
    "Certificate",
    "Comparison",
    "Cohorts",
    "Decomposition",
    "PairwiseDecomposition",
    "Reasons",
    "Importance",
}


def without_constructor(app, what, name, thing, options, signature, returns):
    """Leave out the signature of classes that functions return and nobody calls."""
    return ("", "") if what == "class" and name.rpartition(".")[2] in RESULTS else None


def setup(app):
    """Remove the pages of examples that are gone: Sphinx would find them, and nothing would lead to them."""
    app.connect("autodoc-process-signature", without_constructor)
    for page in (HERE / "auto_examples").glob("plot_*.rst"):
        if not (HERE / "gallery" / page.with_suffix(".py").name).exists():
            page.unlink()


html_theme = "pydata_sphinx_theme"
html_title = "exactshap"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "exactshap", "alt_text": "exactshap: home"},
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "show_prev_next": True,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"start": [], "glossary": [], "coming_from": [], "troubleshooting": []}
