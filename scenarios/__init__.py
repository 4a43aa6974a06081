"""The scenarios that come with herdfilter: a TOML file each, and beside them modules: of recorded data, and of models.

The folder is part of the wheel, and its modules are imported as ``herdfilter.study.data.plaza`` and so on.
"""
