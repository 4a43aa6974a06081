"""The report holds what a study found, needs nothing else, and trusts no name."""

import base64
import dataclasses
import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import result_of

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.report import write_report
from herdfilter.report.animation import DRAWN_STEPS, animation, rounded_lists
from herdfilter.report.page import render
from herdfilter.study.recording import Recording

EVIL = "<script>alert('x')</script>"
VOID = {"meta", "link", "input", "img", "br", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, and text; complains of what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text, self.alone = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.alone if self.open and self.open[-1] in ("script", "style") else self.text).append(
            data
        )

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


class Sometimes:
    """Gives up where the first observation is positive."""

    def __init__(self, model, n_particles, rng):
        self.model = model

    def run(self, observations, dt=1.0, controls=None):
        if observations[0, 0] > 0:
            raise ArithmeticError(f"lost the target {EVIL}")
        return SimpleNamespace(means=np.zeros((len(observations), self.model.dim)))


@pytest.fixture(scope="module")
def result(scenario):
    return result_of(
        dataclasses.replace(scenario, title=f"Walk {EVIL}"),
        {"bootstrap": {}, "guided": {"proposal": hf.GuidedProposal()}, EVIL: Sometimes},
    )


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    return write_report(result, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def text(path):
    return path.read_text(encoding="utf-8")


def animation_data(page):
    texts = [text for text in page.alone if text.startswith('{"times"')]
    return json.loads("".join(texts))


def test_the_page_says_everything_once_and_needs_nothing(path, text):
    assert path.name == "report.html"
    assert list(path.parent.iterdir()) == [path]
    page = Page(text)
    headings = {
        "claims",
        "table",
        "particles",
        "seconds",
        "time",
        "run",
        "consistency",
        "failures",
        "definitions",
    }
    assert {section["id"] for section in page.all("section")} == headings
    for words in (
        "With 30 particles",
        "seed 0",
        "numpy",
        "the Kalman filter, exact here",
        "GuidedProposal",
        "8 runs at least",
        EVIL,
    ):
        assert words in page.words, words
    for _, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name, "#")
            assert value.startswith(("#", "data:")), value
    assert not re.search(r"url\(\s*['\"]?(?!#)|@import", text)
    assert "default-src 'none'" in page.all("meta")[-1]["content"]


def test_ids_are_unique_references_find_theirs_and_pictures_can_be_heard(text):
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        wanted = re.findall(
            r"url\(#([^)]+)\)", " ".join(value or "" for value in attributes.values())
        )
        wanted += [
            attributes[name].lstrip("#")
            for name in ("href", "for", "aria-labelledby")
            if attributes.get(name, "").strip("#")
            and not attributes.get(name, "").startswith("data:")
        ]
        assert set(wanted) <= set(ids)
    pictures = [one for one in page.all("svg") if one.get("aria-hidden") != "true"]
    assert len(pictures) > 10
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)


def test_failures_are_counted_and_names_and_errors_are_text(result, text):
    failed = result.runs[result.runs["error"] != ""]
    assert 0 < len(failed) < len(result.runs)
    page = Page(text)
    assert f"{len(failed)} of {len(result.runs)} runs of a filter failed" in page.words
    assert len(page.all("details")) == 1
    assert "open" not in page.all("details")[0]
    assert "raise ArithmeticError" in page.words
    assert "alert('x')</script>" not in text.replace("&#39;", "'").replace("&lt;/script&gt;", "")
    assert len(page.all("script")) == 2


def test_a_figure_of_ones_own_is_on_the_page_of_a_study_that_was_cut_off(result):
    cut = dataclasses.replace(
        result,
        study=dataclasses.replace(result.study, runs=4),
        runs=result.runs[result.runs["run"] < 4],
    )
    page = Page(render(cut, {"my_own_figure": drawings(result)["error_over_particles"]}))
    assert page.words.count("My own figure") == 1
    assert "Cut off: 4 of 6 planned runs" in page.words


