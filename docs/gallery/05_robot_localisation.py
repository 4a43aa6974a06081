"""
Where is the robot?
===================

A robot mower drives over a field and does not know where it starts: the real recording ``Plaza1_.mat``.
"""

# %%
# Ranges to four radio beacons.

from herdfilter.evaluation.data import load_plaza

data = load_plaza(name="Plaza1", max_ranges=700)
print(len(data))
