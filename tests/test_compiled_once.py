"""Compiled functions have one signature each: a second one costs every user up to two seconds at first use."""

import subprocess
import sys

RUN = """
import importlib, pkgutil, warnings
import numpy as np
from numba.core.dispatcher import Dispatcher
import herdfilter as hf
warnings.simplefilter("ignore")
UNGM, TURN, VOLATILITY = hf.models.UNGM(), hf.models.CoordinatedTurn(), hf.models.StochasticVolatility()
SCAN = hf.models.WithClutter(hf.models.linear_chain(2), 0.9, 0.01, [[-50, 50], [-50, 50]])
NAMES = "auto ranked herded-kh herded-chg sqmc mixture-kh kalman-mixture-quantile augmented-kh ukf".split()
for name in NAMES:
    for model in (UNGM,) if name.endswith("quantile") else (UNGM, TURN):
        for n in (20, 600) if name in ("auto", "ranked", "sqmc") else (20,):
            hf.make_filter(name, model, n_particles=n, rng=0).run(hf.simulate(model, 4, rng=0)[1])
for name, model in (("auto", SCAN), ("bootstrap", SCAN), ("auto", VOLATILITY), ("ranked", VOLATILITY)):
    for n in (50, 600):
        hf.make_filter(name, model, n_particles=n, rng=0).run(hf.simulate(model, 4, rng=0)[1])
rng = np.random.default_rng(0)
for fit in (hf.EMFit(2), hf.EMFit("bic"), hf.KernelDensityFit()):
    fit.fit(rng.standard_normal((200, 2)), np.full(200, 0.005))
associate = hf.association.associate
for method in ("exact", "herded-gibbs", "random-gibbs", "belief-propagation"):
    associate(rng.random((4, 6)), method=method, rng=0)
for module in pkgutil.walk_packages(hf.__path__, "herdfilter."):
    if not module.name.startswith(("herdfilter._", "herdfilter.adapters")):
        for key, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and value.__module__ == module.name and len(value.signatures) > 1:
                print(module.name, key, *value.signatures, sep="\\n    ")
"""


def test_no_function_is_compiled_for_two_kinds_of_arguments():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert done.stdout == ""
