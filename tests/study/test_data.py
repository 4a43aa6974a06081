"""The real data sets: on the real files where they are at hand, and on made-up ones of the same form."""

import dataclasses
import hashlib
import http.server
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from herdfilter.study.data.plaza import load_plaza
from herdfilter.study.data.uav import load_uav, local_position
from scipy.io import savemat

from herdfilter.cli import main
from herdfilter.models import RangeOnly
from herdfilter.models.contract import wrap_angles
from herdfilter.study.data import DATA_FILES, fetch
from herdfilter.study.recording import load_data, record
from herdfilter.study.scenario import load_scenario

PLACES = [Path(__file__).parents[2].parent / "shared" / "data", Path(os.environ.get("HERDFILTER_DATA", "-"))]
BEACONS = {7: (0.0, 0.0), 3: (30.0, 0.0), 5: (0.0, 40.0)}
CHORD = 1.01 * 10 * (1 - np.cos(0.1 * np.pi * 0.02 / 2))
"""Most that a straight line between two survey points can leave the circle below, in metres."""


def real(name):
    """Parameter for a real data set, skipped where no folder holds it."""
    folder = next((place for place in PLACES if (place / f"{name}_.mat").is_file()), None)
    reason = f"no {name}_.mat in ../shared/data or HERDFILTER_DATA"
    return pytest.param(folder, name, id=name, marks=pytest.mark.skipif(folder is None, reason=reason))


REAL = pytest.mark.parametrize(("folder", "name"), [real("Plaza1"), real("Plaza2")])


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
    events = np.random.default_rng(0).uniform(100.5, 159.5, 200)  # not in order of time
    ids = np.random.default_rng(1).choice(list(BEACONS), 200)
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
    assert len(plaza) == 200
    gaps = np.diff(plaza.time, prepend=0.0)
    assert (gaps >= 0).all()
    apart = gaps > 1e-3
    np.testing.assert_allclose(plaza.dt[apart], gaps[apart], rtol=1e-9)
    assert (plaza.dt > 0).all(), "a filter needs a positive duration for every step"


def test_truth_is_the_survey_at_the_time_of_each_range(plaza_file):
    """Headings too, though the survey wraps three times on the way."""
    plaza = load_plaza(plaza_file.parent)
    expected = circle(100 + plaza.time)
    assert np.abs(plaza.truth[:, 2]).max() <= np.pi
    np.testing.assert_allclose(wrap_angles(plaza.truth - expected, [2]), 0, atol=CHORD)


def test_observations_name_the_row_of_the_beacon(plaza_file):
    plaza = load_plaza(plaza_file.parent)
    np.testing.assert_array_equal(plaza.beacon_ids, list(BEACONS))
    np.testing.assert_array_equal(plaza.beacons, list(BEACONS.values()))
    to_beacon = plaza.beacons[plaza.observations[:, 0].astype(int)] - plaza.truth[:, :2]
    np.testing.assert_allclose(np.linalg.norm(to_beacon, axis=1), plaza.observations[:, 1], rtol=0, atol=CHORD)


def test_controls_carry_the_model_from_truth_to_truth(plaza_file):
    """With exact odometry, the model's own transition reproduces the path, event by event and in one go."""
    plaza = load_plaza(plaza_file.parent)
    model = RangeOnly(plaza.beacons)
    x = circle(np.array([100.0]))
    for control, truth in zip(plaza.controls, plaza.truth, strict=True):
        x = model.transition_mean(x, 1.0, control, 1)
        np.testing.assert_allclose(wrap_angles(x - truth, [2]), 0, atol=1e-3)


def test_only_the_first_ranges_are_kept(plaza_file):
    plaza, whole = load_plaza(plaza_file.parent, max_ranges=13), load_plaza(plaza_file.parent)
    assert len(plaza) == 13
    for field in ("time", "dt", "controls", "observations", "truth"):
        # arrays of other lengths may round otherwise: places below 100, differences of which are entries
        np.testing.assert_allclose(getattr(plaza, field), getattr(whole, field)[:13], rtol=0, atol=1e-13)


