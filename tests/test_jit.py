"""Compiled code is kept on the disk if that is possible; a full disk or a damaged file costs time, and stops nobody."""

import ast
import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from helpers import cases
from numba.core import config
from numba.core.caching import CompileResultCacheImpl

import herdfilter as hf
from herdfilter import _jit

ON_A_FULL_DISK = """
import resource, sys
import herdfilter as hf

def growth(x):
    return 0.5 * x[0]

resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # no file takes a byte
quick = hf.models.CompiledModel(growth, growth, [[1.0]], [[1.0]], [0.0], [[1.0]])
linear = hf.models.LinearGaussian([[0.5]], [[0.5]], [[1.0]], [[1.0]], [0.0], [[1.0]])
for model in (quick, linear):
    print(hf.make_filter("bootstrap", model, n_particles=50, rng=0).run([1.0, 2.0, 3.0]).means[-1, 0].round(9))
"""


@pytest.fixture
def unsaid(monkeypatch):
    """A process that has not warned yet."""
    monkeypatch.setattr(_jit, "_failures", [])


@pytest.fixture
def double(monkeypatch, tmp_path):
    """A function in a file; its compiled code is kept beside it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    file = tmp_path / "doubled.py"
    file.write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("doubled", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def test_filters_and_models_go_on_uncached_on_a_full_disk_and_say_so_once(tmp_path):
    pytest.importorskip("resource")
    script = tmp_path / "script.py"
    script.write_text(ON_A_FULL_DISK)
    root = str(Path(hf.__file__).parents[1])
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "code"),
        "PYTHONPATH": root,
        "PYTHONWARNINGS": "always::UserWarning",
    }
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    quick, linear = done.stdout.split()
    assert quick == linear  # the same random numbers
    assert done.stderr.count("UserWarning: ") == 1
    assert "compiled code cannot be kept on the disk" in done.stderr
    assert "File too large" in done.stderr
    assert not [*tmp_path.rglob("*.tmp.*")]


@cases("suffix", "nbi", "nbc")
@cases("size", 0, 30)
def test_a_damaged_file_of_compiled_code_is_replaced(double, unsaid, tmp_path, suffix, size):
    """Whether its index or the code itself is empty or cut off."""
    assert _jit.njit(double, cache=True)(3) == 6
    (damaged,) = tmp_path.rglob(f"*.{suffix}")
    os.truncate(damaged, size)
    with pytest.warns(
        UserWarning, match="and is compiled anew; the variable NUMBA_CACHE_DIR"
    ) as told:
        assert _jit.njit(double, cache=True)(3) == 6
    assert len(told) == 1
    whole = _jit.njit(double, cache=True)
    assert whole(3) == 6
    assert sum(whole.stats.cache_hits.values()) == 1


def test_it_compiles_where_no_folder_can_be_written(double, unsaid, monkeypatch):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    with pytest.warns(UserWarning, match="no locator available"):
        compiled = _jit.njit(double, cache=True)
    assert compiled(3) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _jit.njit(cache=True)(double)(4) == 8  # said once


def test_a_function_typed_at_a_prompt_is_compiled_without_a_word(unsaid):
    typed = {}
    exec("def double(x): return 2 * x", typed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _jit.njit(typed["double"], cache=True)(3) == 6


def test_nothing_in_the_package_is_compiled_past_it():
    root = Path(hf.__file__).parent
    direct = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[0] == "numba"
        and {alias.name for alias in node.names}
        & {"njit", "jit", "vectorize", "guvectorize", "cfunc"}
    ]
    assert direct == []
