"""Links and sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.labeling.project.access import OWNER_SECONDS, SESSION_SECONDS, Access, RateLimit, load_secret, secret_path
from gradrank.labeling.project.store import Store


def test_a_link_works_on_every_device_until_it_is_renewed(project: Store) -> None:
    access = Access(project)
    token = access.invite("Ada")
    assert access.invite("Ada") == token
    sessions = [access.enter(token), access.enter(token)]
    assert sessions[0] != sessions[1]
    assert {access.visitor(value).name for value in sessions} == {"Ada"}
    new = access.invite("Ada", renew=True)
    assert access.enter(token) is None
    assert [access.visitor(value) for value in sessions] == [None, None]
    assert access.visitor(access.enter(new)).name == "Ada"


@pytest.mark.parametrize("token", ["", "-", "1", "1-", "0-", "x-y", "１-x", "99999999999-x", "1-" + "A" * 32])
def test_guessed_links_lead_nowhere(project: Store, token: str) -> None:
    access = Access(project)
    access.invite("Ada")
    assert access.welcome(token) is None
    assert access.enter(token) is None


def test_one_persons_link_is_not_anothers(project: Store) -> None:
    access = Access(project)
    ada, ben = access.invite("Ada"), access.invite("Ben")
    mixed = f"{ben.partition('-')[0]}-{ada.partition('-')[2]}"
    assert access.enter(mixed) is None
    assert access.enter(f"0-{ada.partition('-')[2]}") is None


def test_sessions_end(project: Store) -> None:
    now = [0.0]
    project.clock = lambda: now[0]
    access = Access(project)
    guest, owner = access.enter(access.invite("Ada")), access.enter(access.owner_token())
    now[0] = OWNER_SECONDS + 1
    assert access.visitor(owner) is None
    assert access.visitor(guest) is not None
    now[0] = SESSION_SECONDS + 1
    assert access.visitor(guest) is None


def test_leaving_ends_one_session(project: Store) -> None:
    access = Access(project)
    token = access.invite("Ada")
    one, other = access.enter(token), access.enter(token)
    access.leave(one)
    assert access.visitor(one) is None
    assert access.visitor(other).csrf != ""


def test_the_project_holds_nothing_that_opens_the_door(project: Store) -> None:
    access = Access(project)
    token = access.invite("Ada")
    value = access.enter(token)
    csrf = access.visitor(value).csrf
    project.read().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = project.path.read_bytes()
    for word in (token.partition("-")[2], value, csrf, access.owner_token().partition("-")[2]):
        assert word.encode() not in content
    assert load_secret(project.path) not in content


def test_the_secret_is_random_kept_and_private(tmp_path: Path) -> None:
    one, other = load_secret(tmp_path / "a.db"), load_secret(tmp_path / "b.db")
    assert one != other
    assert load_secret(tmp_path / "a.db") == one
    assert secret_path(tmp_path / "a.db").stat().st_mode & 0o777 == 0o600
    secret_path(tmp_path / "a.db").write_bytes(b"short")
    with pytest.raises(DataError, match="too short"):
        load_secret(tmp_path / "a.db")


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\x00b"])
def test_names_of_assessors(project: Store, name: str) -> None:
    with pytest.raises(DataError, match="name of an assessor"):
        Access(project).invite(name)


def test_the_rate_limit_forgets(project: Store) -> None:
    now = [0.0]
    limit = RateLimit(most=3, seconds=60, clock=lambda: now[0])
    for _ in range(3):
        limit.failed("a")
    assert limit.blocked("a")
    now[0] = 61
    assert not limit.blocked("a")
    for number in range(20_000):
        limit.failed(str(number))
    assert len(limit._failures) <= 10_001
