"""Let published human preferences answer as an assessor, and find the top 10 of every query with few questions.

    python examples/label_preferences.py FOLDER [-o top10.jsonl]

FOLDER holds ``judgments.txt`` (lines: topic, passage, passage, preferred passage), ``questions.tsv`` and
``passages.tsv.xz``, as in the data of Yan et al. (2022), "Human Preferences as Dueling Bandits", for TREC DL 2021.
A pair that people judged is answered by their majority. Others are answered by how often the two passages won in
all their comparisons, so the result is that of these people as far as they were asked.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
from collections import Counter
from pathlib import Path

from gradrank.labeling.project.desk import Answer, Desk, Vote

from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.exporting import export_topk
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.store import create_project


class Crowd:
    """What people said about pairs of a topic."""

    def __init__(self, path: Path) -> None:
        self.wins: Counter[tuple[str, str, str]] = Counter()
        self.won: Counter[tuple[str, str]] = Counter()
        self.judged: Counter[tuple[str, str]] = Counter()
        for line in path.read_text().splitlines():
            topic, a, b, winner = line.split()
            self.wins[topic, winner, b if winner == a else a] += 1
            self.won[topic, winner] += 1
            self.judged[topic, a] += 1
            self.judged[topic, b] += 1

    def share(self, topic: str, passage: str) -> float:
        """How often a passage won, drawn a little towards one half."""
        return (self.won[topic, passage] + 1) / (self.judged[topic, passage] + 2)

    def prefer(self, topic: str, left: str, right: str) -> tuple[float, bool]:
        """Positive if the left one is better, 0 for a tie; and whether people judged this pair."""
        direct = self.wins[topic, left, right] - self.wins[topic, right, left]
        if self.wins[topic, left, right] + self.wins[topic, right, left]:
            return float(direct), True
        return self.share(topic, left) - self.share(topic, right), False


def main(folder: Path, output: Path, k: int) -> None:
    """Make a project, answer every question, export the top k."""
    crowd = Crowd(folder / "judgments.txt")
    with tempfile.TemporaryDirectory() as work:
        run = Path(work) / "candidates.txt"
        run.write_text(
            "".join(f"{topic} Q0 {name} 0 {crowd.share(topic, name)} crowd\n" for topic, name in crowd.judged)
        )
        with create_project(Path(work) / "project.db") as store:
            found = import_files(
                store,
                queries=folder / "questions.tsv",
                documents=[folder / "passages.tsv.xz"],
                runs=[run],
                depth=1000,
                skip_missing=True,
            )
            if found.faults:
                raise SystemExit(f"{found.faults[0]} ({len(found.faults)} faults)")
            print(*found.notes, sep="\n")
            assign(store, assessors=1, k=k)
            desk = Desk(store)
            direct = asked = 0
            while (number := desk.next_of(1)) is not None:
                item = desk.work(number)
                topic = item.assignment.query
                while not item.state.done:
                    difference, known = crowd.prefer(topic, *item.shown)
                    verdict = Verdict.FIRST if difference > 0 else Verdict.SECOND if difference < 0 else Verdict.TIE
                    shown = tuple(item.assignment.numbers[name] for name in item.shown)
                    vote = Vote(item.seq, secrets.token_urlsafe(16), verdict, shown)
                    assert desk.vote(number, vote) is Answer.ACCEPTED
                    asked, direct = asked + 1, direct + known
                    item = desk.work(number)
            rows = export_topk(store, output).rows
    print(f"{rows} queries with {found.summary()['candidates']} candidates")
    print(
        f"asked {asked} pairs ({asked / rows:.1f} a query), of which people had judged {direct} ({direct / asked:.0%})"
    )
    print(f"the top {k} of each query is in {output}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Replay human preferences.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("top10.jsonl"))
    parser.add_argument("-k", type=int, default=10)
    options = parser.parse_args()
    main(options.folder, options.output, options.k)
