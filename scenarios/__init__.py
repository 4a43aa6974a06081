"""The scenarios that come with herdfilter: a TOML file each, and beside them the modules that load recorded data.

The folder is part of the wheel, and its modules are imported as ``herdfilter.study.data.plaza`` and so on.
"""
