"""All that training draws, in an SQLite file that any program reads."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import quote

# What a record's file says that it is.
_MARK, _VERSION = 0x6766_6E72, 1


def read_record(path: str | os.PathLike[str], run: int | None = None) -> Any:
    """The objects that training drew, as a pandas frame in the order in which they were drawn: `run`, `step`, `place` in the step's batch,
    `text` and `log_reward`. Runs are numbered from 1; with `run`, one of them alone. `Trainer.record` writes such files.

    Equal objects have equal bytes in `key`, whatever the order of a graph's nodes.
    """
    import pandas

    path = os.fsdecode(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "there is no record", path)
    if run is not None and (isinstance(run, bool) or not isinstance(run, int)):
        raise TypeError(f"run is {run!r:.200}: expected a whole number of at least 1")
    with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)) as file:
        try:
            mark, version = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} is no record of training ({error}): expected a file that `Trainer.record` wrote") from error
        if (mark, version) != (_MARK, _VERSION):
            raise ValueError(f"{path} is a database, but no record of training of version {_VERSION}: expected a file that `Trainer.record` wrote")
        runs = [number for (number,) in file.execute("SELECT id FROM runs ORDER BY id")]
        if run is not None and run not in runs:
            raise ValueError(f"run is {run}: expected one of {runs}")
        chosen, values = ("", ()) if run is None else (" WHERE run = ?", (run,))
        return pandas.read_sql_query(f"SELECT * FROM samples{chosen} ORDER BY run, step, place", file, params=values)
