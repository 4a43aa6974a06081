"""Change the program in one place at a time and see whether the tests notice.

Run as ``make test-mutants SEED=0 COUNT=500``. A seed draws changes (mutants), equally many in each folder: a sign, a
comparison, a constant, a condition. Every test of ``make test`` is run once to learn which lines it executes; then the
tests that execute the changed line run with the change, in a fork of this process, until one fails. Functions are changed
in place, so that nothing is written and nothing imported again; compiled ones, and those that call them, are compiled
anew in the fork.

mutmut was considered: it leaves decorated functions alone, as compiled functions, properties and cached ones are.

Printed are the mutants caught in each folder and those that survived; all stand in ``results/mutants.csv``. Beside the
mutants runs the unchanged program, as a control, which no test may fail.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import hashlib
import importlib
import os
import pickle
import random
import signal
import sys
import time
import traceback
import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
SURVIVED, CAUGHT, UNUSABLE = 0, 1, 2
VERDICTS = ("survived", "caught", "unusable")  # or ended, when time was over or the process died
CONTROLS = 3  # for each folder

OPERATORS = (
    "Add-Sub Sub-Add Mult-Div Div-Mult Pow-Mult FloorDiv-Mult Mod-Mult BitAnd-BitOr BitOr-BitAnd And-Or Or-And "
    "Lt-Gt LtE-GtE Gt-Lt GtE-LtE Eq-NotEq NotEq-Eq Is-IsNot IsNot-Is In-NotIn NotIn-In"
)
NEIGHBOURS = " Lt-LtE LtE-Lt Gt-GtE GtE-Gt"  # of whole numbers alone: others are equal by chance
NAMES = "min-max max-min minimum-maximum maximum-minimum argmin-argmax argmax-argmin any-all all-any floor-ceil ceil-floor"
SPOKEN = {
    "warn",
    "warning",
    "info",
    "debug",
    "cast",
    "TypeVar",
    "plural",
}  # calls that only say something
UNREAD = {"strict", "stacklevel"}  # keywords that only guard


def others(pairs: str, name: str) -> list[str]:
    """What stands beside a name in pairs."""
    return [pair.split("-")[1] for pair in pairs.split() if pair.split("-")[0] == name]


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the place of the expression in the tree, and the number of the alternative to it."""

    folder: str
    path: Path
    place: int
    choice: int  # -1 is the unchanged program


def expressions(node: ast.AST) -> Iterator[ast.AST]:
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


def counts(node: ast.AST) -> bool:
    """Whether an expression is a whole number, as far as one can see."""
    match node:
        case ast.Constant(value=int(value)):
            return value != 0
        case ast.BinOp(left=left, right=right):
            return counts(left) and counts(right)
        case ast.Call(func=ast.Name(id="len")) | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return False


def alternatives(node: ast.AST) -> Iterator[dict[str, Any]]:
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


