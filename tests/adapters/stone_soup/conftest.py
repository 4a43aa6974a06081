import pytest

pytest.importorskip("stonesoup", reason="Stone Soup is not installed")
