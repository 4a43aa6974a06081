"""The real data sets: on the real files where they are at hand, and on made-up ones of the same form."""

import dataclasses
import hashlib
import http.server
import threading

import numpy as np
import pytest
from helpers import cases, command, completed, folder_of_data, refusal, refused
from herdfilter.study.data.plaza import load_plaza
from herdfilter.study.data.uav import load_uav, local_position
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

from herdfilter.models import RangeOnly
from herdfilter.models.contract import wrap_angles
from herdfilter.study.data import DATA_FILES, checksum
from herdfilter.study.recording import Recording, load_data, record
from herdfilter.study.scenario import load_scenario

FOLDERS = {file: folder_of_data(file) for file in ("Plaza1_.mat", "Plaza2_.mat")}
BEACONS = {7: (0.0, 0.0), 3: (30.0, 0.0), 5: (0.0, 40.0)}
CHORD = 1.01 * 10 * (1 - np.cos(0.1 * np.pi * 0.02 / 2))
"""Most that a straight line between two survey points can leave the circle below, in metres."""


def circle(time):
    """A drive round a circle of radius 10 m in 20 s, from any moment on."""
    angle = 0.1 * np.pi * time
    return np.column_stack([10 + 10 * np.sin(angle), 20 - 10 * np.cos(angle), angle])


@pytest.fixture
def plaza_file(tmp_path):
    """A file of the Plaza form with an exact survey, exact odometry and exact, unscaled ranges."""
    time = 100 + np.arange(0, 60, 0.02)
    pose = circle(time)
    pose[:, 2] = wrap_angles(pose, [2])[:, 2]
    step = np.linalg.norm(np.diff(pose[:, :2], axis=0), axis=1)
    odometry = np.column_stack([time[1:], step, np.full(len(step), 0.1 * np.pi * 0.02)])
    events = default_rng(0).uniform(100.5, 159.5, 200)  # not in order of time
    ids = default_rng(1).choice(list(BEACONS), 200)
    ranges = np.linalg.norm(circle(events)[:, :2] - [BEACONS[i] for i in ids], axis=1)
    table = {
        "GT": np.column_stack([time, pose]),
        "DR": odometry,
        "TL": [[i, *position] for i, position in BEACONS.items()],
        "TD": np.column_stack([events, np.full(200, 2.0), ids, ranges]),
    }
    path = tmp_path / "files" / "Plaza1_.mat"
    path.parent.mkdir()
    savemat(path, table)
    return path


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("HERDFILTER_DATA", raising=False)
    monkeypatch.delenv("HERDFILTER_DATA_URL", raising=False)


def test_events_come_in_order_of_time(plaza_file):
    plaza = load_plaza(plaza_file.parent)
    gaps = np.diff(plaza.time, prepend=0.0)
    assert (gaps >= 0).all()
    apart = gaps > 1e-3
    assert_allclose(plaza.dt[apart], gaps[apart], rtol=1e-9)
    assert (plaza.dt > 0).all(), "a filter needs a positive duration for every step"


def distances(plaza):
    """True distances to the beacons that are observed."""
    beacons = plaza.beacons[plaza.observations[:, 0].astype(int)]
    return np.linalg.norm(beacons - plaza.truth[:, :2], axis=1)


def test_truth_is_the_survey_at_the_time_of_each_range_and_observations_name_the_row_of_the_beacon(
    plaza_file,
):
    """Headings too, though the survey wraps three times on the way."""
    plaza = load_plaza(plaza_file.parent)
    expected = circle(100 + plaza.time)
    assert np.abs(plaza.truth[:, 2]).max() <= np.pi
    assert_allclose(wrap_angles(plaza.truth - expected, [2]), 0, atol=CHORD)
    assert_array_equal(plaza.beacon_ids, list(BEACONS))
    assert_array_equal(plaza.beacons, list(BEACONS.values()))
    assert_allclose(distances(plaza), plaza.observations[:, 1], rtol=0, atol=CHORD)


