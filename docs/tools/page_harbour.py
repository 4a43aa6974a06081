"""The tables of the page on the harbour: sensors against GPS, filters of one vessel, trackers of two."""

from __future__ import annotations

from page_format import interval, markdown, number, percent, read


def sensors() -> str:
    """Write what radar and lidar are like in each recording: of both vessels what a filter is told, of each the offsets."""
    rows = []
    for (recording, sensor), group in read("harbour_sensors").groupby(["recording", "sensor"], sort=False):
        known = group.set_index("vessel")
        both = known.loc["both"]
        detected = " / ".join(percent(known.loc[vessel, "detected"]) for vessel in ("1", "2"))
        offsets = [" / ".join(f"{known.loc[vessel, name]:.1f}" for vessel in ("1", "2")) for name in ("ahead", "away")]
        told = [
            f"{both['delay']:.1f}",
            f"{both['sd']:.1f}",
            f"{both['detected']:.2f}",
            f"{both['clutter']:.1e}",
        ]
        rows.append([recording, sensor, *told, detected, *offsets, f"{both['reach']:.0f}"])
    heads = [
        "recording",
        "sensor",
        "delay (s)",
        "sd (m)",
        "$P_D$",
        "clutter (1/m²)",
        "scans with vessel 1 / 2",
    ]
    return markdown([*heads, "ahead of the antenna (m)", "away (m)", "reach (m)"], rows, "harbour_sensors")


def one() -> str:
    """Write how filters track one vessel."""
    rows = [
        [row.recording, row.vessel, f"`{row.filter}`, {row.n}", percent(row.lost)]
        + [number(value) for value in (row.rmse, row.anees, row.ms)]
        for row in read("harbour").itertuples()
    ]
    heads = ["recording", "vessel", "filter", "lost", "RMSE (m)", "ANEES", "ms a scan"]
    return markdown(heads, rows, "harbour")


def two() -> str:
    """Write how trackers do with both vessels."""
    rows = [
        [row["recording"], row["sensors"].replace(" ", ", "), f"`{row['filter']}`, {row['n']}"]
        + [interval(row, "gospa", 3)]
        + [number(row[name], 3) for name in ("gospa_localisation", "gospa_missed", "gospa_false")]
        + [interval(row, "ospa", 3)]
        + [number(row[name]) for name in ("label_switches", "ms_per_step")]
        for _, row in read("harbour_two").iterrows()
    ]
    heads = ["GOSPA (m)", "localisation", "missed", "false", "OSPA (m)", "label switches", "ms a scan"]
    return markdown(["recording", "sensors", "tracker", *heads], rows, "harbour_two")


TABLES = {"harbour_sensors": sensors, "harbour": one, "harbour_two": two}
