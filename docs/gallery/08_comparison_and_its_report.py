"""
A comparison and its report
===========================

Which of three filters is best for a problem, and is the difference more than luck? Ten runs of each give a table,
figures, and a page to send.
"""

# %%
# A scenario is a file with a model, its truth and numbers of particles. ``herdfilter scenarios`` lists them. ``ungm``
# is a classic; its posterior often has two modes. In each run every filter sees the same observations: one filter has
# random numbers, one a Sobol sequence, and one quantiles.

from pathlib import Path
from tempfile import mkdtemp

import herdfilter as hf

folder = Path(mkdtemp())  # yours may be Path("results")
filters = ["bootstrap", "sqmc", "herded-quantile"]
study = hf.compare("ungm", filters, particles=[20, 50], runs=10, store=folder / "study.sqlite")

# %%
# The table is a DataFrame with a row per run, so pandas does the rest. ``reference_error`` is the distance of a
# filter's mean from the exact posterior mean, which a grid computes. Filters differ in this error. ``rmse``, the
# distance from the truth, is mostly what the observations leave open.

study.groupby(["n_particles", "filter"])[["reference_error", "rmse", "ms_per_step"]].median()

# %%
# Printed, it is the table of the command line: medians, intervals, and last the verdict, also as ``study.verdict``. The
# file ``study.sqlite`` keeps all runs; ``hf.Comparison.read(folder)`` reads them again.

print(study)

# %%
# ``study.plot`` returns a figure; a notebook shows it, and ``savefig`` writes it to a file.
# A marker is a median over the runs, a bar its 95 % interval, a line the power of the particle count that fits the runs
# best.

study.plot("error_over_particles")
# sphinx_gallery_thumbnail_number = 0

# %%
# The first run shows the truth and the estimates of the filters.

study.plot("trajectory")

# %%
# The report has all of this and more in one file: the verdict, the error over time, an animation of the particles, the
# parts of each filter. It needs no network, so you can send it by mail.

study.report(folder)

# %%
# One command does the same, and writes all figures to files:
#
# .. code-block:: shell
#
#    herdfilter compare ungm --filters bootstrap,sqmc,herded-quantile --particles 20,50 --runs 10 --out results
#
# The parts of the report, the measures, and how intervals are made: :doc:`/comparing`. A scenario of your own:
# :doc:`/scenarios`.
