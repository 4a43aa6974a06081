"""Processes that tests start round as the tests do: Python imports this file by itself where it finds it."""

import os

if os.environ.get("HERDFILTER_ROUNDING"):
    import rounding as rounding
