"""Change the program in one place at a time and see whether the tests notice.

Run as ``make test-mutants SEED=0 COUNT=500``. A seed draws changes (mutants), equally many in each folder: a sign, a
comparison, a constant, a condition. Every test is run once under coverage to learn which lines it executes; then a copy of
the package is changed, and the tests that execute the changed line run on it in a process of their own, until one fails.
Of a line that coverage does not see, as in a compiled function, the tests of the folder run, and all is compiled anew.

mutmut was considered: it leaves decorated functions alone, as compiled functions, properties and cached ones are.

Printed are the mutants caught in each folder and those that survived; all stand in ``results/mutants.csv``. Beside the
mutants runs the unchanged program, as a control, which no test may fail.
"""

import argparse
import ast
import copy
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "herdfilter"
STATISTICS = ("bounds", "families", "metrics", "statistics", "summary")
FOLDERS = {
    **{
        name: sorted((PACKAGE / name).rglob("*.py"))
        for name in ("filters", "association", "tracking", "fitting")
    },
    "statistics": [PACKAGE / "study" / f"{name}.py" for name in STATISTICS],
}
TESTS = (
    *("filters", "association", "tracking", "fitting", "smoothing"),
    *(f"study/test_{name}.py" for name in (*STATISTICS, "columns", "compare", "run_record")),
)
VERDICTS = {0: "survived", 1: "caught", 2: "unusable"}
"""Exit code of pytest -> verdict; "ended" if time was over, or the process died."""

FLAGS = shlex.split(
    "-q --assert=plain -m 'not slow' -p no:cacheprovider -W ignore::DeprecationWarning"
)
CONTROLS = 3  # for each folder

OPERATORS = (
    "Add-Sub Sub-Add Mult-Div Div-Mult Pow-Mult FloorDiv-Mult Mod-Mult BitAnd-BitOr BitOr-BitAnd And-Or Or-And "
    "Lt-Gt LtE-GtE Gt-Lt GtE-LtE Eq-NotEq NotEq-Eq Is-IsNot IsNot-Is In-NotIn NotIn-In"
)
NEIGHBOURS = " Lt-LtE LtE-Lt Gt-GtE GtE-Gt"  # of whole numbers alone: others are equal by chance
NAMES = "min-max max-min minimum-maximum maximum-minimum argmin-argmax argmax-argmin any-all all-any floor-ceil ceil-floor"
# calls that only say something
SPOKEN = {"warn", "warning", "info", "debug", "cast", "TypeVar", "plural"}
UNREAD = {"strict", "stacklevel"}  # keywords that only guard


def others(pairs, name):
    """What stands beside a name in pairs."""
    return [pair.split("-")[1] for pair in pairs.split() if pair.split("-")[0] == name]


Mutant = namedtuple("Mutant", "folder path place choice")
"""One change: the file, the place of the expression in the tree, and the number of the alternative to it.

The alternative -1 is the unchanged program.
"""


def expressions(node):
    """Walk through what is executed and not only said: no annotations, decorators, docstrings or messages."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            match child:
                case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                    continue
                case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if (
                    called in SPOKEN
                ):
                    continue
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    continue
                case ast.keyword(arg=keyword) if keyword in UNREAD:
                    continue
                case ast.AST():
                    yield from expressions(child)


def counts(node):
    """Whether an expression is a whole number, as far as one can see."""
    match node:
        case ast.Constant(value=int(value)):
            return value != 0
        case ast.BinOp(left=left, right=right):
            return counts(left) and counts(right)
        case ast.Call(func=ast.Name(id="len")) | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return False


def alternatives(node):
    """Fields of a node that each change it."""
    match node:
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value) | float(value)):
            yield {"value": value + 1}
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            yield from (
                {"op": getattr(ast, other)()} for other in others(OPERATORS, type(op).__name__)
            )
        case ast.Compare(ops=ops):
            whole = any(counts(side) for side in (node.left, *node.comparators))
            for i, op in enumerate(ops):
                for other in others(OPERATORS + whole * NEIGHBOURS, type(op).__name__):
                    yield {"ops": [*ops[:i], getattr(ast, other)(), *ops[i + 1 :]]}
        case ast.UnaryOp(op=ast.USub()):
            yield {"op": ast.UAdd()}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield {"operand": ast.UnaryOp(op=ast.Not(), operand=operand)}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield {"test": ast.UnaryOp(op=ast.Not(), operand=test)}
        case ast.Name(id=name):
            yield from ({"id": other} for other in others(NAMES, name))
        case ast.Attribute(value=of, attr=name) if ast.unparse(of) != "self":
            yield from ({"attr": other} for other in others(NAMES, name))


def changed(mutant):
    """Return the tree and the changed tree of the file, and the node in either."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    other = copy.deepcopy(tree)
    old, new = (list(expressions(t))[mutant.place] for t in (tree, other))
    if mutant.choice >= 0:
        vars(new).update(list(alternatives(new))[mutant.choice])
    return tree, ast.fix_missing_locations(other), old, new


