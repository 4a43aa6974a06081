"""Print the lowest versions that pyproject.toml promises as constraints for pip, one `name==version` a line."""

import re
import tomllib
from pathlib import Path

TOOLS = {"bench", "dev"}  # extras that no test needs

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(r for name in extras.keys() - TOOLS for r in extras[name])]
for requirement in sorted(wanted):
    if lowest := re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement):
        print("==".join(lowest.groups()))
