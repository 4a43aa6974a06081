"""Compiled machinery of kernel herding: the frame, the climb, the greedy search, and placing points again."""
