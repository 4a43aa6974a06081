"""Small scenarios that run in milliseconds, scripts beside the package, a browser."""

import importlib
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from herdfilter.study.scenario import Scenario

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # last: child processes find `tests`, and the package that is installed

MODEL = {
    "type": "LinearGaussian",
    "F": [[0.9]],
    "H": [[1.0]],
    "Q": [[1.0]],
    "R": [[0.5]],
    "initial_mean": [0.0],
    "initial_covariance": [[1.0]],
}
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


@dataclass
class Constant:
    """A filter that says the same at every step, and remembers what it was shown."""

    model: object
    n_particles: int
    rng: np.random.Generator
    value: float = 0.0
    seen: list = field(default_factory=list)

    def run(self, observations, dt=1.0, controls=None):
        self.seen.append(observations)
        return SimpleNamespace(means=np.full((len(observations), self.model.dim), self.value))


class Failing(Constant):
    """A filter that gives up on runs whose first observation is positive."""

    def run(self, observations, dt=1.0, controls=None):
        if observations[0, 0] > 0:
            raise ArithmeticError("lost\nthe target")
        return super().run(observations, dt, controls)


@pytest.fixture(scope="session")
def scenario():
    """Ten steps of a linear Gaussian model, with the Kalman filter as reference."""
    return Scenario(
        name="walk",
        title="Walk",
        model=MODEL,
        steps=10,
        runs=6,
        particles=(10, 30),
        filters=("bootstrap", "augmented-gauss-kh"),
        reference={"type": "kalman"},
    )


constant = pytest.fixture(lambda: Constant, scope="session")
failing = pytest.fixture(lambda: Failing)


@pytest.fixture(scope="module")
def scripts():
    """A function: a module outside the package by its path, such as ``docs/make_pages``."""
    with pytest.MonkeyPatch.context() as patch:

        def load(path):
            folder = (ROOT / path).parent
            if not folder.is_dir():
                pytest.skip(f"{folder} is not part of this installation")
            patch.syspath_prepend(str(folder))
            return importlib.import_module(Path(path).name)

        yield load


@pytest.fixture(scope="module")
def coarse_pictures():
    """Fewer pixels, which are drawn and packed sooner and show the same."""
    from matplotlib.figure import Figure

    savefig = Figure.savefig

    def coarse(figure, path, **options):
        if str(path).endswith(".png"):
            options["dpi"] = 50
        savefig(figure, path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", coarse)
        # it would draw finely
        patch.setattr("herdfilter.study.workers.begin", lambda function: function)
        yield


@pytest.fixture(scope="module")
def browser():
    """A Chromium that tests open pages in."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=FLAGS, chromium_sandbox=False, timeout=120_000
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def watched(browser):
    """A function of a window's size and an address: opens the page there, with what it complains of and asks for."""

    @contextmanager
    def opened(size, address):
        context = browser.new_context(**size)
        context.set_default_timeout(120_000)
        page = context.new_page()
        heard = []
        asked = []
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        yield page, heard, asked
        context.close()

    return opened
