"""Compiled kernel herding over a grid, for up to three dimensions, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._climb import PAD, kernel_slopes, newton_climb, target_slopes
from herdfilter.samplers._fastmath import VECTORISE, exceeds, exp_clipped, fill, largest
from herdfilter.samplers._frank_wolfe import EQUAL, first_weights, next_weights
from herdfilter.samplers._grid_search import (
    deposit,
    fill_target,
    find_peaks,
    highest_in_box,
    node_values,
    within,
)

INNER = (30, 14, 6)  # nodes of a tile along an axis in 1, 2, 3 dimensions; the margin adds one at either end
DIRECT = 512  # up to this many samples all are summed in a climb, beyond it those within reach
LEASH = 1.0  # kernel widths a climb may lead away from its node: peaks farther away have nodes of their own
KNOWN = 32  # peaks remembered from one point to the next


@njit(cache=True, nogil=True)
def herd_on_grid(target, grid, cells, n, rule):
    """Return n points as columns (d, n) and their weights; each point is the maximum of the herding objective.

    `grid` is (low, tiles, spacing, inner, reach, d): from the corner `low` on, ``tiles`` (powers of 2) tiles along each axis
    are searched, of ``inner`` nodes `spacing` apart, and kernels end at `reach`. `cells`, (numbers along the axes, width),
    serve to find the samples near a place. `rule` is one of `_frank_wolfe.RULES`.
    """
    low, extents, spacing, inner, _, d = grid
    edge = inner + 2
    room = (n + PAD - 1) // PAD * PAD
    samples = (np.zeros(room), np.zeros((3, room)))
    v, points = samples
    locator = _locator(d, cells, n)
    share = np.empty(len(target[0]))
    peaks = (np.empty(64), np.zeros((64, 3)), np.empty(64))
    lines = (np.empty(d * edge), _rows(d, edge, spacing), np.empty(edge**d), np.arange(edge) * spacing)
    stencil = _stencil(d, inner)
    known = (np.zeros((3, KNOWN)), np.full(KNOWN, -np.inf), np.zeros(KNOWN), np.empty(KNOWN))

    # Boxes not yet divided: corner, tiles along each axis, the most that mu can be. Tiles: corner, mu and kernel sum at the
    # nodes, the most that mu can be, the least by which the objective falls short of it, in units of the scale, and the
    # most that the objective can be.
    boxes = (np.zeros((4, 3)), np.zeros((4, 3)), np.empty(4))
    tiles = (
        np.zeros((4, 3)),
        np.empty((4, edge**d)),
        np.empty((4, edge**d)),
        np.empty(4),
        np.empty(4),
        np.empty(4),
    )
    unopened, opened = np.int64(1), np.int64(0)  # not literals, for which callees would be compiled apart
    for i in range(3):
        boxes[0][0, i], boxes[1][0, i] = low[i], extents[i]
    boxes[2][0] = highest_in_box(target, boxes[0][0], boxes[1][0], inner * spacing, share)
    widest = np.int64(0)

    weighting = first_weights(n, rule)
    scale = 1.0
    x, best = np.zeros(3), np.zeros(3)
    for t in range(n):
        if rule == EQUAL:
            scale = 1.0 / (t + 1)
        best_value = _recall(known, scale, best)
        if best_value > -np.inf:
            best_value = _climb(target, samples, t, scale, best, -np.inf, np.inf, grid, cells, locator, known)
        bound = tiles[5]
        for b in range(opened):
            bound[b] = tiles[3][b] - scale * tiles[4][b]
        while True:
            b = _highest(bound, opened)
            top = bound[b] if opened > 0 else -np.inf
            if unopened > 0 and boxes[2][widest] > max(top, best_value):
                if unopened == len(boxes[2]):
                    boxes = (_doubled(boxes[0]), _doubled(boxes[1]), _doubled_vector(boxes[2]))
                if opened == len(bound):
                    tiles = (
                        _doubled(tiles[0]),
                        _doubled(tiles[1]),
                        _doubled(tiles[2]),
                        _doubled_vector(tiles[3]),
                        _doubled_vector(tiles[4]),
                        _doubled_vector(tiles[5]),
                    )
                    bound = tiles[5]
                if _halve(target, boxes, unopened, widest, inner * spacing, share):
                    unopened += 1
                else:
                    _open(target, boxes, widest, tiles, opened, samples, t, grid, share, lines)
                    opened += 1
                    unopened -= 1
                    _move_box(boxes, unopened, widest)
                widest = _highest(boxes[2], unopened)
            elif top > best_value:
                top = node_values(tiles[1], tiles[2], b, scale, lines[2])
                count, passed = find_peaks(
                    tiles[1], tiles[2], b, scale, lines[2], stencil, best_value, spacing, peaks
                )
                highest = max(top, passed)
                while count > 0:
                    k = _highest(peaks[0], count)
                    if peaks[0][k] <= best_value:
                        highest = max(highest, peaks[0][k])
                        break
                    for i in range(3):
                        x[i] = tiles[0][b, i] + peaks[1][k, i]
                    _nearest_known(known, x, peaks[2][k])
                    value = _climb(
                        target, samples, t, scale, x, best_value, LEASH, grid, cells, locator, known
                    )
                    highest = max(highest, value)
                    if exceeds(value, best_value):
                        best_value = value
                        _copy(best, x)
                    count -= 1
                    peaks[0][k], peaks[2][k] = peaks[0][count], peaks[2][count]
                    _copy(peaks[1][k], peaks[1][count])
                if top > best_value:  # no climb came as high as the highest node: its peak is hidden
                    q = largest(lines[2])
                    for i in range(d):
                        x[i] = tiles[0][b, i] + q // stencil[1][i] % edge * spacing
                    value = _climb(target, samples, t, scale, x, -np.inf, np.inf, grid, cells, locator, known)
                    if exceeds(value, best_value):
                        best_value = value
                        _copy(best, x)
                    highest = max(highest, value)
                tiles[4][b] = (tiles[3][b] - highest) / scale
                bound[b] = -np.inf
            else:
                break

        if (
            0 < t <= DIRECT
        ):  # a peak split in two by a sample may be narrower than the grid: climb from across the sample
            nearest = 0
            for s in range(1, t):
                if _squared(points, s, best) < _squared(points, nearest, best):
                    nearest = s
            if _squared(points, nearest, best) < 2.0:
                for i in range(3):
                    x[i] = 2.0 * points[i, nearest] - best[i]
                value = _climb(target, samples, t, scale, x, best_value, LEASH, grid, cells, locator, known)
                if exceeds(value, best_value):
                    _copy(best, x)
        for i in range(3):
            points[i, t] = best[i]
        mu, kernels = 0.0, 0.0
        if rule != EQUAL:
            mu = target_slopes(target, best[0], best[1], best[2])[0]
            kernels = kernel_slopes(v, points, t, best[0], best[1], best[2])[0]
        scale, afresh = next_weights(rule, t, points, v, scale, mu, kernels, weighting)
        _note(locator, low, cells, best, t, d)
        if afresh:
            for b in range(opened):
                _sum_kernels(tiles, b, samples, t + 1, grid, lines)
            for k in range(KNOWN):
                known[2][k] = 0.0
        for s in range(0 if afresh else t, t + 1):
            if v[s] > 0.0:
                for i in range(3):
                    x[i] = points[i, s]
                _add_to_known(known, x, v[s])
        if not afresh:
            for b in range(opened):
                _add_kernel(tiles, b, best, v[t], grid, lines)
    return points, v


@njit(cache=True, nogil=True)
def _halve(target, boxes, count, k, extent, share):
    """Halve box k along its longest axis, the second half becoming box `count`; False if it is a single tile."""
    corner, size, bound = boxes
    axis = largest(size[k])
    if size[k, axis] == 1.0:
        return False
    size[k, axis] *= 0.5
    _copy(corner[count], corner[k])
    _copy(size[count], size[k])
    corner[count, axis] += size[k, axis] * extent
    bound[k] = highest_in_box(target, corner[k], size[k], extent, share)
    bound[count] = highest_in_box(target, corner[count], size[count], extent, share)
    return True


@njit(cache=True, nogil=True)
def _open(target, boxes, k, tiles, b, samples, t, grid, share, lines):
    """Make box k tile b: compute mu and the kernel sums at its nodes."""
    _, _, spacing, inner, _, d = grid
    corner, mu, _, ceiling, _, bound = tiles
    most = highest_in_box(target, boxes[0][k], boxes[1][k], inner * spacing, share)
    for i in range(3):
        corner[b, i] = boxes[0][k, i] - 0.5 * spacing if i < d else 0.0
    fill_target(target, share, 1e-14 * most, corner[b], spacing, inner + 2, mu[b], lines[1])
    ceiling[b] = min(most, 1.1 * mu[b, largest(mu[b])])
    _sum_kernels(tiles, b, samples, t, grid, lines)
    bound[b] = ceiling[b]


@njit(cache=True, nogil=True)
def _move_box(boxes, origin, k):
    _copy(boxes[0][k], boxes[0][origin])
    _copy(boxes[1][k], boxes[1][origin])
    boxes[2][k] = boxes[2][origin]


@njit(cache=True, nogil=True)
def _sum_kernels(tiles, b, samples, count, grid, lines):
    """Compute the kernel sums at the nodes of tile b afresh."""
    v, points = samples
    fill(tiles[2][b], 0.0)
    tiles[4][b] = 0.0
    x = np.empty(len(points))
    for s in range(count):
        if v[s] > 0.0:
            for i in range(len(x)):
                x[i] = points[i, s]
            _add_kernel(tiles, b, x, v[s], grid, lines)


@njit(cache=True, nogil=True)
def _add_kernel(tiles, b, x, weight, grid, lines):
    """Add weight k(., x) at the nodes of tile b, if any is within reach."""
    _, _, spacing, inner, reach, _ = grid
    if within(tiles[0], b, (inner + 1) * spacing, x, reach):
        deposit(x, weight, tiles[0], b, lines[3], tiles[2], lines[0], lines[1][0])


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_to_known(known, x, weight):
    """Add weight k(., x) at the known peaks."""
    places, _, kernels, _ = known
    a, b, c = x[0], x[1], x[2]
    for k in range(KNOWN):
        squared = (places[0, k] - a) ** 2 + (places[1, k] - b) ** 2 + (places[2, k] - c) ** 2
        kernels[k] += weight * exp_clipped(-0.5 * squared)


@njit(cache=True, nogil=True)
def _recall(known, scale, x):
    """Write the highest of the known peaks to x and return its value; peaks move little from one point to the next."""
    places, mu, kernels, value = known
    for k in range(KNOWN):
        value[k] = mu[k] - scale * kernels[k]
    highest = value[largest(value)]
    k = 0
    while exceeds(highest, value[k]):
        k += 1
    for i in range(3):
        x[i] = places[i, k]
    return value[k]


@njit(cache=True, nogil=True)
def _nearest_known(known, x, value):
    """Replace x by a known peak close to it, if one is at least as high as `value`."""
    places = known[0]
    for k in range(KNOWN):
        if known[3][k] >= value and _squared(places, k, x) < 0.5:
            for i in range(3):
                x[i] = places[i, k]
            return


@njit(cache=True, nogil=True)
def _squared(places, k, x):
    """Squared distance between column k and x."""
    a, b, c = places[0, k] - x[0], places[1, k] - x[1], places[2, k] - x[2]
    return a * a + b * b + c * c


@njit(cache=True, nogil=True)
def _climb(target, samples, t, scale, x, best, leash, grid, cells, locator, known):
    """Climb from x, with the samples within reach only where there are many; remember the peak and return its value."""
    v, points = samples
    low, _, _, _, reach, d = grid
    near_v, near, start = locator[2], locator[3], locator[4]
    use_v, use_points, count = v, points, t
    while True:
        if len(near_v) > 0 and t > DIRECT:
            count = _gather(samples, t, low, cells, locator, x, reach + FARTHEST_WALK, d)
            use_v, use_points = near_v, near
        _copy(start, x)
        padded = (count + PAD - 1) // PAD * PAD
        value, mu, most = newton_climb(d, target, use_v, use_points, padded, scale, x, best, leash)
        walked = 0.0
        for i in range(len(x)):
            walked = max(walked, abs(x[i] - start[i]))
        if count == t or walked <= FARTHEST_WALK:
            break
    places, known_mu, kernels, known_value = known
    k = 0
    for other in range(KNOWN):
        if _squared(places, other, x) < 0.004 and known_mu[other] > -np.inf:
            k = other
            break
        if known_value[other] < known_value[k]:
            k = other
    for i in range(3):
        places[i, k] = x[i]
    known_mu[k], kernels[k], known_value[k] = mu, (mu - value) / scale, value
    return most


FARTHEST_WALK = 1.0  # kernel widths a climb may go before samples are looked up anew


@njit(cache=True, nogil=True)
def _locator(d, cells, n):
    """Make lists of the samples by cell (first of each, next), and room for those near a place; empty if there are few."""
    total, room = 0, 0
    if n > DIRECT:
        room = (n + PAD - 1) // PAD * PAD
        total = 1
        for i in range(d):
            total *= int(cells[0][i])
    head, link = np.empty(total, np.int64), np.empty(room, np.int64)
    for k in range(total):
        head[k] = -1
    return head, link, np.zeros(room), np.zeros((3, room)), np.empty(3)


@njit(cache=True, nogil=True)
def _cell(x, low, cells, i):
    return min(max(int((x - low[i]) / cells[1]), 0), int(cells[0][i]) - 1)


@njit(cache=True, nogil=True)
def _note(locator, low, cells, x, s, d):
    """Enter sample s, at x, in the list of its cell."""
    head, link = locator[0], locator[1]
    if len(head) > 0:
        k = 0
        for i in range(d):
            k = k * int(cells[0][i]) + _cell(x[i], low, cells, i)
        link[s] = head[k]
        head[k] = s


@njit(cache=True, nogil=True)
def _gather(samples, t, low, cells, locator, x, reach, d):
    """Copy the samples within reach of x to the locator's room; their number is returned."""
    v, points = samples
    head, link, near_v, near, _ = locator
    first, last, now = np.empty(d, np.int64), np.empty(d, np.int64), np.empty(d, np.int64)
    for i in range(d):
        first[i], last[i] = _cell(x[i] - reach, low, cells, i), _cell(x[i] + reach, low, cells, i)
        now[i] = first[i]
    count = 0
    while True:
        k = 0
        for i in range(d):
            k = k * int(cells[0][i]) + now[i]
        s = head[k]
        while s >= 0:
            squared = 0.0
            for i in range(d):
                squared += (points[i, s] - x[i]) ** 2
            if squared < reach * reach and v[s] > 0.0:
                near_v[count] = v[s]
                for i in range(d):
                    near[i, count] = points[i, s]
                count += 1
            s = link[s]
        i = d - 1
        while i >= 0 and now[i] == last[i]:
            now[i] = first[i]
            i -= 1
        if i < 0:
            break
        now[i] += 1
    for k in range(count, min((count + PAD - 1) // PAD * PAD, len(near_v))):
        near_v[k] = 0.0
    return count


@njit(cache=True, nogil=True)
def _stencil(d, inner):
    """Places of the inner nodes in a tile, and the strides of its axes."""
    strides = np.empty(d, np.int64)
    for i in range(d):
        strides[i] = (inner + 2) ** (d - 1 - i)
    nodes = np.zeros(inner**d, np.int64)
    for k in range(len(nodes)):
        rest = k
        for i in range(d - 1, -1, -1):
            nodes[k] += (rest % inner + 1) * strides[i]
            rest //= inner
    return nodes, strides


@njit(cache=True, nogil=True)
def _rows(d, edge, spacing):
    """Room for two numbers for each line of nodes along the first axis, and the lines' places along the other axes."""
    rows = np.zeros((4, edge ** (d - 1)))
    for k in range(rows.shape[1]):
        if d == 2:
            rows[2, k] = k * spacing
        elif d == 3:
            rows[2, k], rows[3, k] = k // edge * spacing, k % edge * spacing
    return rows


@njit(cache=True, nogil=True)
def _highest(values, count):
    """Index of the first largest of the first `count` values."""
    best = 0
    for k in range(1, count):
        if values[k] > values[best]:
            best = k
    return best


@njit(cache=True, nogil=True)
def _copy(to, origin):
    for i in range(len(to)):
        to[i] = origin[i]


@njit(cache=True, nogil=True)
def _doubled(rows):
    more = np.empty((2 * len(rows), rows.shape[1]))
    for k in range(len(rows)):
        _copy(more[k], rows[k])
    return more


@njit(cache=True, nogil=True)
def _doubled_vector(values):
    more = np.empty(2 * len(values))
    for k in range(len(values)):
        more[k] = values[k]
    return more
