"""
A comparison and its report
===========================

Which of three filters is best for a problem, and is the difference more than luck? Ten runs of each, a table, figures,
and a page that can be sent to somebody.
"""

# %%
# A scenario is a file: model, truth, numbers of particles. ``herdfilter scenarios`` lists them. ``ungm`` is a classic,
# whose posterior often has two modes. In each run every filter sees the same observations:
# one with random numbers, one with points of a Sobol sequence, and one with quantiles.

from pathlib import Path
from tempfile import mkdtemp

import herdfilter as hf
from herdfilter.report import write_report
from herdfilter.study.store import open_for_reading

folder = Path(mkdtemp())  # yours may be Path("results")
filters = ["bootstrap", "sqmc", "herded-quantile"]
table = hf.compare("ungm", filters, particles=[20, 50], runs=10, store=folder / "study.sqlite")

# %%
# The table is a DataFrame with a row per run: pandas does the rest. ``reference_error`` is the distance of a filter's
# mean from the exact posterior mean, which is found on a grid. That is what filters differ in; ``rmse``, the distance
# from the truth, is mostly what the observations do not tell.

table.groupby(["n_particles", "filter"])[["reference_error", "rmse", "ms_per_step"]].median()

# %%
# What was run is in the file ``study.sqlite``. Read from there, it says what was found in one sentence.

with open_for_reading(folder) as store:
    result = store.result()
print(result.verdict)

# %%
# Functions of :mod:`herdfilter.plotting` return figures, which a notebook shows and ``savefig`` writes to a file. A marker
# is a median over the runs, a bar its 95 % interval, a line the power of the particle count that fits the runs best.

hf.plotting.error_over_particles(result.summary, slopes=result.slopes)

# %%
# The first run: the truth, and what filters made of it.

hf.plotting.trajectory(result)

# %%
# The report has all of that and more in one file: what is shown and what is not, the error over time, an animation of
# the particles, how each filter was built. It needs no network, and can be sent by mail.

write_report(result, folder)

# %%
# One command does the same, and writes all figures to files:
#
# .. code-block:: shell
#
#    herdfilter compare ungm --filters bootstrap,sqmc,herded-quantile --particles 20,50 --runs 10 --out results
#
# What the parts of the report say: :doc:`/report`. What is measured, and how intervals are made: :doc:`/evaluation`. A
# scenario of your own: :doc:`/own_scenario`.
