"""Configuration of the documentation; `make docs` builds it."""

from __future__ import annotations

import os
import re
import sys
from logging import getLogger
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tools"))

import data_table
import docutils
import gallery_data
import gallery_shown
import public_names
import reference
import reference_links
import scenario_text
from docutils import nodes
from sphinx.util import logging

from herdfilter import __version__

logger = logging.getLogger(__name__)

# A style of Pygments, when imported, has Python print every message of level INFO.
getLogger("herdfilter").setLevel("WARNING")

project = "herdfilter"
author = "The herdfilter developers"
copyright = "2026, The herdfilter developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Old addresses lead on: a page that was removed, and where its contents are now. A link to one of its sections goes to the
# section of the same name if the new page has one, else to the top of the page.
MOVED: dict[str, str] = {
    "kernels": "samplers.html#kernels",
    "one_dimension": "samplers.html#one-dimension",
    "conditionals": "without_mixture.html#conditional-densities",
    "discrete": "without_mixture.html#herding",
    "clutter": "one_target.html",
    "manoeuvres": "one_target.html#manoeuvres",
    "many_targets": "tracking.html#scenarios",
    "linear_parts": "kalman.html#linear-parts",
    "state": "running.html#a-track-starts-from-its-first-measurement",
    "looking": "running.html#looking-at-results",
    "forecasting": "running.html#forecasting",
    "evaluation": "comparing.html",
    "report": "comparing.html#the-report",
    "long": "comparing.html#interrupted-and-resumed",
    "consistency": "comparing.html#consistency",
    "own_scenario": "scenarios.html",
    "many_models": "random_models.html",
    "herding": "claims.html",
    "study": "data.html#the-study",
    "discrepancy": "claims.html#points",
    "results": "data.html",
    "benchmarks": "data.html#provenance",
    "board": "data.html#the-board",
    "peers": "data.html#points",
    "other_filters": "data.html#libraries",
    "stonesoup": "coming_from_stonesoup.html#herded-particles-in-your-filter",
    "adapters": "coming_from_filterpy.html#keep-your-filter",
    "vision": "need.html#what-it-will-become-and-what-not",
    "as_published": "published_figures.html",
    "as_published_herding": "published_figures.html",
    "as_published_sqmc": "published_figures.html",
    "libraries": "data.html#libraries",
    "provenance": "data.html#provenance",
    "choosing": "guide.html#choose",
    "dear_model": "claims.html#expensive-models",
    "fitted_noise": "parameters.html#noise-you-do-not-know",
    "likelihood": "parameters.html#maximum-likelihood",
    "particle_mcmc": "parameters.html#particle-mcmc",
}

exclude_patterns = ["_build", "gallery", "**sg_execution_times.rst"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
default_role = "autolink"  # `name` in a docstring is a link where there is such an object

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, not an entry for each
autodoc_typehints = "none"  # numpydoc sections give the types
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
add_module_names = False

# The scripts in docs/gallery are run by every build; a page, a notebook and the script itself go to docs/examples.
# Those that need data which are not on this machine show stored pictures, and say so.
data_folder = gallery_data.folder()
os.environ["HERDFILTER_DATA"] = str(data_folder)
not_run = gallery_data.missing(data_folder)
gallery_data.place_thumbnails(not_run)
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": gallery_data.pattern(not_run),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 0,
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "parallel": 2,
    "image_scrapers": ("gallery_shown.blocks_pictures",),
    "thumbnail_size": (400, 400),
    "ignore_repr_types": "matplotlib|pathlib",
    "reset_modules": ("matplotlib", "gallery_shown.plain_docutils", "gallery_shown.one_look"),
    "reset_modules_order": "both",
}

html_theme = "furo"
html_title = f"herdfilter {version}"
gallery_shown.PAGES.mkdir(parents=True, exist_ok=True)
html_static_path = ["_static", "examples/pages"]
html_css_files = ["page.css"]
html_js_files = ["sortable.js"]
copybutton_exclude = ".linenos, .gp, .go"  # of an example what is typed, not what is printed
html_math_renderer = "mathml" if docutils.__version_info__ >= (0, 22) else "mathjax"
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}


def fill_in(app, docname: str, source: list[str]) -> None:
    """Fill in the scenarios' own words, the public names of the reference, and of an example that it was not run."""
    if docname == "api":
        source[0] = reference.overview(source[0])
    if docname.startswith("reference/"):
        source[0] = reference.page(docname.removeprefix("reference/"), source[0])
    if docname == "api" or docname.startswith("reference/"):
        for module in ["public_names", "reference", *public_names.public_modules()]:
            app.env.note_dependency(sys.modules[module].__file__)
    if docname == "scenarios":
        for path in scenario_text.paths():
            app.env.note_dependency(str(path))
        source[0] = source[0].replace("<!-- scenarios -->", scenario_text.markdown())
    folder, _, name = docname.rpartition("/")
    if folder == "examples" and name in not_run:
        source[0] = gallery_data.note(source[0], name, not_run[name])


def plain_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Show a fenced block of a docstring as a literal block, and make links of the pages that it names."""
    text = re.sub(
        r"^```\w*\n(.*?)^```",
        lambda block: "::\n\n" + re.sub("^", "    ", block[1], flags=re.M),
        "\n".join(lines),
        flags=re.M | re.S,
    )
    text = re.sub(r"(?<![`\w/])docs/(\w+)\.md\b", r":doc:`/\1`", text)
    lines[:] = text.split("\n")


def bare_protocol(app, what, name, obj, options, signature, annotation):
    """Leave out the constructor's arguments of a Protocol, which nobody calls."""
    return ("", None) if getattr(obj, "_is_protocol", False) else None


def mathml(translator, node: nodes.math | nodes.math_block) -> None:
    """Write an equation as MathML, which browsers lay out without a script from elsewhere."""
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml

    text = node.astext().replace(r"\dots", r"\ldots")
    text = re.sub(r"\s*\\tag\{(\w+)\}", r" \\qquad (\1)", text)  # the number of an equation
    try:
        block = isinstance(node, nodes.math_block)
        found = tex2mathml(text, as_block=block)
        translator.body.append(f'<div class="equation">{found}</div>' if block else found)
    except MathError as error:
        logger.warning("equation %r: %s", text, error, location=node)
    raise nodes.SkipNode


def write_moved(app, exception: Exception | None) -> None:
    """Write a page that leads on at each address of `MOVED`."""
    if exception or app.builder.format != "html":
        return
    for name, target in MOVED.items():
        if name in app.env.found_docs:
            logger.warning("MOVED: %s is still a page", name)
            continue
        page, _, section = target.partition("#")
        Path(app.outdir, f"{name}.html").write_text(
            f"""<!doctype html><meta charset="utf-8"><title>{name} has moved</title>
<script>location.replace("{page}" + (location.hash || "{"#" * bool(section)}{section}"))</script>
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
<p>This page has moved: <a href="{target}">{target}</a></p>
""",
            encoding="utf-8",
        )


def setup(app) -> None:
    """Connect the functions above."""
    app.add_role("autolink", reference_links.LinkRole(), override=True)
    app.add_transform(reference_links.LinkedCode)
    app.add_directive("data-table", data_table.DataTable)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("autodoc-process-signature", bare_protocol)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("build-finished", write_moved)