def test_controls_carry_the_model_from_truth_to_truth(plaza_file):
    """With exact odometry, the model's own transition reproduces the path, in one go."""
    plaza = load_plaza(plaza_file.parent)
    model = RangeOnly(plaza.beacons)
    x = circle(np.array([100.0]))
    for control, truth in zip(plaza.controls, plaza.truth, strict=True):
        x = model.transition_mean(x, 1.0, control, 1)
        assert_allclose(wrap_angles(x - truth, [2]), 0, atol=1e-3)


@cases("name", "Plaza1", "Plaza2")
def test_real_ranges_read_seven_percent_too_long(name):
    file = f"{name}_.mat"
    folder = FOLDERS[file]
    if folder is None:
        pytest.skip(f"no {file} in ../shared/data or HERDFILTER_DATA")
    assert checksum(folder / file) == DATA_FILES[file].sha256
    plaza = load_plaza(folder, name)
    distance = distances(plaza)
    assert np.median(plaza.observations[:, 1] / distance) == pytest.approx(1.07, abs=0.002)
    assert np.std(plaza.observations[:, 1] - 1.07 * distance) == pytest.approx(0.55, abs=0.02)


def test_folders_are_the_argument_or_in_the_environment(plaza_file, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA", str(plaza_file.parent))
    whole = load_plaza()
    assert (len(whole), len(load_plaza(max_ranges=13))) == (200, 13)
    monkeypatch.setenv("HERDFILTER_DATA", "elsewhere")
    turned = load_plaza(plaza_file.parent, heading_offset=np.pi)
    assert_allclose(
        np.abs(turned.truth - whole.truth), np.tile([0, 0, np.pi], (200, 1)), atol=1e-12
    )


def test_a_file_of_another_form_is_refused(plaza_file):
    tables = {
        "GT": np.zeros((2, 4)),
        "DR": np.zeros((1, 3)),
        "TL": [[4.0, 0, 0]],
        "TD": [[0.0, 2, 9, 1]],
    }
    for content, message in (
        (b"not a matrix", r"Plaza1_\.mat: expected a MATLAB v5 file"),
        (tables, r"expected ranges to beacons \[4\], got one to another"),
    ):
        plaza_file.write_bytes(content) if isinstance(content, bytes) else savemat(
            plaza_file, content
        )
        with refusal(message):
            load_plaza(plaza_file.parent)
    with refusal(
        r"^data folder: expected Plaza2_\.mat in .*, got Plaza1_\.mat$", FileNotFoundError
    ):
        load_plaza(plaza_file.parent, "Plaza2")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A file server that counts requests."""

    def do_GET(self):
        self.server.requests += 1
        super().do_GET()

    def log_message(self, *args):
        """Keep the tests' output clean."""


@pytest.fixture
def server(plaza_file, tmp_path, monkeypatch):
    """A local server of the made-up file, whose checksum is the expected one, and an empty cache."""
    for file in ("Plaza1_.mat", "Plaza2_.mat"):
        path = plaza_file.with_name(file)
        path.write_bytes(plaza_file.read_bytes())
        known = dataclasses.replace(
            DATA_FILES[file], sha256=hashlib.sha256(path.read_bytes()).hexdigest()
        )
        monkeypatch.setitem(DATA_FILES, file, known)
    monkeypatch.setattr(
        "herdfilter.study.data.user_cache", lambda: tmp_path / "cache" / "herdfilter"
    )
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: Handler(*args, directory=str(plaza_file.parent))
    ) as httpd:
        httpd.requests = 0
        httpd.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


@pytest.fixture
def cached(tmp_path):
    return tmp_path / "cache" / "herdfilter" / "Plaza1_.mat"


def test_a_download_happens_once_and_only_what_is_whole_is_kept(server, plaza_file, cached):
    whole = plaza_file.read_bytes()
    for broken in (whole[:20_000], whole[:-1] + b"?"):
        plaza_file.write_bytes(broken)
        with refusal(r"Plaza1_\.mat: no download \(its checksum differs\)"):
            load_plaza(base_url=server.url)
    plaza_file.write_bytes(whole)
    for url in (server.url + "/nothing", "http://127.0.0.1:9", "gopher://127.0.0.1"):
        with refusal(r"Plaza1_\.mat: no download", (OSError, ValueError)):
            load_plaza(base_url=url)
    assert not cached.exists()
    before = server.requests
    for url in (server.url, server.url + "/"):
        assert_array_equal(
            load_plaza(base_url=url).observations, load_plaza(plaza_file.parent).observations
        )
    assert server.requests == before + 1
    cached.write_bytes(b"damaged")
    assert len(load_plaza(base_url=server.url)) == 200
    assert server.requests == before + 2


