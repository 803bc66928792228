"""Logs survive kills, full disks and rotation."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

from gradrank.data.clicks.traffic import Impression, click_event, read_traffic, shown_event
from gradrank.serve.line_log import LineLog


def test_lines_of_many_threads_are_whole(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log")
    threads = [
        threading.Thread(target=lambda n=n: [log.write({"n": n, "x": "é" * 500}) for _ in range(50)]) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(line["n"] for line in lines) == [n for n in range(4) for _ in range(50)]


WRITER = """
import sys
from gradrank.serve.line_log import LineLog
log = LineLog(sys.argv[1], rotate_bytes=2048)
assert all(log.write({"writer": sys.argv[2], "n": n, "x": "y" * (n % 90)}) for n in range(1500))
"""


def test_lines_of_several_processes_are_whole_and_none_is_lost_by_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(number)]) for number in range(3)]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    files = list(tmp_path.iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted((line["writer"], line["n"]) for line in lines) == [(str(k), n) for k in range(3) for n in range(1500)]
    # Nobody has set the new file of another one aside: all but the last are full.
    assert all(2048 <= file.stat().st_size < 2300 for file in files if file != path)


def test_a_torn_line_is_ended_and_a_renamed_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"a": 1}\n{"tor')
    log = LineLog(path)
    assert log.write({"b": 2})
    assert path.read_text() == '{"a": 1}\n{"tor\n{"b":2}\n'
    path.rename(tmp_path / "log.1")
    assert log.write({"c": 3})
    assert path.read_text() == '{"c":3}\n'
    log.close()


def test_large_files_are_set_aside_and_read_together(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = LineLog(path, rotate_bytes=1024)
    for number in range(40):
        impression = Impression(f"i{number}", "q", ["a", "b"], ("m@1",))
        assert log.write(shown_event(impression, f"2026-01-01T00:00:{number:02d}Z"))
    for number in (39, 3):
        assert log.write(click_event(f"i{number}", "b", "2026-01-02"))
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert all(file.stat().st_size < 1300 for file in files)
    traffic = read_traffic(*files)
    assert len(traffic.impressions) == 40
    assert {item.id for item in traffic.impressions if item.clicks == ["b"]} == {"i3", "i39"}


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = json.dumps(shown_event(Impression("i", "q", ["a"], ("m@1",)), "t"))
    path.write_text(line + "\n" + line[:30])
    assert len(read_traffic(path).impressions) == 1
