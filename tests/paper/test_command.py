import pandas as pd
import pytest
from helpers import command, refused

from herdfilter import paper

pytestmark = pytest.mark.usefixtures("coarse_pictures")


@pytest.mark.parametrize("name", paper.FIGURES)
def test_each_figure_ends_in_a_table_and_three_files(name, tmp_path):
    out = tmp_path / "new" / "folder"
    result = command("paper", name, "--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert paper.FIGURES[name].title in result.stdout
    assert "paper" in result.stdout.replace(paper.FIGURES[name].title, "").replace(str(out), "")
    assert f"Wrote {name}.png, {name}.svg, {name}.csv into {out}" in result.stdout
    assert {path.name for path in out.iterdir()} == {f"{name}.{ending}" for ending in ("png", "svg", "csv")}
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / f"{name}.svg").read_text(encoding="utf-8")
    assert len(pd.read_csv(out / f"{name}.csv")) > 20


def test_figures_come_in_the_papers_order_and_all_unless_named():
    everything = ["fig1", "fig2", "fig3", "fig4", "fig5"]
    assert paper.figure_names(()) == paper.figure_names(("all",)) == everything
    assert paper.figure_names(("fig2", "all")) == everything
    assert paper.figure_names(("fig4", "fig1", "fig4")) == ["fig1", "fig4"]


@pytest.fixture
def no_work(monkeypatch):
    def never(*args):
        raise AssertionError("computed in vain")

    monkeypatch.setattr(paper, "reproduce", never)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig6"], "figure: unknown 'fig6'; did you mean 'fig"),
        (["fig1", "histogram"], "figure: unknown 'histogram'; expected one of fig1, fig2, fig3, fig4, fig5, all"),
        (["fig1", "--seed", "-1"], "seed: expected an integer of at least 0, got -1"),
        (["fig1", "--seed", "x"], "'x' is not a valid integer"),
        (["fig1", "--fast"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_before_any_work(arguments, message, no_work, tmp_path):
    out = tmp_path / "out"
    assert message in refused("paper", *arguments, "--out", out)
    assert not out.exists()


def test_a_folder_that_takes_no_files_is_found_before_the_work(no_work, tmp_path):
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        assert "out: cannot write into" in refused("paper", "fig1", "--out", tmp_path / out)


def test_reproduce_names_the_bad_argument():
    with pytest.raises(ValueError, match="figure: unknown 'all'"):
        paper.reproduce("all")
    with pytest.raises(ValueError, match="seed: expected an integer of at least 0, got -1"):
        paper.reproduce("fig1", seed=-1)


def test_deterministic_figures_do_not_depend_on_the_seed():
    one, two = (paper.reproduce("fig2", seed, quick=True).numbers for seed in (0, 7))
    pd.testing.assert_frame_equal(one, two)
