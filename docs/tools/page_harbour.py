"""The tables of the page on the harbour: sensors against GPS, filters of one vessel, trackers of two."""

from __future__ import annotations

from page_format import markdown, number, percent, read


def sensors() -> str:
    """Write what radar and lidar are like in each recording: of both vessels what a filter is told, of each the offsets."""
    rows = []
    for (recording, sensor), group in read("harbour_sensors").groupby(
        ["recording", "sensor"], sort=False
    ):
        known = group.set_index("vessel")
        both = known.loc["both"]
        offsets = [
            " / ".join(f"{known.loc[vessel, name]:.1f}" for vessel in ("1", "2"))
            for name in ("ahead", "away")
        ]
        told = [
            f"{both['delay']:.1f}",
            f"{both['sd']:.1f}",
            f"{both['detected']:.2f}",
            f"{both['clutter']:.1e}",
        ]
        rows.append([recording, sensor, *told, *offsets, f"{both['reach']:.0f}"])
    heads = [
        "recording",
        "sensor",
        "delay (s)",
        "sd (m)",
        "$P_D$",
        "clutter (1/m²)",
    ]
    return markdown(
        [*heads, "ahead of the antenna (m)", "away (m)", "reach (m)"], rows, "harbour_sensors"
    )


def one() -> str:
    """Write how filters track one vessel."""
    rows = [
        [row.recording, row.vessel, f"`{row.filter}`, {row.n}", percent(row.lost)]
        + [number(value) for value in (row.rmse, row.anees, row.ms)]
        for row in read("harbour").itertuples()
    ]
    heads = ["recording", "vessel", "filter", "lost", "RMSE (m)", "ANEES", "ms per scan"]
    return markdown(heads, rows, "harbour")


def late() -> str:
    """Write what filters find whose state holds the delays."""
    rows = []
    for _, row in read("harbour_late").iterrows():
        found = {
            one: f"{row[f'{one}_delay']:.1f} ± {row[f'{one}_sd']:.1f}"
            for one in ("gps", "alone", "auto", "lidar")
        }
        compared = [
            " / ".join(number(row[f"{one}_{measure}"]) for one in ("constant", "guess", "alone"))
            for measure in ("rmse", "anees")
        ]
        pair = f"{row['difference']:.1f}", "lost" if row["lidar_lost"] else found["lidar"]
        alone = found["alone"], found["auto"]
        rows.append(
            [
                row["recording"],
                row["vessel"],
                f"{row['radar']:.1f}",
                found["gps"],
                *alone,
                *pair,
                *compared,
            ]
        )
    heads = [
        "delay by GPS (s)",
        "`ukf`, radar and GPS",
        "`ukf`, radar alone",
        "`auto`, radar alone",
    ]
    heads += ["radar - lidar by GPS", "`ukf`, radar and lidar", "RMSE (m)", "ANEES"]
    return markdown(["recording", "vessel", *heads], rows, "harbour_late")


def misses() -> str:
    """Write what the errors of trackers are made of."""
    rows = []
    for row in read("harbour_misses").itertuples():
        name = "told which is whose" if row.tracker == "told" else row.tracker
        told = (
            f"`{name}`" if name.startswith("lmb") else name,
            number(row.gospa, 3),
            number(row.rmse),
        )
        counts = (
            f"{row.missed} of {row.vessels}",
            row.missed_unseen,
            row.false,
            row.false_at_echoes,
        )
        rows.append([row.recording, *told, *counts])
    heads = [
        "GOSPA (m)",
        "error of a track (m)",
        "vessels missed",
        "of these not detected",
    ]
    heads += ["false estimates", "of these at an echo"]
    return markdown(["recording", "tracker", *heads], rows, "harbour_misses")


TABLES = {"harbour_sensors": sensors, "harbour": one}
TABLES |= {"harbour_late": late, "harbour_misses": misses}
