"""``python -m herdfilter``."""

from herdfilter.cli import main

main(prog_name="herdfilter")