def test_the_animation_holds_the_particles_of_the_first_run(result, text):
    data = animation_data(Page(text))
    shown = result.trajectory
    assert data["pair"][0] == "bootstrap"
    assert EVIL not in data["filters"]  # no particles
    for name, entry in data["filters"].items():
        codes = np.frombuffer(base64.b64decode(entry["particles"]), "<u2")
        values = data["low"][0] + codes / 65535 * (data["high"][0] - data["low"][0])
        inside = (codes > 0) & (codes < 65535)
        assert inside.mean() > 0.9
        step = (data["high"][0] - data["low"][0]) / 65535
        np.testing.assert_allclose(
            values[inside], shown.particles[name].ravel()[inside], atol=1.1 * step
        )


def test_tracks_of_many_targets_move_over_detections(result):
    """Made-up: one target leaves at half time, a second label appears, and scans are of no, one or many detections."""
    shown, rng = result.trajectory, np.random.default_rng(0)
    steps = 2 * DRAWN_STEPS + 1
    truth = np.cumsum(rng.standard_normal((steps, 2, 2)), axis=0)
    truth[steps // 2 :, 1] = np.nan
    tracks = truth[:, [0, 1, 1]] + 0.1
    tracks[:10, 2] = np.nan
    scans = [rng.uniform(-30, 30, (k % 4, 2)) for k in range(steps)]
    many = dataclasses.replace(
        shown,
        recording=Recording(truth, scans),
        reference=None,
        estimates={"bootstrap": tracks},
        particles={},
        weights={},
        positions=scans,
    )
    arrays = animation(dataclasses.replace(result, trajectory=many))
    data = json.loads(json.dumps(arrays, default=rounded_lists, allow_nan=False))
    codes = np.frombuffer(base64.b64decode(data["detections"]), "<u2").reshape(-1, 2)
    low, high = np.array(data["low"]), np.array(data["high"])
    inside = ((codes > 0) & (codes < 65535)).all(axis=1)
    assert sum(data["scans"]) == len(codes) == sum(len(scan) for scan in scans), (
        "also those of steps left out"
    )
    np.testing.assert_allclose(
        (low + codes / 65535 * (high - low))[inside],
        np.concatenate(scans)[inside],
        atol=2e-5 * np.ptp([low, high]),
    )
    ends = np.cumsum([len(scan) for scan in scans])[:: len(scans) // len(data["steps"]) + 1]
    np.testing.assert_array_equal(np.cumsum(data["scans"]), ends)
    at = data["steps"].index(10)
    assert data["filters"]["bootstrap"]["estimate"][at][2] == [None, None]
    np.testing.assert_allclose(
        data["filters"]["bootstrap"]["estimate"][at][:2], tracks[9, :2], rtol=1e-5
    )
    assert data["truth"][-1][1] == [None, None]


def test_what_was_not_measured_is_said_in_a_line(scenario, constant):
    bare = dataclasses.replace(scenario, reference=None, particles=(5,), runs=1, divergence=None)
    result = result_of(bare, {"zero": constant})
    words = Page(render(result)).words
    for line in (
        "nothing to compare it with",
        "One particle count: no slope is fitted",
        "Not measured",
        "nothing is animated",
        "none: errors are against the truth",
    ):
        assert line in words, line


def test_shipped_models_show_their_equations_and_others_do_not():
    from herdfilter.report.parts import equations
    from herdfilter.study.scenario import load_scenario

    for name in ("ungm", "crossing"):
        text = equations(load_scenario(name))
        assert "<math" in text, name
        assert "problematic" not in text
        Page(text.replace("&ApplyFunction;", ""))
    assert (
        equations(dataclasses.replace(load_scenario("ungm"), model={"type": "mine.py:Model"})) == ""
    )
    # A stored scenario may name files that are elsewhere, and a report runs none of them.
    absent = dataclasses.replace(load_scenario("ungm"), imports=("mine.py", "herdfilter.py"))
    assert equations(absent) == equations(load_scenario("ungm"))