def test_heading_can_be_turned(plaza_file):
    turned = load_plaza(plaza_file.parent, heading_offset=np.pi).truth - load_plaza(plaza_file.parent).truth
    np.testing.assert_allclose(np.abs(turned), np.tile([0, 0, np.pi], (200, 1)), atol=1e-12)


@REAL
def test_real_ranges_read_seven_percent_too_long(folder, name):
    plaza = load_plaza(folder, name)
    to_beacon = plaza.beacons[plaza.observations[:, 0].astype(int)] - plaza.truth[:, :2]
    distance = np.linalg.norm(to_beacon, axis=1)
    assert np.median(plaza.observations[:, 1] / distance) == pytest.approx(1.07, abs=0.002)
    assert np.std(plaza.observations[:, 1] - 1.07 * distance) == pytest.approx(0.55, abs=0.02)


@REAL
def test_real_robot_drives_where_it_looks(folder, name):
    plaza = load_plaza(folder, name)
    travelled = np.diff(plaza.truth[:, :2], axis=0)
    distance = np.linalg.norm(travelled, axis=1)
    direction = np.column_stack([np.cos(plaza.truth[1:, 2]), np.sin(plaza.truth[1:, 2])])
    along = (travelled * direction).sum(axis=1)[distance > 0.2] / distance[distance > 0.2]
    assert np.median(along) > 0.99


@REAL
def test_real_odometry_is_as_good_as_the_model_says(folder, name):
    """Drift from one range to the next, over the root of the time, does not exceed the model's noise."""
    plaza = load_plaza(folder, name)
    model = RangeOnly(plaza.beacons)
    moved = np.vstack(
        [
            model.transition_mean(pose[None], 1.0, control, 1)
            for pose, control in zip(plaza.truth[:-1], plaza.controls[1:], strict=True)
        ]
    )
    timed = plaza.dt[1:] > 0
    drift = wrap_angles(moved - plaza.truth[1:], [2])[timed] / np.sqrt(plaza.dt[1:][timed, None])
    spread = np.sqrt((drift**2).mean(axis=0))
    assert (spread < [model.position_noise, model.position_noise, model.heading_noise]).all()
    assert (spread[:2] > model.position_noise / 10).all()


@REAL
def test_real_file_is_the_published_one(folder, name):
    digest = hashlib.sha256((folder / f"{name}_.mat").read_bytes()).hexdigest()
    assert digest == DATA_FILES[f"{name}_.mat"].sha256


