"""Fig. 4: a mixture on which herded Gibbs as published converges, and one on which its herding error stalls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class MixtureCase:
    """One mixture: points of each sampler, and the errors of their prefixes."""

    name: str
    mixture: GaussianMixture
    points: dict[str, Array]  # (n, 2)
    herding: dict[str, Array]  # (n,)
    l2: dict[str, Array]
    floor: float


def spread_across_ridge(x: Array) -> float:
    """Return the standard deviation, across the narrow component, of the later half of the points that lie on it.

    The component's own is 0.141. Points within 1 of the ridge count: the other component's mean is 4.2 away, its standard
    deviation 1.
    """
    across: Array = (x[len(x) // 2 :, 0] - x[len(x) // 2 :, 1]) / np.sqrt(2)
    return float(np.std(across[np.abs(across) < 1]))


@dataclass(frozen=True, eq=False)
class ConvergingAndStalling:
    """Points and errors on both mixtures."""

    title: ClassVar[str] = "Fig. 4: a mixture on which the published recursion converges, and one on which it stalls"
    sigma_k: ClassVar[float] = 0.2
    shown: ClassVar[int] = 200  # points in the pictures, the last ones of the sequence
    stated: ClassVar[dict[str, str]] = {"broad components": "converges", "a narrow, long component": "E stalls"}
    """The paper's words on the herding error of its own recursion; it says nothing of other samplers on these mixtures."""

    cases: list[MixtureCase]

    @classmethod
    def compute(cls, seed: int = 0, quick: bool = False, n: int = 1000) -> ConvergingAndStalling:
        """Herd n points from both mixtures and measure all prefixes; nothing is random, so `seed` is not used."""
        if quick:
            n = 300
        cases, samplers = [], common.herding_samplers(cls.sigma_k)
        for name, mixture in zip(cls.stated, (common.broad_components(), common.narrow_component()), strict=True):
            errors = common.PrefixErrors(mixture, cls.sigma_k**2 * np.eye(2))
            points = {who: sampler.sample(mixture, n).x for who, sampler in samplers.items()}
            curves = {who: errors(x) for who, x in points.items()}
            herding, l2 = ({who: c[k] for who, c in curves.items()} for k in (0, 1))
            cases.append(MixtureCase(name, mixture, points, herding, l2, errors.floor))
        return cls(cases)

    def draw(self) -> Figure:
        """Draw a row for each mixture: late points of both kinds of herded Gibbs, herding error, L2 error."""
        with figures() as new:
            figure, axes = new(len(self.cases), 4, (12.4, 3.0 * len(self.cases) + 0.7), width_ratios=(1, 1, 1.1, 1.1))
            for row, case in zip(axes, self.cases, strict=True):
                for ax, name in zip(row[:2], (common.CHG, common.SMOOTHED), strict=True):
                    common.shade_density(ax, case.mixture, np.linspace(-6.2, 6.9, 140), np.linspace(-6.4, 6.4, 140))
                    ax.plot(*case.points[name][-self.shown :].T, ".", color=common.SAMPLER_STYLES[name].color, markersize=4)
                    ax.set_title(name, color=common.SAMPLER_STYLES[name].color, fontweight="bold")
                    ax.set(xticks=[], yticks=[])
                row[0].set_ylabel(case.name, fontweight="bold")
                for ax, curves, label in ((row[2], case.herding, "herding error"), (row[3], case.l2, "L2 error")):
                    for name, values in curves.items():
                        common.draw_curve(ax, values, name)
                    ax.set_title(label)
                row[3].axhline(case.floor, color=common.DARK, linewidth=1, linestyle="--", label="L2 floor")
            for ax in axes[-1, 2:]:
                ax.set_xlabel("points t")
            legend(figure, axes[0, 3])
        return figure

    def table(self) -> pd.DataFrame:
        """Return errors at a tenth of the points and at all of them."""
        rows = []
        for case in self.cases:
            for name, herding in case.herding.items():
                end, early = len(herding), len(herding) // 10
                row: dict[str, Any] = {"mixture": case.name, "sampler": name}
                for label, values in (("E", herding), ("L2", case.l2[name])):
                    row |= {f"{label} at {early}": values[early - 1], f"{label} at {end}": values[-1]}
                    row |= {"E falls by": values[early - 1] / values[-1]} if label == "E" else {"L2 floor": case.floor}
                row["sd across"] = spread_across_ridge(case.points[name]) if case is self.cases[1] else np.nan
                rows.append(row | {"paper": self.stated[case.name] if name == common.CHG else common.NOT_STATED})
        return pd.DataFrame(rows)

    def numbers(self) -> pd.DataFrame:
        """Return points and errors of every sampler at every t."""
        parts = []
        for case in self.cases:
            for name, x in case.points.items():
                points = {"t": np.arange(1, len(x) + 1), "x1": x[:, 0], "x2": x[:, 1]}
                errors = {"herding_error": case.herding[name], "normalised_l2": case.l2[name]}
                parts.append(pd.DataFrame({"mixture": case.name, "sampler": name} | points | errors))
        return pd.concat(parts, ignore_index=True)
