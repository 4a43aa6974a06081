"""The tables of the page on the harbour: sensors against GPS, filters of one vessel, trackers of two."""

from __future__ import annotations

from page_format import interval, markdown, number, percent, read


def sensors() -> str:
    """Write what radar and lidar are like in each recording: of both vessels what a filter is told, of each the offsets."""
    rows = []
    for (recording, sensor), group in read("harbour_sensors").groupby(
        ["recording", "sensor"], sort=False
    ):
        known = group.set_index("vessel")
        both = known.loc["both"]
        detected = " / ".join(percent(known.loc[vessel, "detected"]) for vessel in ("1", "2"))
        offsets = [
            " / ".join(f"{known.loc[vessel, name]:.1f}" for vessel in ("1", "2"))
            for name in ("ahead", "away")
        ]
        told = [
            f"{both['delay']:.1f}",
            f"{both['sd']:.1f}",
            f"{both['detected']:.2f}",
            f"{both['clutter']:.1e}",
            f"{both['used_in']:.0f}",
        ]
        rows.append([recording, sensor, *told, detected, *offsets, f"{both['reach']:.0f}"])
    heads = [
        "recording",
        "sensor",
        "delay (s)",
        "sd (m)",
        "$P_D$",
        "clutter (1/m²)",
        "given to filters in recording",
        "scans with vessel 1 / 2",
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
    heads = [
        "GOSPA (m)",
        "localisation",
        "missed",
        "false",
        "OSPA (m)",
        "label switches",
        "ms per scan",
    ]
    return markdown(["recording", "sensors", "tracker", *heads], rows, "harbour_two")


def delays() -> str:
    """Write how late the sensors are by GPS."""
    rows = []
    for _, row in read("harbour_delays").iterrows():
        each = [
            " / ".join(f"{row[f'{name}_{vessel}']:.1f}" for vessel in (1, 2))
            for name in ("radar", "lidar", "speed")
        ]
        apart = " / ".join(
            f"{row[f'radar_{vessel}'] - row[f'lidar_{vessel}']:.1f}" for vessel in (1, 2)
        )
        rows.append(
            [
                row["recording"],
                f"{row['radar']:.1f}",
                each[0],
                f"{row['lidar']:.1f}",
                each[1],
                apart,
                each[2],
            ]
        )
    heads = [f"{sensor} (s){of}" for sensor in ("radar", "lidar") for of in ("", ", vessel 1 / 2")]
    return markdown(
        ["recording", *heads, "radar - lidar, vessel 1 / 2", "speed (m/s)"], rows, "harbour_delays"
    )


def late() -> str:
    """Write what filters find whose state holds the delays."""
    rows = []
    for _, row in read("harbour_late").iterrows():
        found = {
            one: f"{row[f'{one}_delay']:.1f} ± {row[f'{one}_sd']:.1f}"
            for one in ("gps", "grid", "alone", "auto", "lidar")
        }
        compared = [
            " / ".join(number(row[f"{one}_{measure}"]) for one in ("constant", "guess", "alone"))
            for measure in ("rmse", "anees")
        ]
        pair = f"{row['difference']:.1f}", "lost" if row["lidar_lost"] else found["lidar"]
        alone = found["grid"], found["alone"], found["auto"]
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
        "grid, radar alone",
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
        shares = (row.localisation_share, row.missed_share, row.false_share)
        told = (
            f"`{name}`" if name.startswith("lmb") else name,
            number(row.gospa, 3),
            number(row.rmse),
        )
        counts = (
            f"{row.missed} of {row.vessels}",
            row.missed_unseen,
            row.two_detections,
            row.false,
            row.false_at_echoes,
        )
        rows.append([row.recording, *told, " / ".join(percent(share) for share in shares), *counts])
    heads = [
        "GOSPA (m)",
        "error of a track (m)",
        "localisation / missed / false",
        "vessels missed",
        "of these not detected",
    ]
    heads += ["vessels with two detections", "false estimates", "of these at an echo"]
    return markdown(["recording", "tracker", *heads], rows, "harbour_misses")


TABLES = {"harbour_sensors": sensors, "harbour": one, "harbour_two": two}
TABLES |= {"harbour_delays": delays, "harbour_late": late, "harbour_misses": misses}