def draw(seed, count):
    """Draw mutants, equally many from each folder, and controls, in random order: the first are a sample, too."""
    rng = random.Random(seed)
    drawn = []
    for folder, files in FOLDERS.items():
        sites = [
            (path, place, len(list(alternatives(node))))
            for path in files
            for place, node in enumerate(expressions(ast.parse(path.read_text(encoding="utf-8"))))
        ]
        sites = [site for site in sites if site[2]]
        taken = rng.sample(sites, min(len(sites), count // len(FOLDERS)))
        drawn += [Mutant(folder, path, place, rng.randrange(n)) for path, place, n in taken]
        drawn += [Mutant(folder, path, place, -1) for path, place, _ in rng.sample(sites, CONTROLS)]
    return rng.sample(drawn, len(drawn))


class Coverage:
    """Which tests execute a line, and how long each takes: learned by running all of them once."""

    def __init__(self, tests):
        self.seconds = defaultdict(float)
        self.failed = set()
        flags = [f"--cov={PACKAGE.name}", "--cov-context=test", "--cov-report="]
        pytest.main([*FLAGS, *flags, *tests], plugins=[self])
        for test in self.failed:
            del self.seconds[test]
        self.data = coverage.CoverageData()
        self.data.read()
        print(f"{len(self.seconds)} tests pass without a change; failed: {self.failed or 'none'}")

    def pytest_runtest_logreport(self, report):
        """Note the time of a test, and whether it failed."""
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def tests_of(self, mutant, longest):
        """Return the tests to run, near and short ones first, and whether the changed line is executed unseen."""
        node = changed(mutant)[2]
        lines = self.data.contexts_by_lineno(str(mutant.path))
        contexts = {
            c for line in range(node.lineno, node.end_lineno + 1) for c in lines.get(line, ())
        }
        tests = {context.rpartition("|")[0] for context in contexts} & set(self.seconds)
        folder = mutant.path.relative_to(PACKAGE).parts[0]
        unseen = not tests
        if unseen:
            tests = {test for test in self.seconds if test.startswith(f"tests/{folder}/")}
        stem = mutant.path.stem.strip("_")

        def distance(test):
            file = test.partition("::")[0]
            return stem not in file, folder not in file, self.seconds[test]

        chosen = []
        for test in sorted(tests, key=distance):
            longest -= self.seconds[test]
            if longest > 0 or not chosen:
                chosen.append(test)
        return chosen, unseen


def attempt(mutant, tests, unseen, seconds):
    """Run tests on a changed copy of the package; return the verdict, and the test that failed."""
    with tempfile.TemporaryDirectory() as folder:
        # Compiled code comes along, and its files keep their dates, so that numba uses it.
        shutil.copytree(PACKAGE, Path(folder) / PACKAGE.name)
        (Path(folder) / mutant.path.relative_to(ROOT)).write_text(ast.unparse(changed(mutant)[1]))
        environment = {**os.environ, "PYTHONPATH": folder}
        if unseen:  # numba notices no change of a function that others call
            environment["NUMBA_CACHE_DIR"] = folder
        command = [sys.executable, "-P", "-m", "pytest", "-x", *FLAGS, "-rfE", "--tb=no", *tests]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=environment,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "ended", ""
    caught_by = done.stdout.partition("FAILED ")[2].partition(" ")[0].strip()
    return VERDICTS.get(done.returncode, "ended"), caught_by


def described(mutant):
    """Return the place, the old and the new expression, and the line they stand in."""
    _, _, old, new = changed(mutant)
    before, after = (
        ast.unparse(n.test if isinstance(n, ast.If | ast.While) else n) for n in (old, new)
    )
    line = mutant.path.read_text(encoding="utf-8").splitlines()[old.lineno - 1].strip()
    return f"{mutant.path.relative_to(ROOT)}:{old.lineno}", before, after, line


def main():
    """Learn what the tests execute, try the mutants, several at a time, and print what comes of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument(
        "--longest", type=float, default=20, help="seconds of tests for a mutant, nearest first"
    )
    parser.add_argument("--out", default="results")
    parser.add_argument(
        "--tests",
        nargs="*",
        default=[f"tests/{name}" for name in TESTS if (ROOT / "tests" / name).exists()],
    )
    options = parser.parse_args()
    os.chdir(ROOT)
    learned = Coverage(options.tests)
    rows = []

    def try_one(mutant):
        tests, unseen = learned.tests_of(mutant, options.longest)
        # To compile takes long; a change may also make a loop endless.
        seconds = 60 + 10 * options.longest + 600 * unseen
        verdict, catcher = attempt(mutant, tests, unseen, seconds) if tests else ("survived", "")
        kind = mutant.folder + ", control" * (mutant.choice < 0)
        rows.append((kind, verdict, *described(mutant), len(tests), catcher))
        print(*rows[-1][:5], sep="  ", flush=True)

    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(try_one, draw(options.seed, options.count)))
    columns = ("folder", "verdict", "place", "old", "new", "line", "tests", "caught by")
    table = pd.DataFrame(rows, columns=columns).sort_values(["folder", "place"])
    Path(options.out).mkdir(parents=True, exist_ok=True)
    table.to_csv(Path(options.out) / "mutants.csv", index=False)
    print(pd.crosstab(table["folder"], table["verdict"], margins=True))


if __name__ == "__main__":
    main()
