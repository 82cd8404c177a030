"""`bench report`: a suite's results as a markdown page with figures."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.cli.output.json_output import print_json
from fedarena.core.errors import UserError
from fedarena.core.files import resolved
from fedarena.core.text.numbers import plural

NAME = re.compile(r"\w[\w .+-]*")
"""The name of a folder that lies in the present one."""

if TYPE_CHECKING:
    from fedarena.runs.suite.plan import Plan


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "report",
        help="write a report with figures from records",
        description="Write README.md with figures and board.json: ranking and recommendation, scores by defense and "
        "attack, accuracy under attack by round, originals and reconstructions, ROC curves, cost, every cell with its "
        "command, and the methods' sources.",
    )
    parser.add_argument(
        "suite",
        nargs="?",
        default="runs",
        metavar="SUITE",
        help="a suite that was run, a folder of records, or a published board.json (default: runs)",
    )
    parser.add_argument("--out", metavar="FOLDER", help="where the report goes (default: reports/SUITE)")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command. Raises UserError for what holds no records."""
    from fedarena.board.load import find_folder, load_board
    from fedarena.board.report.write import write_report
    from fedarena.runs.suite.plan import read_plan
    from fedarena.runs.suite.secret import stored_secret

    where = find_folder(args.suite)
    board = load_board(where)
    folder = where if where.is_dir() else where.parent
    out = Path(args.out) if args.out is not None else Path("reports") / _folder_name(board.suite, folder)
    if resolved(out) in (resolved(folder), resolved(folder / "records")):
        # A published board has no pictures beside it, so the new report would lose them.
        raise UserError(f"option 'out' is {out}, where the results are, allowed: another folder")
    done = write_report(board, folder, out, _commands(args.suite, read_plan(folder), stored_secret(folder)))
    if args.json:
        content = {"readme": str(done.readme), "files": list(done.files), "removed": list(done.removed)}
        print_json(content)
        return 0
    print(
        f"{done.readme}: {plural(len(board.defenses), 'defense')}, {plural(len(board.cells), 'cell')}, "
        f"{plural(len(done.files) - 2, 'figure')}"
    )
    if done.removed:
        print(f"Removed files of an earlier report: {', '.join(done.removed)}")
    return 0


def _folder_name(suite: str, folder: Path) -> str:
    """The name of the report's folder. A board is a stranger's file, whose suite may be the path of another folder.

    Raises:
        UserError: the suite is no name.
    """
    if not suite:
        return resolved(folder).name
    if not NAME.fullmatch(suite):
        raise UserError(
            f"the board's suite is '{suite}', which cannot name the folder of the report, allowed: letters, digits, "
            "spaces and _ . + - after a letter or digit; give the folder by --out"
        )
    return suite


def _commands(name: str, plan: Plan | None, secret: str) -> list[str]:
    """The commands that make the records and the report; a folder appears by its name alone, without its path."""
    if plan is not None:
        from fedarena.runs.suite.suite import names

        suite = plan.suite if plan.suite in names() else f"{plan.suite}.toml"
        more = f" --secret {secret}" if secret else ""
        return [
            f"bench suite run {suite} --seeds {','.join(map(str, plan.seeds))}{more}",
            f"bench report {plan.suite}",
        ]
    if Path(name).exists():
        return [f"bench report {resolved(name).name if Path(name).is_absolute() else name}"]
    return [f"bench suite run {name}", f"bench report {name}"]
