"""``mpc-lab trend``: the saved audits of a folder, one period after another."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from mpc_lab.cli.options import Command, add_path
from mpc_lab.errors import MpcError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser, "folder", type=Path, metavar="FOLDER", help="saved audits, one a period")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    add_path(
        parser,
        "--chart",
        type=Path,
        metavar="OUT.svg",
        help="draw all periods (SVG, PNG, PDF or HTML)",
    )


def _run(options: argparse.Namespace) -> int:
    """Print the trend, and return what the gate would."""
    from mpc_lab.results import load
    from mpc_lab.results.trend import trend
    from mpc_lab.text import entry, plain

    folder: Path = options.folder
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        raise MpcError(
            f"FOLDER must be a folder of saved audits (*.nc); got {str(folder)!r}, which is "
            f"{what}. Name the folder."
        )
    paths = sorted(folder.glob("*.nc"), key=_in_time)
    if len(paths) < 2:
        raise MpcError(
            f"FOLDER must hold at least two audits (*.nc); got {len(paths)} in {str(folder)!r}. "
            "Save one each period with --save."
        )
    found = trend([load(path) for path in paths], [path.stem for path in paths])
    if options.chart is not None:
        from mpc_lab import charts

        charts.save(charts.trend(found), options.chart)
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return found.answer
    print(found.summary())
    last = found.data.isel(period=-1)
    print(f"\n{'Group':<28}{'Gap':>10}{'Change':>10}{'All before':>12}{'Evidence':>12}  Alarm")
    for group in last["group"].values.tolist():
        one = last.sel(group=group)
        name = plain(group)
        name = name if len(name) < 28 else f"{name[:13]}…{name[-13:]}"
        gap, change, total = (entry(float(one[key]), 3) for key in ("estimate", "change", "total"))
        evidence = entry(float(one["evidence"]), ".3g")
        rung = "yes" if group in found.alarms else "no"
        print(f"{name:<28}{gap:>10}{change:>10}{total:>12}{evidence:>12}  {rung}")
    return found.answer


def _in_time(path: Path) -> tuple[list[str | int], str]:
    """Return what names sort by: numbers in them as numbers, so that week 9 is before week 10."""
    parts = re.split(r"([0-9]+)", path.stem)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], path.stem


TREND = Command(
    "trend",
    "follow saved audits over time, with an alarm for a change",
    _add_arguments,
    _run,
    {
        "description": "Read the audits of a folder in the order of their names (numbers in them "
        "as numbers), compare each with those before, and say where a gap has changed. Exit codes: "
        "0 no alarm, 1 an alarm or a group that fails the gate in the last period (its gap is "
        "outside the tolerance or, without one, has a direction), 2 the last period cannot tell."
    },
)
