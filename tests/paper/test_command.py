import pandas as pd
import pytest
from helpers import cases, command, refused

from herdfilter import paper

pytestmark = pytest.mark.usefixtures("coarse_pictures")


@cases("name", "fig2", *(pytest.param(f"fig{k}", marks=pytest.mark.slow) for k in (1, 3, 4, 5)))
def test_each_figure_ends_in_a_table_and_three_files(name, tmp_path):
    out = tmp_path / "new" / "folder"
    result = command("paper", name, "--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    title = f"Fig. {name[-1]}: "
    assert title in result.stdout
    assert "paper" in result.stdout.partition(title)[2].partition("\n")[2].replace(str(out), "")
    assert f"Wrote {name}.png, {name}.svg, {name}.csv into {out}" in result.stdout
    assert {path.name for path in out.iterdir()} == {
        f"{name}.{ending}" for ending in ("png", "svg", "csv")
    }
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


def test_bad_input_is_one_line_and_exit_code_2_before_any_work(no_work, tmp_path):
    assert "figure: unknown 'fig6'; did you mean 'fig" in refused(
        "paper", "fig6", "--out", tmp_path / "out"
    )
    assert "seed: expected an integer of at least 0, got -1" in refused(
        "paper", "fig1", "--seed", "-1", "--out", tmp_path / "out"
    )
    (tmp_path / "file").touch()
    assert "out: cannot write into" in refused(
        "paper", "fig1", "--out", tmp_path / "file" / "below"
    )
    assert not (tmp_path / "out").exists()
