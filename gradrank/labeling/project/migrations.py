"""Projects of older versions: brought to the form that this one works with, step by step, after a copy was made."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

STEPS: dict[int, Sequence[str]] = {}
"""Statements that turn a project of a form into one of the next form, by the form that it starts from.

A change of ``schema.sql`` raises ``SCHEMA_VERSION`` by one and adds the step that makes the same change to a project
with work in it; a test compares the two ways.
"""


def migrate(connection: sqlite3.Connection, target: int, steps: Mapping[int, Sequence[str]] = STEPS) -> None:
    """Take a project to a newer form, all in one transaction: it is of the old form or of the new one.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> for statement in ("CREATE TABLE note (text TEXT)", "PRAGMA user_version = 1"):
    ...     _ = connection.execute(statement)
    >>> migrate(connection, 2, {1: ["ALTER TABLE note ADD COLUMN at REAL"]})
    >>> connection.execute("PRAGMA user_version").fetchone()
    (2,)
    """
    connection.execute("PRAGMA foreign_keys = OFF")  # tables that are made anew are missing for a moment
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it while this one waited.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            for number in range(version, target):
                for statement in steps[number]:
                    connection.execute(statement)
            if version < target:
                connection.execute(f"PRAGMA user_version = {target}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