def changed(mutant: Mutant) -> tuple[ast.Module, ast.Module, ast.AST, ast.AST]:
    """Return the tree and the changed tree of the file, and the node in either."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    other = copy.deepcopy(tree)
    old, new = (list(expressions(t))[mutant.place] for t in (tree, other))
    if mutant.choice >= 0:
        vars(new).update(list(alternatives(new))[mutant.choice])
    return tree, ast.fix_missing_locations(other), old, new


def draw(seed: int, count: int) -> list[Mutant]:
    """Draw mutants, equally many from each folder, and controls, in random order: the first are a sample, too."""
    rng, drawn = random.Random(seed), []
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


class Program:
    """The package as trees: which lines lead to a place, and which compiled functions contain it."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = defaultdict(
            set
        )  # names in each compiled function, and its namesakes
        self.lines: dict[str, set[tuple[str, int]]] = defaultdict(
            set
        )  # where the others use a name
        for path in sorted(PACKAGE.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    loaded = [n for statement in node.body for n in ast.walk(statement)]
                    names = [(n.id, n.lineno) for n in loaded if isinstance(n, ast.Name)]
                    names += [(n.attr, n.lineno) for n in loaded if isinstance(n, ast.Attribute)]
                    untyped = (
                        node.returns is None
                    )  # what the compiled loops compile: all that Python runs has types
                    if untyped or any("njit" in ast.dump(d) for d in node.decorator_list):
                        self.used[node.name] |= {name for name, _ in names}
                    else:
                        for name, line in names:
                            self.lines[name].add((str(path), line))

    def compiled_with(self, name: str) -> set[str]:
        """Return the compiled functions that contain a name, directly or in what they call."""
        names = {name}
        while more := {f for f, used in self.used.items() if used & names} - names:
            names |= more
        return names & set(self.used)

    def leading_to(self, mutant: Mutant) -> tuple[set[tuple[str, int]], set[str]]:
        """Return lines, one of which runs where the mutant does, and the functions to be compiled anew."""
        tree, _, node, _ = changed(mutant)
        around = [n for n in ast.walk(tree) if node in set(ast.walk(n))]  # from the module inwards
        top = next(n for n in tree.body if n in around)
        function = next(
            (
                f
                for f in around
                if isinstance(f, ast.FunctionDef) and any(s in around for s in f.body)
            ),
            None,
        )
        if function is not None and function.name not in self.used:
            statement = [n for n in around if isinstance(n, ast.stmt)][-1]
            part = node.test if isinstance(node, ast.If | ast.While) else node
            lines = {statement.lineno, *range(part.lineno, part.end_lineno + 1)}
            return {(str(mutant.path), line) for line in lines}, set()
        names = {
            n.id for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        names = {top.name} if hasattr(top, "name") else names
        stale = set().union(*(self.compiled_with(name) for name in names))
        body = {(str(mutant.path), n.lineno) for n in ast.walk(top) if isinstance(n, ast.stmt)}
        return body.union(*(self.lines[name] for name in names | stale)), stale


def transplant(old: Any, new: Any) -> None:
    """Give a function, or the functions of a class, the code of another."""
    if isinstance(old, types.FunctionType):
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(old, name, getattr(new, name))
    for name in ("__wrapped__", "__func__", "py_func", "fget", "func"):
        if isinstance(getattr(old, name, None), types.FunctionType):
            transplant(getattr(old, name), getattr(new, name))
    if isinstance(old, type):
        for name, value in vars(new).items():
            if name in vars(old):
                transplant(vars(old)[name], value)
            if isinstance(value, int | float | tuple) and not name.startswith("__"):
                setattr(old, name, value)


def forget_values() -> None:
    """Empty the caches of functions, so that each test computes what it needs."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "herdfilter":
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def install(mutant: Mutant, stale: set[str]) -> None:
    """Change the program in this process."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    name = ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    tree = changed(mutant)[1]
    new = types.ModuleType(name)
    vars(new).update({k: v for k, v in vars(module).items() if k.startswith("__")})
    exec(compile(tree, str(mutant.path), "exec"), vars(new))
    ours = [m for n, m in list(sys.modules.items()) if n.split(".")[0] == "herdfilter"]
    for name, value in vars(new).items():
        old = vars(module).get(name)
        if getattr(old, "__module__", None) == module.__name__ and callable(old):
            transplant(old, value)
        elif not name.startswith("__") and repr(old) != repr(value) and " at 0x" not in repr(value):
            if type(value).__module__ == module.__name__:  # an instance of what this file defines
                object.__setattr__(value, "__class__", type(old))
            for other in ours:
                if vars(other).get(name) is old:
                    setattr(other, name, value)
    proposals = importlib.import_module("herdfilter.compiled.proposals")
    proposals.CALLED = proposals.CALLED | {
        "cache": not stale
    }  # what it compiles stands on the disk by the digest of the files
    for dispatcher in {v for m in ours for v in vars(m).values() if isinstance(v, Dispatcher)}:
        if dispatcher.py_func.__name__ in stale:
            dispatcher._cache = NullCache()
            dispatcher._make_finalizer()()
            dispatcher._reset_overloads()
            dispatcher._can_compile = True
    forget_values()


class Session:
    """A pytest plugin in place of its loop over the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.failed, self.seen = options, False, set()
        self.prepared: dict[Path, set[tuple[str, int]]] = defaultdict(set)
        self.catchers: dict[Path, set[Path]] = defaultdict(set)
        self.running: dict[int, tuple[Mutant, list[pytest.Item], int]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn which lines each test runs, then try the mutants."""
        session.config.pluginmanager.unregister(name="terminalreporter")
        self.items = {item.nodeid: item for item in session.items}
        self.learn()
        self.named = {
            path: {
                getattr(n, "id", getattr(n, "attr", None))
                for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            }
            for path in {item.path for item in session.items}
        }
        rows: list[tuple[Mutant, str, int, str]] = []
        try:
            self.try_all(draw(self.options.seed, self.options.count), rows)
        except KeyboardInterrupt:
            print(f"ended after {len(rows)}")
            for pid in self.running:
                os.kill(pid, signal.SIGKILL)
        tell(rows, Path(self.options.out) / "mutants.csv")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, and lines that ran before the test: fixtures may be made for it and for others of its file."""
        self.failed |= report.failed
        if report.when == "setup" and report.nodeid in self.items:
            self.prepared[self.items[report.nodeid].path] |= self.seen

    def run(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        """Run a test and return whether it passed."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self.failed

    def learn(self) -> None:
        """Run every test once, or read what an earlier run of the same program and test learned; who fails is left out."""
        kept = Path(self.options.out) / "mutants.pickle"
        program = digest(*sorted(PACKAGE.rglob("*.py")))
        written = {path: digest(path) for path in {item.path for item in self.items.values()}}
        old, tests, runs = pickle.loads(kept.read_bytes()) if kept.exists() else (program, {}, {})
        self.tests = {
            t: v
            for t, v in tests.items()
            if old == program and t in self.items and v[0] == written[self.items[t].path]
        }
        self.runs = defaultdict(list)
        for (file, line), ts in runs.items():
            self.runs[str(ROOT / file), line] = [t for t in ts if t in self.tests]
        todo, lost = [item for item in self.items.values() if item.nodeid not in self.tests], []
        every: dict[types.CodeType, frozenset[int]] = {}
        left: dict[types.CodeType, set[int]] = {}

        def trace(frame: types.FrameType, event: str, _: Any) -> Any:
            code = frame.f_code
            if code not in every:
                ours = code.co_filename.startswith(str(PACKAGE))
                every[code] = (
                    frozenset(line for *_, line in code.co_lines() if line) if ours else frozenset()
                )
            if not every[code]:
                return None
            if code not in left:
                left[code] = set(every[code] - {code.co_firstlineno})
            if event == "line":
                left[code].discard(frame.f_lineno)
                self.seen.add((code.co_filename, frame.f_lineno))
            return trace if left[code] else None

        lines = {}
        for item, following in zip(todo, [*todo[1:], None], strict=False):
            forget_values()
            began = time.process_time()
            sys.settrace(trace)
            passed = self.run(item, following)
            sys.settrace(None)
            if passed:
                self.tests[item.nodeid] = written[item.path], time.process_time() - began
                lines[item] = frozenset(self.seen)
            else:
                lost.append(item.nodeid)
            self.seen.clear()
            left.clear()
        for item, seen in lines.items():
            for line in seen | self.prepared[item.path]:
                self.runs[line].append(item.nodeid)
        kept.parent.mkdir(parents=True, exist_ok=True)
        runs = {(os.path.relpath(file, ROOT), line): ts for (file, line), ts in self.runs.items()}
        kept.write_bytes(pickle.dumps((program, self.tests, runs)))
        print(
            f"\n{len(self.tests)} tests pass without a change; {len(todo)} were run to learn that; failed: {lost or 'none'}"
        )

    def choose(
        self, mutant: Mutant, lines: set[tuple[str, int]], stale: set[str]
    ) -> list[pytest.Item]:
        """Return the tests to run: those of files that caught others or are named alike first, and short ones first."""
        files: dict[Path, list[str]] = defaultdict(list)
        direct = {
            path for path, names in self.named.items() if names & stale
        }  # tests of compiled functions
        for test in self.tests.keys() & {
            test for line in lines for test in self.runs.get(line, ())
        } | {test for test in self.tests if self.items[test].path in direct}:
            files[self.items[test].path].append(test)

        def far(path: Path) -> tuple[bool, bool, bool, float]:
            near = (
                mutant.path.stem.strip("_") in path.stem,
                mutant.path.parts[len(PACKAGE.parts)] in path.parts,
            )
            return (
                path not in self.catchers[mutant.path],
                *(not n for n in near),
                sum(self.tests[t][1] for t in files[path]),
            )

        chosen, seconds = [], 0.0
        for path in sorted(files, key=far):
            for test in sorted(files[path], key=lambda t: (self.tests[t][1], t)):
                seconds += self.tests[test][1]
                if seconds < self.options.longest or not chosen:
                    chosen.append(self.items[test])
        return chosen

    def attempt(
        self, mutant: Mutant, stale: set[str], items: list[pytest.Item], catcher: int
    ) -> int:
        """Run tests with the mutant in a fork, and return its number; it writes the number of the test that fails."""
        if pid := os.fork():
            return pid
        status = UNUSABLE
        try:
            install(mutant, stale)
            status = SURVIVED
            for number, (item, following) in enumerate(
                zip(items, [*items[1:], None], strict=False)
            ):
                seconds = (
                    5 + 5 * self.tests[item.nodeid][1] + 100 * bool(stale)
                )  # to compile may take long
                signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: ends the fork
                signal.alarm(int(20 * seconds))
                if not self.run(item, following):
                    os.write(catcher, number.to_bytes(4, "little"))
                    status = CAUGHT
                    break
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def try_all(self, mutants: list[Mutant], rows: list[tuple[Mutant, str, int, str]]) -> None:
        """Try mutants, several at a time; print what comes of each, and add it to the rows."""
        program, running, began = Program(), self.running, time.time()
        waiting = list(reversed(mutants))
        while waiting or running:
            while waiting and len(running) < self.options.workers:
                mutant = waiting.pop()
                lines, stale = program.leading_to(mutant)
                items = self.choose(mutant, lines, stale)
                reading, writing = os.pipe()
                running[self.attempt(mutant, stale, items, writing)] = mutant, items, reading
                os.close(writing)
            pid, status = os.wait()
            if pid not in running:  # a process that a test has left behind
                continue
            mutant, items, reading = running.pop(pid)
            number = os.read(reading, 4)
            os.close(reading)
            code = os.waitstatus_to_exitcode(status)
            verdict = VERDICTS[code] if 0 <= code < len(VERDICTS) else "ended"
            catcher = items[int.from_bytes(number, "little")] if number else None
            if catcher is not None:
                self.catchers[mutant.path].add(catcher.path)
            rows.append((mutant, verdict, len(items), catcher.nodeid if catcher else ""))
            kind = mutant.folder if mutant.choice >= 0 else "control"
            place = "  ".join(described(mutant)[:3])
            print(f"{time.time() - began:6.0f} s  {kind:12}{verdict:10}  {place}", flush=True)


def digest(*paths: Path) -> str:
    """Return a digest of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def described(mutant: Mutant) -> tuple[str, str, str, str]:
    """Return the place, the old and the new expression, and the line they stand in."""
    _, _, old, new = changed(mutant)
    before, after = (
        ast.unparse(n.test if isinstance(n, ast.If | ast.While) else n) for n in (old, new)
    )
    line = mutant.path.read_text(encoding="utf-8").splitlines()[old.lineno - 1].strip()
    return f"{mutant.path.relative_to(ROOT)}:{old.lineno}", before, after, line


def tell(rows: list[tuple[Mutant, str, int, str]], path: Path) -> None:
    """Print counts for each folder, and write every mutant with what came of it."""
    rows.sort(key=lambda row: (row[0].folder, row[0].path, row[0].place))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("folder", "verdict", "place", "old", "new", "line", "tests", "caught by"))
        for mutant, verdict, count, by in rows:
            if mutant.choice >= 0:
                table.writerow((mutant.folder, verdict, *described(mutant), count, by))
    print(
        f"\n{'':12}{'caught':>8}{'of':>6}{'':8}by an error at import, by the time they take, controls that failed"
    )
    for folder in (*FOLDERS, "all"):
        inside = [(m.choice < 0, v) for m, v, *_ in rows if folder in (m.folder, "all")]
        real = [v for control, v in inside if not control]
        caught = len(real) - real.count("survived")
        failed = sum(control and v != "survived" for control, v in inside)
        others = f"{real.count('unusable'):6}{real.count('ended'):6}{failed:6}"
        print(f"{folder:12}{caught:8}{len(real):6}{caught / max(1, len(real)):8.1%}{others}")


def main() -> None:
    """Read the options and start pytest with this plugin."""
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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, too
    flags = [
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "--assert=plain",
        "-q",
        "-W",
        "ignore::DeprecationWarning",
    ]
    flags += ["-m", "not slow"]
    sys.exit(pytest.main([*flags, *options.tests], plugins=[Session(options)]))


if __name__ == "__main__":
    main()
