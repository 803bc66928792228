"""The web application: routes for assessors; those of the owner are in :mod:`gradrank.labeling.web.owner`."""

from __future__ import annotations

import asyncio
import hmac
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from gradrank.errors import DataError, MissingExtraError, ProjectUnavailableError
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.access import Access, RateLimit, Visitor
from gradrank.labeling.project.backup import backup
from gradrank.labeling.project.judging import Answer, Desk, Vote, Work
from gradrank.labeling.project.store import Store, unavailable
from gradrank.labeling.web.pages import home_page, templates, work_page
from gradrank.labeling.web.security import App, Guard, read_form

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BACKUP_SECONDS = 3600.0
FORM_SECONDS = 30.0
"""How long a form may take to arrive after the head of its request."""
_LOG = logging.getLogger("gradrank.labeling")
_RETRY_SECONDS = 2
_ATTEMPTS, _ATTEMPT_SECONDS = 10, 60.0
# Digits that SQLite's integers hold for sure.
_LONGEST_NUMBER = 18


class Refused(Exception):
    """A request that gets a page of its own with a status code."""

    def __init__(self, status: int, heading: str, text: str) -> None:
        super().__init__(heading)
        self.status, self.heading, self.text = status, heading, text


class Site:
    """What all routes share: the project, its people, and how pages and refusals look."""

    def __init__(self, store: Store, base_url: str = "") -> None:
        self.store = store
        self.desk = Desk(store)
        self.access = Access(store)
        self.base_url = base_url
        self.limit = RateLimit(_ATTEMPTS, _ATTEMPT_SECONDS)
        self.environment = templates()
        self.environment.filters["moment"] = _moment

    def page(self, template: str, visitor: Visitor | None, status: int = 200, **values: Any) -> Response:
        """A page made from a template."""
        from starlette.responses import HTMLResponse

        text = self.environment.get_template(template).render(
            project=self.store.setting("title"), visitor=visitor, **values
        )
        return HTMLResponse(text, status_code=status)

    def visitor(self, request: Request) -> Visitor:
        """Who asks; a stranger is refused."""
        visitor = self.access.visitor(request.cookies.get(self.access.cookie))
        if visitor is None:
            raise Refused(401, "Please come in by your link", "Open the invitation that you were sent.")
        return visitor

    def assessor(self, request: Request) -> tuple[Visitor, int]:
        """The assessor who asks."""
        visitor = self.visitor(request)
        if visitor.assessor is None:
            raise not_found()
        return visitor, visitor.assessor

    def owner(self, request: Request) -> Visitor:
        """The owner who asks; for all others the owner's pages do not exist."""
        visitor = self.visitor(request)
        if not visitor.is_owner:
            raise not_found()
        return visitor

    def check_form(self, visitor: Visitor, form: dict[str, str]) -> None:
        """Refuse a form that was not made for this session."""
        if not hmac.compare_digest(form.get("csrf", "").encode(), visitor.csrf.encode()):
            raise Refused(403, "This page is out of date", "Nothing was saved from it. Go back and load it again.")

    # ------------------------------------------------------------------ as routes
    def get(self, view: Callable[[Request], Response]) -> Callable[[Request], Any]:
        """A route that reads; it runs in a thread of its own."""
        from starlette.concurrency import run_in_threadpool

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._guarded, request, lambda: view(request))

        return endpoint

    def post(self, view: Callable[[Request, dict[str, str]], Response]) -> Callable[[Request], Any]:
        """A route that takes a form."""
        from starlette.concurrency import run_in_threadpool

        async def endpoint(request: Request) -> Response:
            try:
                async with asyncio.timeout(FORM_SECONDS):
                    form = await read_form(request.receive)
            except TimeoutError:
                return self.refusal(request, Refused(408, "That took too long", "Nothing was saved. Send it again."))
            except ValueError:
                return self.refusal(request, Refused(400, "That cannot be read", "The form is not one of ours."))
            return await run_in_threadpool(self._guarded, request, lambda: view(request, form))

        return endpoint

    def _guarded(self, request: Request, view: Callable[[], Response]) -> Response:
        try:
            with unavailable(self.store.path):
                try:
                    return view()
                except Refused as refused:
                    return self.refusal(request, refused)
        except ProjectUnavailableError as error:
            _LOG.error("%s", error)
            return self._busy()
        except DataError as error:
            # Wrong input; what it says names no other's data. Where the project lies is the owner's alone.
            return self.refusal(request, Refused(400, "That cannot be done", error.message))

    def _busy(self) -> Response:
        """Come back later; made without a look into the project, which may be what does not work."""
        from starlette.responses import HTMLResponse

        text = self.environment.get_template("message.html").render(
            project="",
            visitor=None,
            heading="Not saved yet",
            text="The project is busy. Go back in a moment and send it again.",
            back="",
            back_text="",
        )
        return HTMLResponse(text, status_code=503, headers={"retry-after": str(_RETRY_SECONDS)})

    def refusal(self, request: Request, refused: Refused) -> Response:
        """The page that says no."""
        visitor = self.access.visitor(request.cookies.get(self.access.cookie))
        back = {"back": "/", "back_text": "To the start"} if visitor else {"back": "", "back_text": ""}
        return self.page("message.html", visitor, refused.status, heading=refused.heading, text=refused.text, **back)