def test_command_downloads_once_to_where_loaders_look_or_copies_from_a_folder(
    server, plaza_file, tmp_path, cached, monkeypatch
):
    monkeypatch.setenv("HERDFILTER_DATA_URL", server.url)
    completed("data", "fetch", "plaza", "--data", plaza_file.parent, "--to", tmp_path / "new")
    assert (len(load_plaza(tmp_path / "new")), server.requests) == (200, 0)
    for _ in range(2):
        done = command("data", "fetch", "plaza")
        lines = [
            line.split()[0]
            for line in done.output.splitlines()
            if not line.startswith("Downloading")
        ]
        assert lines == [str(cached), str(cached.with_name("Plaza2_.mat"))]
    assert (len(load_plaza()), server.requests) == (200, 2)
    assert all(name in command("data", "list").stdout for name in DATA_FILES)
    monkeypatch.setenv("HERDFILTER_DATA_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("herdfilter.study.data.user_cache", lambda: tmp_path / "none")
    told = refused("data", "fetch", "plaza").splitlines()[-1]
    assert "Plaza1_.mat: no download (ConnectionError); name a folder that has it" in told


HEADER = "time,timestamp,latitude,longitude,altitude (m),speed\n"


@pytest.fixture
def uav_file(tmp_path):
    """A flight to the north at 0.001 degrees a second, climbing 1 m/s."""
    path = tmp_path / "UAV_Rot.csv"
    rows = [f"t,{38975 + k}.0,{50 + 0.001 * k},-30.0,{100 + k},0.0\n" for k in range(20)]
    path.write_text(HEADER + "".join(rows))
    return path


def test_track_starts_one_second_after_the_first_fix(uav_file):
    uav = load_uav(uav_file.parent)
    assert_array_equal(uav.time, np.arange(1.0, 20.0))
    assert_array_equal(uav.origin, [50.0, -30.0, 100.0])
    # A degree of latitude at 50 degrees is 111,229 m long on the ellipsoid (Snyder 1987, "Map projections").
    assert_allclose(uav.truth[:5, 1], 111.23 * np.arange(1, 6), rtol=2e-4)
    assert_allclose(uav.truth[:, 3:], np.tile([0.0, 111.23, 1.0], (19, 1)), atol=0.35)
    assert_allclose(uav.truth[:, 0], 0, atol=1e-6)
    assert len(load_uav(uav_file.parent, max_steps=7)) == 7


def test_local_positions_keep_distances():
    """Fixes straight above each other, and one to the east: a circle of latitude of radius N cos(latitude)."""
    origin = np.array([60.0, 10.0, 0.0])
    fixes = np.array([[60.0, 10.0, 250.0], [60.0, 10.001, 0.0]])
    up, east = local_position(fixes, origin)
    assert_allclose(up, [0, 0, 250], atol=1e-6)
    radius = 6_378_137.0 / np.sqrt(1 - 0.00669437999014 * 0.75) * 0.5
    assert east[0] == pytest.approx(radius * np.radians(0.001), rel=1e-6)
    assert np.abs(east[1:]).max() < 1e-3


def test_radar_measurements_differ_between_runs_and_the_track_does_not(uav_file):
    scenario = load_scenario("uav")
    scenario = dataclasses.replace(scenario, data={"type": scenario.data["type"]})
    data = load_data(scenario, uav_file.parent)
    model = scenario.build_model()
    first, again, other = (record(scenario, model, data, default_rng(seed)) for seed in (0, 0, 1))
    assert first.observations.shape == (19, 3)
    assert_array_equal(first.observations, again.observations)
    assert_array_equal(first.truth, other.truth)
    assert (first.observations != other.observations).all()


def test_a_time_step_may_be_an_array_of_one_number():
    values = np.zeros((5, 1))
    for dt in (0.5, np.array(0.5), np.full(5, 0.5)):
        assert Recording(values, values, dt).first(2).times == pytest.approx([0.5, 1.0])