def test_environment_names_the_folder(plaza_file, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA", str(plaza_file.parent))
    assert len(load_plaza(max_ranges=3)) == 3


def test_argument_comes_before_the_environment(plaza_file, monkeypatch, tmp_path):
    monkeypatch.setenv("HERDFILTER_DATA", str(tmp_path / "elsewhere"))
    assert len(load_plaza(plaza_file.parent)) == 200


def test_folder_without_the_file(tmp_path):
    (tmp_path / "other.csv").touch()
    with pytest.raises(FileNotFoundError) as caught:
        load_plaza(tmp_path, "Plaza2")
    assert str(caught.value) == f"data folder: expected Plaza2_.mat in {tmp_path}, got other.csv"


def test_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a folder with Plaza1_\.mat, got .*nowhere"):
        load_plaza(tmp_path / "nowhere")


def test_file_that_is_not_matlab(tmp_path):
    (tmp_path / "Plaza1_.mat").write_text("not a matrix")
    with pytest.raises(ValueError, match=r"Plaza1_\.mat: expected a MATLAB v5 file"):
        load_plaza(tmp_path)


def test_file_cut_short(plaza_file):
    plaza_file.write_bytes(plaza_file.read_bytes()[:20_000])
    with pytest.raises(ValueError, match=r"Plaza1_\.mat: expected"):
        load_plaza(plaza_file.parent)


def test_file_without_a_table(tmp_path):
    savemat(tmp_path / "Plaza1_.mat", {"GT": np.zeros((3, 4)), "DR": np.zeros((2, 2))})
    with pytest.raises(ValueError, match=r"expected a table DR with 3 columns, got shape \(2, 2\)"):
        load_plaza(tmp_path)


def test_range_to_an_unknown_beacon(tmp_path):
    tables = {"GT": np.zeros((2, 4)), "DR": np.zeros((1, 3)), "TL": [[4.0, 0, 0]], "TD": [[0.0, 2, 9, 1]]}
    savemat(tmp_path / "Plaza1_.mat", tables)
    with pytest.raises(ValueError, match=r"expected ranges to beacons \[4\], got one to another"):
        load_plaza(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Plaza3"}, "name: unknown 'Plaza3'; did you mean 'Plaza"),
        ({"max_ranges": 0}, "max_ranges: expected an integer of at least 1, got 0"),
        ({"max_ranges": 1.5}, "max_ranges: expected an integer of at least 1, got 1.5"),
    ],
)
def test_bad_arguments_are_named(plaza_file, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_plaza(plaza_file.parent, **arguments)


class Handler(http.server.SimpleHTTPRequestHandler):
    """A file server that counts requests; a path under /short/ promises more bytes than it sends."""

    def do_GET(self):
        self.server.requests += 1
        if not self.path.startswith("/short/"):
            return super().do_GET()
        body = (Path(self.directory) / self.path.rsplit("/", 1)[-1]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])

    def log_message(self, *args):
        """Keep the tests' output clean."""


@pytest.fixture
def server(plaza_file, tmp_path, monkeypatch):
    """A local server of the made-up file, whose checksum is the expected one, and an empty cache."""
    for file in ("Plaza1_.mat", "Plaza2_.mat"):
        path = plaza_file.with_name(file)
        path.write_bytes(plaza_file.read_bytes())
        known = dataclasses.replace(DATA_FILES[file], sha256=hashlib.sha256(path.read_bytes()).hexdigest())
        monkeypatch.setitem(DATA_FILES, file, known)
    monkeypatch.setattr("herdfilter.study.data.user_cache", lambda: tmp_path / "cache" / "herdfilter")
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


def test_download_happens_once(server, plaza_file):
    first, second = load_plaza(base_url=server.url), load_plaza(base_url=server.url + "/")
    assert server.requests == 1
    np.testing.assert_array_equal(first.observations, load_plaza(plaza_file.parent).observations)
    np.testing.assert_array_equal(first.observations, second.observations)


def test_environment_names_the_server(server, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA_URL", server.url)
    assert len(load_plaza()) == 200


def test_folder_spares_the_download(server, plaza_file):
    load_plaza(plaza_file.parent, base_url=server.url)
    assert server.requests == 0


def test_download_with_a_wrong_checksum_is_not_kept(server, plaza_file, cached):
    plaza_file.write_bytes(plaza_file.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match=r"Plaza1_\.mat: no download \(its checksum differs\)"):
        load_plaza(base_url=server.url)
    assert not cached.exists()


def test_truncated_file_is_not_kept(server, plaza_file, cached):
    plaza_file.write_bytes(plaza_file.read_bytes()[:20_000])
    with pytest.raises(ValueError, match=r"no download \(its checksum differs\)"):
        load_plaza(base_url=server.url)
    assert not cached.exists()


def test_broken_transfer_is_an_error_and_can_be_repeated(server, cached):
    with pytest.raises((OSError, ValueError), match="no download"):
        load_plaza(base_url=server.url + "/short")
    assert not cached.exists()
    assert len(load_plaza(base_url=server.url)) == 200


def test_damaged_copy_in_the_cache_is_replaced(server, cached):
    load_plaza(base_url=server.url)
    cached.write_bytes(b"damaged")
    assert len(load_plaza(base_url=server.url)) == 200
    assert server.requests == 2


def test_missing_file_on_the_server(server):
    with pytest.raises(OSError, match=r"Plaza1_\.mat: no download \(status 404\)"):
        load_plaza(base_url=server.url + "/nothing")


def test_errors_of_a_download_take_one_line_of_a_hundred_characters(server):
    room = 100 - len("Error: ") - max(map(len, DATA_FILES)) + len("Plaza1_.mat")
    for url in (server.url + "/nothing", "http://127.0.0.1:9", "gopher://127.0.0.1"):
        with pytest.raises((OSError, ValueError)) as caught:
            load_plaza(base_url=url)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) <= room


