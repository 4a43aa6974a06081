"""What there is: lists of scenarios and filters, and names that the shell completes."""

from click.shell_completion import ShellComplete
from helpers import cases, command, completed

from herdfilter.catalogue.specifications import catalogue
from herdfilter.cli import main
from herdfilter.study.scenario import scenario_files


def test_scenarios_lists_all_and_tells_the_source_of_one():
    listed = completed("scenarios")
    lines = listed.stdout.splitlines()
    for name in scenario_files():
        assert any(line.startswith(f"{name} ") for line in lines)
    assert max(map(len, lines)) <= 80
    told = command("scenarios", "ungm").stdout
    assert "Gordon, Salmond and Smith (1993)" in " ".join(told.split())


def test_filters_are_listed_in_groups_with_the_default_first():
    lines = command("filters").stdout.splitlines()
    assert lines.index("Begin here") + 1 == next(
        k for k, line in enumerate(lines) if line.startswith("  auto ")
    )
    for name in catalogue():
        assert any(line.startswith(f"  {name} ") for line in lines)
    assert (
        "MixtureResampling(KernelDensityFit(), JointHerding(block=64))"
        in command("filters", "mixture-kh").stdout
    )


@cases(
    "words expected",
    (["compare", "ung"], ["ungm"]),
    (["compare", "ungm", "--filters", "auto,herded-r"], ["auto,herded-random"]),
)
def test_the_shell_completes_names(words, expected):
    completion = ShellComplete(main, {}, "herdfilter", "_HERDFILTER_COMPLETE")
    found = completion.get_completions(words[:-1], words[-1])
    assert [one.value for one in found if one.type == "plain"] == expected
