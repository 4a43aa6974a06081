"""What the documentation of a model says of its equations, as HTML."""

from __future__ import annotations

import inspect

from herdfilter.study.scenario import Scenario


def equations(scenario: Scenario) -> str:
    """Return the summary and the equations of a model of this package as HTML with MathML; nothing of a user's model.

    They stand in the docstring of the class, or of the function that builds it, above the parameters.
    """
    from herdfilter import models

    model = getattr(models, str(scenario.model["type"]), None)
    text = inspect.getdoc(model) if inspect.isclass(model) or inspect.isfunction(model) else None
    if not text:
        return ""
    try:
        from docutils.core import publish_parts
    except ImportError:
        return "<p>The equations of the model are shown after <code>pip install 'herdfilter[equations]'</code>.</p>"
    settings = {
        "math_output": "MathML",
        "raw_enabled": False,
        "file_insertion_enabled": False,
        "report_level": 5,
        "_disable_config": True,
    }
    text = text.partition("\nParameters\n")[0].replace(r"\dots", r"\ldots")
    return str(publish_parts(text, writer="html5", settings_overrides=settings)["body"])
