"""The owner's pages: board, people, assignment, files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.errors import DataError, ProjectUnavailableError
from gradrank.labeling.project.assignment import DESIGNS, GRADES, TOOLS, assign, summarize_plan, tool_strategies, void
from gradrank.labeling.project.backup import KEPT, backup, backup_folder
from gradrank.labeling.project.board import board
from gradrank.labeling.project.exporting import EXPORTS
from gradrank.labeling.strategies import DEFAULT_STRATEGY, STRATEGIES
from gradrank.labeling.web.documents import plain
from gradrank.labeling.web.pages import LISTED

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from gradrank.labeling.web.app import Site

_EXPORTS = {
    "topk": ("topk.jsonl", "the ordered top k with tie groups, one line for each assessor and query"),
    "qrels": ("qrels.txt", "one label for each document, for trec_eval and gradrank"),
    "preferences": ("preferences.txt", "lines: query, document, document, winner"),
    "preferences-csv": ("preferences.csv", "the same for a spreadsheet"),
    "events": ("events.jsonl", "everything, as it was given"),
    "events-csv": ("events.csv", "the same for a spreadsheet"),
    "report": ("report.html", "times, agreement, tests"),
}
_FIELDS = ("assessors", "overlap", "k", "strategy", "tools", "design", "seed")
_STATUS_ORDER = {"open": 0, "new": 1, "done": 2, "void": 3}


def owner_routes(site: Site) -> list[Route]:
    """All routes of the owner."""
    from starlette.routing import Route

    pages = Owner(site)
    return [
        Route("/owner", site.get(pages.board), methods=["GET"]),
        Route("/owner/people", site.get(pages.people), methods=["GET"]),
        Route("/owner/assign", site.get(pages.assign_form), methods=["GET"]),
        Route("/owner/assign", site.post(pages.assign), methods=["POST"]),
        Route("/owner/files", site.get(pages.files), methods=["GET"]),
        Route("/owner/export/{name}", site.get(pages.export), methods=["GET"]),
        Route("/owner/invite", site.post(pages.invite), methods=["POST"]),
        Route("/owner/guidelines", site.post(pages.guidelines), methods=["POST"]),
        Route("/owner/void", site.post(pages.void), methods=["POST"]),
        Route("/owner/backup", site.post(pages.backup), methods=["POST"]),
    ]


class Owner:
    """The pages of the owner; every one of them begins by asking whether it is the owner."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.store = site.store

    # ------------------------------------------------------------------ looking
    def board(self, request: Request) -> Response:
        """How far everybody is."""
        visitor = self.site.owner(request)
        now = board(self.site.desk)
        listed = sorted(now.assignments, key=lambda item: (_STATUS_ORDER[item.status], item.number))[:LISTED]
        return self.site.page("board.html", visitor, board=now, listed=listed, notice="", warning=False)

    def people(self, request: Request) -> Response:
        """Assessors, their links, the guidelines."""
        visitor = self.site.owner(request)
        base = self.site.base_url or str(request.base_url).rstrip("/")
        people = [
            {"name": plain(name), "link": f"{base}/join/{self.site.access.token(number, edition)}"}
            for number, name, edition in self.store.read().execute("SELECT id, name, edition FROM assessor ORDER BY id")
        ]
        return self.site.page(
            "people.html",
            visitor,
            people=people,
            guidelines=self.store.setting("guidelines"),
            notice="",
            warning=False,
        )

    def files(self, request: Request) -> Response:
        """Exports, backups, and what was done."""
        visitor = self.site.owner(request)
        copies = sorted(backup_folder(self.store.path).glob("*.db"), reverse=True)
        audit = self.store.read().execute("SELECT at, action, detail FROM audit ORDER BY id DESC LIMIT ?", (LISTED,))
        return self.site.page(
            "files.html",
            visitor,
            exports={name: text for name, (_file, text) in _EXPORTS.items()},
            backups=[{"name": copy.name, "size": f"{copy.stat().st_size / 1e6:.1f} MB"} for copy in copies[:KEPT]],
            kept=KEPT,
            audit=[{"at": at, "action": action, "detail": plain(detail)} for at, action, detail in audit],
            notice="",
            warning=False,
        )

    def export(self, request: Request) -> Response:
        """A file to download; never shown in the browser, for its content is not ours."""
        from starlette.responses import Response

        self.site.owner(request)
        name = request.path_params["name"]
        if name not in _EXPORTS:
            from gradrank.labeling.web.app import not_found

            raise not_found()
        file = _EXPORTS[name][0]
        if name == "report":
            content = self._report().encode()
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / file
                EXPORTS[name.removesuffix("-csv")](self.store, path)
                content = path.read_bytes()
        headers = {"content-disposition": f'attachment; filename="{file}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def _report(self) -> str:
        from gradrank.labeling.analysis.report import labeling_report
        from gradrank.labeling.project.results import outcomes, records

        report = labeling_report(records(self.store), outcomes(self.store))
        return report.to_html(self.store.setting("title"))

    # ------------------------------------------------------------------ doing
    def invite(self, request: Request, form: dict[str, str]) -> Response:
        """Make an assessor, or a new link for one."""
        self._checked(request, form)
        self.site.access.invite(form.get("name", ""), renew="renew" in form)
        return self._back("/owner/people")

    def guidelines(self, request: Request, form: dict[str, str]) -> Response:
        """Change the guidelines."""
        self._checked(request, form)
        self.store.set_setting("guidelines", form.get("guidelines", "").replace("\r\n", "\n").strip())
        return self._back("/owner/people")

    def void(self, request: Request, form: dict[str, str]) -> Response:
        """Take an assignment out of the results."""
        self._checked(request, form)
        void(self.store, _number(form, "assignment"), form.get("reason", ""))
        return self._back("/owner")

    def backup(self, request: Request, form: dict[str, str]) -> Response:
        """Make a copy now."""
        self._checked(request, form)
        backup(self.store)
        return self._back("/owner/files")

    def assign_form(self, request: Request) -> Response:
        """Ask how to assign."""
        people = self.store.read().execute("SELECT count(*) FROM assessor").fetchone()[0]
        form = {
            "assessors": str(max(people, 1)),
            "overlap": "1",
            "k": "10",
            "strategy": DEFAULT_STRATEGY,
            "tools": "pairs",
            "design": DESIGNS[0],
            "seed": "0",
        }
        return self._assign_page(request, form, None, "")

    def assign(self, request: Request, form: dict[str, str]) -> Response:
        """Preview assignments, or make them."""
        self._checked(request, form)
        preview = form.get("do") != "assign"
        try:
            strategies = tool_strategies(form.get("strategy", ""), form.get("tools", ""), form.get("design", ""))
            planned = assign(
                self.store,
                assessors=_number(form, "assessors"),
                overlap=_number(form, "overlap"),
                k=_number(form, "k"),
                strategies=strategies,
                design=form.get("design", ""),
                seed=_number(form, "seed"),
                preview=preview,
            )
        except ProjectUnavailableError:
            raise
        except DataError as error:
            return self._assign_page(request, form, None, error.message)
        if not preview:
            return self._back("/owner")
        return self._assign_page(request, form, planned, "" if planned else "Everything is assigned already.")

    def _assign_page(self, request: Request, form: dict[str, str], planned: Any, notice: str) -> Response:
        visitor = self.site.owner(request)
        return self.site.page(
            "assign.html",
            visitor,
            form={
                name: form.get(name, "")
                for name in ("assessors", "overlap", "k", "strategy", "tools", "design", "seed")
            },
            strategies=[item for item in STRATEGIES.values() if item.name != GRADES],
            tools=TOOLS,
            designs=DESIGNS,
            plan=None if planned is None else summarize_plan(planned),
            columns=[] if planned is None else sorted({item.strategy for item in planned}),
            count=0 if planned is None else len(planned),
            notice=notice,
        )

    def _checked(self, request: Request, form: dict[str, str]) -> None:
        self.site.check_form(self.site.owner(request), form)

    def _back(self, path: str) -> Response:
        from starlette.responses import RedirectResponse

        return RedirectResponse(path, status_code=303)


def _number(form: dict[str, str], name: str) -> int:
    text = form.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise DataError(f"{name} is {text!r}, expected a whole number")
    return int(text)