def not_found() -> Refused:
    """What does not exist and what is somebody else's look the same."""
    return Refused(404, "There is no such page", "It may have been another project's, or another person's.")


def create_app(store: Store, *, base_url: str = "", hosts: Iterable[str] = (), backups: bool = True) -> App:
    """The application of a project, to be run by any ASGI server in one process.

    ``base_url`` begins the links of invitations; ``hosts`` are the names under which the server may be reached,
    empty for any; ``backups`` makes an hourly copy.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ImportError:
        raise MissingExtraError("starlette", "labeling") from None
    from gradrank.labeling.web.owner import owner_routes

    site = Site(store, base_url)
    routes = Assessors(site)

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(_hourly(store)) if backups else None
        yield
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        store.close()

    async def missing(request: Request, _error: Exception) -> Response:
        return site.refusal(request, not_found())

    application = Starlette(
        routes=[
            Route("/", site.get(routes.home)),
            Route("/join/{token}", site.get(routes.invitation), methods=["GET"]),
            Route("/join/{token}", site.post(routes.join), methods=["POST"]),
            Route("/leave", site.post(routes.leave), methods=["POST"]),
            Route("/work", site.get(routes.next)),
            Route("/task/{number}", site.get(routes.work)),
            Route("/task/{number}/vote", site.post(routes.vote), methods=["POST"]),
            Route("/task/{number}/pause", site.post(routes.pause), methods=["POST"]),
            Route("/task/{number}/resume", site.post(routes.pause), methods=["POST"]),
            Route("/task/{number}/activity", site.post(routes.activity), methods=["POST"]),
            *owner_routes(site),
            Mount("/static", StaticFiles(directory=str(resources.files("gradrank.labeling.web") / "static"))),
        ],
        lifespan=lifespan,
        exception_handlers={404: missing, 405: missing},
    )
    return Guard(application, hosts, base_url)


async def _hourly(store: Store) -> None:
    while True:
        await asyncio.sleep(BACKUP_SECONDS)
        try:
            await asyncio.to_thread(backup, store)
        except (DataError, OSError, sqlite3.Error) as error:
            # A full disk must not end the copies for good; the votes themselves are refused if they cannot be kept.
            _LOG.error("no backup was made: %s", error)


class Assessors:
    """The pages of assessors."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.desk = site.desk

    # ------------------------------------------------------------------ coming and going
    def invitation(self, request: Request) -> Response:
        """What a link shows: a button. Programs that follow links to preview them begin no session."""
        token = request.path_params["token"]
        return self.site.page("join.html", None, name=self._invited(request, token), token=token)

    def join(self, request: Request, _form: dict[str, str]) -> Response:
        """Begin a session."""
        token = request.path_params["token"]
        self._invited(request, token)
        value = self.site.access.enter(token)
        if value is None:
            raise not_found()
        response = _redirect("/")
        response.set_cookie(
            self.site.access.cookie,
            value,
            max_age=30 * 24 * 3600,
            httponly=True,
            samesite="lax",
            # The public address tells, not the proxy: not every proxy says that it was asked by TLS.
            secure=self.site.base_url.startswith("https://") or request.url.scheme == "https",
        )
        return response

    def _invited(self, request: Request, token: str) -> str:
        # A good link opens whoever else has failed: behind some proxies all people are one source.
        name = self.site.access.welcome(token)
        if name is not None:
            return name
        source = request.client.host if request.client else "unknown"
        if self.site.limit.blocked(source):
            raise Refused(429, "Too many attempts", "Wait a minute, then open your link again.")
        self.site.limit.failed(source)
        raise Refused(404, "This link is not valid", "It may have been replaced by a newer one.")

    def leave(self, request: Request, form: dict[str, str]) -> Response:
        """End the session."""
        self.site.check_form(self.site.visitor(request), form)
        self.site.access.leave(request.cookies[self.site.access.cookie])
        response = _redirect("/")
        response.delete_cookie(self.site.access.cookie)
        return response

    # ------------------------------------------------------------------ working
    def home(self, request: Request) -> Response:
        """The assessor's queries."""
        visitor = self.site.visitor(request)
        if visitor.assessor is None:
            return _redirect("/owner")
        return self.site.page("home.html", visitor, **home_page(self.desk, visitor.assessor))

    def next(self, request: Request) -> Response:
        """To the next query that is not done."""
        _visitor, assessor = self.site.assessor(request)
        number = self.desk.next_of(assessor)
        return _redirect("/" if number is None else f"/task/{number}")

    def work(self, request: Request) -> Response:
        """The open question."""
        visitor, assessor = self.site.assessor(request)
        work = self._own(request, assessor)
        name, values = work_page(self.desk, work, request.query_params.get("said", ""))
        return self.site.page(name, visitor, **values)

    def vote(self, request: Request, form: dict[str, str]) -> Response:
        """Take a vote, then show the open question."""
        visitor, assessor = self.site.assessor(request)
        number = self._own(request, assessor).assignment.id
        self.site.check_form(visitor, form)
        vote = _vote(form)
        answer = self.desk.vote(number, vote, assessor)
        said = answer.value
        if answer is not Answer.STALE:
            said = {Verdict.UNDO: "undone", Verdict.SKIP: "skipped"}.get(vote.verdict, said)
        return _redirect(f"/task/{number}?said={said}")

    def pause(self, request: Request, form: dict[str, str]) -> Response:
        """Stop or start the clock."""
        visitor, assessor = self.site.assessor(request)
        number = self._own(request, assessor).assignment.id
        self.site.check_form(visitor, form)
        self.desk.pause(number, request.url.path.endswith("/pause"), form.get("token", ""), assessor)
        return _redirect(f"/task/{number}")

    def activity(self, request: Request, form: dict[str, str]) -> Response:
        """Hear from a page."""
        from starlette.responses import Response

        visitor, assessor = self.site.assessor(request)
        number = self._own(request, assessor).assignment.id
        self.site.check_form(visitor, form)
        self.desk.heard(number, form.get("token", ""), form.get("kind", ""), assessor)
        return Response(status_code=204)

    def _own(self, request: Request, assessor: int) -> Work:
        number = request.path_params["number"]
        if not number.isascii() or not number.isdigit() or len(number) > _LONGEST_NUMBER:
            raise not_found()
        try:
            return self.desk.work(int(number), assessor)
        except ProjectUnavailableError:
            raise
        except DataError:
            raise not_found() from None


def _vote(form: dict[str, str]) -> Vote:
    """A form as a vote; grades come as ``grade-0`` to ``grade-4``."""
    verdict, _, grade = form.get("verdict", "").partition("-")
    try:
        vote = Vote(
            seq=int(form["seq"]),
            token=form["token"],
            verdict=Verdict(verdict),
            shown=tuple(int(number) for number in form.get("shown", "").split()),
            grade=int(grade) if grade else None,
            comment=form.get("comment", ""),
        )
    except (KeyError, ValueError):
        raise Refused(400, "That cannot be read", "The form is not one of ours.") from None
    if not 8 <= len(vote.token) <= 64 or (vote.verdict is Verdict.GRADE) != bool(grade):
        raise Refused(400, "That cannot be read", "The form is not one of ours.")
    return vote


def _redirect(path: str) -> Response:
    from starlette.responses import RedirectResponse

    # 303: whatever was sent, the answer is fetched, so that loading it again sends nothing again.
    return RedirectResponse(path, status_code=303)


def _moment(seconds: float | None) -> str:
    return "never" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