def run(*arguments):
    """Exit code and output, standard error included, of ``herdfilter data ...``."""
    result = CliRunner().invoke(main, ["data", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture
def served(server, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA_URL", server.url)
    return server


def test_command_downloads_once_into_the_cache_where_loaders_look(served, cached):
    code, output = run("fetch", "plaza")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines() if not line.startswith("Downloading")] == [
        str(cached),
        str(cached.with_name("Plaza2_.mat")),
    ]
    assert served.requests == 2
    assert run("fetch", "plaza")[0] == 0
    assert len(load_plaza()) == 200
    assert served.requests == 2


def test_command_downloads_into_a_folder(served, tmp_path, cached):
    assert run("fetch", "plaza", "--to", tmp_path / "new" / "folder")[0] == 0
    assert len(load_plaza(tmp_path / "new" / "folder")) == 200
    assert not cached.exists()


def test_environment_names_the_folder_of_the_command(served, tmp_path, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA", str(tmp_path / "mine"))
    assert run("fetch", "plaza")[0] == 0
    assert len(load_plaza()) == 200
    assert served.requests == 2


def test_command_copies_from_a_folder_without_a_network(served, plaza_file, tmp_path):
    assert run("fetch", "plaza", "--data", plaza_file.parent, "--to", tmp_path / "new")[0] == 0
    assert served.requests == 0
    assert len(load_plaza(tmp_path / "new")) == 200
    plaza_file.write_bytes(b"other")
    code, output = run("fetch", "plaza", "--data", plaza_file.parent, "--to", tmp_path / "newer")
    assert code == 2
    assert "Plaza1_.mat: expected sha256" in output
    assert not (tmp_path / "newer" / "Plaza1_.mat").exists()
    code, output = run("fetch", "uav", "--data", plaza_file.parent)
    assert code == 2
    assert "data folder: expected UAV_Rot.csv" in output


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_command_refuses_what_is_not_the_published_file(served, plaza_file, cached, damage):
    whole = plaza_file.read_bytes()
    plaza_file.write_bytes(whole[:20_000] if damage == "truncated" else whole[:-1] + b"?")
    code, output = run("fetch", "plaza")
    assert code == 2
    assert "no download (its checksum differs)" in output
    assert not list(cached.parent.iterdir())


def test_command_says_that_a_transfer_broke(served, monkeypatch, cached):
    monkeypatch.setenv("HERDFILTER_DATA_URL", served.url + "/short")
    code, output = run("fetch", "plaza")
    assert code == 2
    assert "no download" in output
    assert not list(cached.parent.iterdir())


def test_command_with_a_server_that_is_down(served, monkeypatch):
    monkeypatch.setenv("HERDFILTER_DATA_URL", "http://127.0.0.1:9")
    code, output = run("fetch", "plaza")
    assert code == 2
    assert "Plaza1_.mat: no download (ConnectionError); name a folder that has it" in output
    assert output.count("\n") <= 2


def test_command_with_a_cache_that_cannot_be_written(served, tmp_path):
    (tmp_path / "cache").write_text("a file where the cache's folder should be")
    code, output = run("fetch", "plaza")
    assert code == 2
    assert f"data folder: cannot write into {tmp_path / 'cache' / 'herdfilter'}" in output
    assert served.requests == 0


def test_command_names_the_nearest_data_set():
    code, output = run("fetch", "plazza")
    assert code == 2
    assert "did you mean 'plaza'" in output


def test_command_lists_every_file():
    code, output = run("list")
    assert code == 0
    assert all(name in output for name in DATA_FILES)


def test_unknown_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="file: unknown 'Plaza1'; did you mean 'Plaza1_"):
        fetch("Plaza1", tmp_path)


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
    np.testing.assert_array_equal(uav.time, np.arange(1.0, 20.0))
    np.testing.assert_array_equal(uav.origin, [50.0, -30.0, 100.0])
    # A degree of latitude at 50 degrees is 111,229 m long on the ellipsoid (Snyder 1987, "Map projections").
    np.testing.assert_allclose(uav.truth[:5, 1], 111.23 * np.arange(1, 6), rtol=2e-4)
    np.testing.assert_allclose(uav.truth[:, 3:], np.tile([0.0, 111.23, 1.0], (19, 1)), atol=0.35)
    np.testing.assert_allclose(uav.truth[:, 0], 0, atol=1e-6)
    assert len(load_uav(uav_file.parent, max_steps=7)) == 7


def test_local_positions_keep_distances():
    """Fixes straight above each other, and one to the east: a circle of latitude of radius N cos(latitude)."""
    origin = np.array([60.0, 10.0, 0.0])
    fixes = np.array([[60.0, 10.0, 250.0], [60.0, 10.001, 0.0]])
    up, east = local_position(fixes, origin)
    np.testing.assert_allclose(up, [0, 0, 250], atol=1e-6)
    radius = 6_378_137.0 / np.sqrt(1 - 0.00669437999014 * 0.75) * 0.5
    assert east[0] == pytest.approx(radius * np.radians(0.001), rel=1e-6)
    assert np.abs(east[1:]).max() < 1e-3


def test_radar_measurements_differ_between_runs_and_the_track_does_not(uav_file):
    scenario = load_scenario("uav")
    scenario = dataclasses.replace(scenario, data={"type": scenario.data["type"]})
    data, model = load_data(scenario, uav_file.parent), scenario.build_model()
    first, again, other = (record(scenario, model, data, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first.observations.shape == (19, 3)
    np.testing.assert_array_equal(first.observations, again.observations)
    np.testing.assert_array_equal(first.truth, other.truth)
    assert (first.observations != other.observations).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "expected a table with the columns timestamp, latitude"),
        (HEADER, "expected a fix every second, got 0 rows"),
        (HEADER + "t,1,50,-30,100,0\nt,3,50,-30,100,0\n", "expected a fix every second"),
        (HEADER + "t,1,50,-30,100,0\nt,2,x,-30,100,0\n", "expected a table with the columns"),
    ],
)
def test_a_track_of_another_form_is_refused(tmp_path, text, message):
    (tmp_path / "UAV_Rot.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_uav(tmp_path)


def test_a_track_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected UAV_Rot\.csv in .*, got an empty folder"):
        load_uav(tmp_path)


def test_real_track_is_as_fast_as_its_receiver_says():
    """Positions and the receiver's own speeds agree; columns Vx and Vy of the file."""
    folder = next((place for place in PLACES if (place / "UAV_Rot.csv").is_file()), None)
    if folder is None:
        pytest.skip("no UAV_Rot.csv in ../shared/data or HERDFILTER_DATA")
    truth = load_uav(folder).truth
    measured = np.genfromtxt(folder / "UAV_Rot.csv", delimiter=",", skip_header=2, usecols=(9, 10))
    for axis in range(2):
        slope, offset = np.polyfit(truth[:, 3 + axis], measured[:, axis], 1)
        assert slope == pytest.approx(1.0, abs=0.02)
        assert abs(offset) < 0.05
