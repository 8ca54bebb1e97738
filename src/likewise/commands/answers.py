"""``likewise answers``: what people answered, in and out of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError, needs


def answers(
    action: Literal["export", "import"],
    project: str,
    file: Path,
    *,
    format: Literal["auto", "jsonl", "csv", "label-studio"] = "auto",
    who: str = "import",
) -> int:
    """Export the answers of a project, or import some.

    "jsonl" holds every fact, also what was undone, and gives the same project back; "csv" and
    "label-studio" hold what counts: pairs and names. To import the same file twice adds nothing.

    Args:
        action: export or import.
        project: the file of a project (project.db), or the URL of its database.
        file: to write or to read.
        format: by default by the file's name: .jsonl, .csv, or .json (Label Studio).
        who: the author of imported answers that name none.
    """
    needs("`likewise answers`", "annotate", "sqlalchemy")
    from rich.console import Console

    from likewise.annotate.exchange import export_answers, import_answers
    from likewise.annotate.store import Store

    console = Console(stderr=True)
    try:
        if action == "export" and "://" not in project and not Path(project).is_file():
            raise ValueError(f"there is no project {project}: give the file of one, or its URL")
        if action == "import" and not file.is_file():
            raise ValueError(f"there is no file {file} to import")
        with Store.open(project) as store:
            if action == "export":
                done = "replaced" if file.exists() else "wrote"
                count = export_answers(store, file, format)
                unit = {"jsonl": "facts", "csv": "rows"}.get(_format(file, format), "tasks")
                console.print(
                    f"{done} {file}: {count:,} {unit} of {store.place}",
                    highlight=False,
                    soft_wrap=True,
                )
            else:
                held, new = import_answers(store, file, format, who=who)
                console.print(
                    f"{store.place}: {new:,} new of {held:,} facts", highlight=False, soft_wrap=True
                )
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    return 0


def _format(file: Path, format: str) -> str:
    from likewise.annotate.exchange import format_of

    return format_of(file, format)
