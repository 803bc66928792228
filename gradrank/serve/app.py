"""The HTTP application: routes, limits, keys, access log. Nothing here knows how a ranking is made."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from gradrank.errors import MissingExtraError
from gradrank.serve.api_keys import ApiKeys
from gradrank.serve.bodies import Body
from gradrank.serve.line_log import LineLog, now
from gradrank.serve.metrics import CONTENT_TYPE
from gradrank.serve.openapi import description
from gradrank.serve.request_error import RequestError
from gradrank.serve.requests import parse_click_request, parser_of
from gradrank.serve.service import Service

try:
    import orjson
except ImportError:
    raise MissingExtraError("orjson", "serve") from None
try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError:
    raise MissingExtraError("starlette", "serve") from None

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MODEL_HEADER = "x-gradrank-model"
_OPEN_ROUTES = ("/healthz", "/readyz")
_ROUTES = ("/v1/rank", "/v1/click", "/v1/models", "/healthz", "/readyz", "/metrics", "/openapi.json")
# Bodies above this are read and scored on another thread, so that health checks are answered meanwhile.
_LARGE_BODY = 1 << 20
_THREADS = 2


class App:
    """An ASGI application around a service.

    Parameters
    ----------
    service
        What answers the requests.
    keys
        Who may ask; everybody without keys.
    access_log
        Where one line per request goes; None = nowhere.
    on_start
        Called when the application starts, with itself; gives a coroutine that runs until the end.
    """

    def __init__(
        self,
        service: Service,
        *,
        keys: ApiKeys | None = None,
        access_log: LineLog | None = None,
        on_start: Callable[[App], Awaitable[None]] | None = None,
    ) -> None:
        self.service = service
        self._keys = keys or ApiKeys(())
        self._access_log = access_log
        self._on_start = on_start
        limits = service.settings.limits
        self._slots = asyncio.Semaphore(limits.at_once)
        self._room = asyncio.Semaphore(limits.at_once)
        self._admitted = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="gradrank-serve")
        self._openapi = _json(description(limits))
        self._app = Starlette(
            routes=[
                Route("/v1/rank", self._rank, methods=["POST"]),
                Route("/v1/click", self._click, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/healthz", self._health, methods=["GET"]),
                Route("/readyz", self._readiness, methods=["GET"]),
                Route("/metrics", self._show_metrics, methods=["GET"]),
                Route("/openapi.json", self._show_openapi, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _http_error},
            lifespan=self._lifespan,
        )
        # Other spellings of an address are other addresses: a redirection would trust the host that a client names.
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request: keys before, counting and the access log after."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500
        facts: dict[str, Any] = {}
        scope["gradrank"] = facts

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if scope["path"] not in _OPEN_ROUTES and not self._keys.admit(_key_of(scope)):
                answer = _answer({"error": "a valid API key is needed: Authorization: Bearer KEY"}, 401)
                answer.headers["www-authenticate"] = "Bearer"
                self.service.metrics.refused.labels("key").inc()
                await answer(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - began
            route = scope["path"] if scope["path"] in _ROUTES else "other"
            self.service.metrics.requests.labels(route, str(status)).inc()
            self.service.metrics.seconds.labels(route).observe(seconds)
            if self._access_log is not None:
                line = {
                    "time": now(),
                    "process": os.getpid(),
                    "client": (scope.get("client") or ("",))[0],
                    "method": scope["method"],
                    "path": scope["path"][:200],
                    "status": status,
                    "ms": round(1e3 * seconds, 3),
                }
                self._access_log.write(line | facts)

    # ------------------------------------------------------------------ routes
    async def _rank(self, request: Request) -> Response:
        return await self._limited(request, self._rank_body)

    def _rank_body(self, request: Request, body: bytes) -> Response:
        parse = parser_of(request.headers.get("content-type", ""))
        pairs = request.query_params.multi_items()
        if len(dict(pairs)) < len(pairs):
            raise RequestError("the address has a field twice")
        parsed = parse(body, dict(pairs), self.service.settings.limits.documents)
        answer = self.service.rank(parsed, request.headers.get(MODEL_HEADER))
        request.scope["gradrank"] |= {
            "documents": parsed.documents.count,
            "models": answer["models"],
            "id": answer["id"],
        }
        return _answer(answer)

    async def _click(self, request: Request) -> Response:
        return await self._limited(request, self._click_body)

    def _click_body(self, request: Request, body: bytes) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError("the content type is not application/json", 415, "content type")
        parsed = parse_click_request(body, self.service.settings.limits.documents)
        answer = self.service.click(parsed)
        request.scope["gradrank"] |= {"id": parsed.id}
        return _answer(answer, 202)

    async def _models(self, request: Request) -> Response:
        table = self.service.table
        return _answer({
            "models": [
                {
                    "name": model.source.name,
                    "version": model.source.version,
                    "kind": model.ranker.kind,
                    "features": list(model.ranker.feature_names),
                    "sha256": model.sha256,
                    "stale": table.stale.get(model.label),
                }
                for model in table
            ]
        })  # fmt: skip

    async def _health(self, request: Request) -> Response:
        return _answer({"status": "ok"})

    async def _readiness(self, request: Request) -> Response:
        if self._is_full():
            return _answer({"error": "too many requests are waiting"}, 503)
        return _answer({"status": "ready"})

    async def _show_metrics(self, request: Request) -> Response:
        return Response(self.service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def _show_openapi(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    # ------------------------------------------------------------------ limits
    async def _limited(self, request: Request, work: Callable[[Request, bytes], Response]) -> Response:
        """Read a body and work on it within the limits; whatever is wrong is an answer."""
        metrics = self.service.metrics
        try:
            return await self._in_turn(request, work)
        except RequestError as error:
            metrics.refused.labels(error.reason).inc()
            request.scope["gradrank"]["error"] = str(error)
            answer = _answer({"error": str(error)}, error.status)
            if error.status == 503:
                answer.headers["retry-after"] = "1"
            return answer
        except ClientDisconnect:
            metrics.refused.labels("disconnected").inc()
            return _answer({"error": "the client has gone"}, 400)

    async def _in_turn(self, request: Request, work: Callable[[Request, bytes], Response]) -> Response:
        limits = self.service.settings.limits
        _check_length(request, limits.bytes)
        if self._is_full():
            raise RequestError("too many requests are waiting", 503, "waiting")
        ends = time.monotonic() + limits.seconds
        body = Body(request.stream(), limits.bytes, self._room)
        self._admitted += 1
        try:
            # The place is taken with the whole body in hand: who sends slowly keeps nobody from being answered.
            content = await self._with_place(body, ends)
            try:
                return await self._worked(request, content, work, ends)
            finally:
                self.service.metrics.in_flight.dec()
                self._slots.release()
        finally:
            body.release()
            self._admitted -= 1

    async def _with_place(self, body: Body, ends: float) -> bytes:
        """Wait for the whole body, and then for a place, which is the caller's to give back."""
        metrics, seconds = self.service.metrics, self.service.settings.limits.seconds
        metrics.waiting.inc()
        try:
            content = await body.arrived(seconds, ends)
            async with asyncio.timeout(ends - time.monotonic()) if self._slots.locked() else nullcontext():
                await self._slots.acquire()
        except TimeoutError:
            raise RequestError("the server is too busy to answer in time", 503, "busy") from None
        finally:
            metrics.waiting.dec()
        metrics.in_flight.inc()
        return content

    async def _worked(
        self, request: Request, content: bytes, work: Callable[[Request, bytes], Response], ends: float
    ) -> Response:
        if len(content) < _LARGE_BODY:
            return work(request, content)
        done = asyncio.get_running_loop().run_in_executor(self._threads, work, request, content)
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                # Shielded: a kernel cannot be stopped, and its slot must not be given away before it ends.
                return await asyncio.shield(done)
        except TimeoutError:
            await asyncio.wait([done])
            done.exception()
            seconds = self.service.settings.limits.seconds
            raise RequestError(f"the request took longer than {seconds:g} seconds", 503, "slow") from None

    def _is_full(self) -> bool:
        limits = self.service.settings.limits
        return self._admitted >= limits.at_once + limits.waiting

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> Any:
        task = None if self._on_start is None else asyncio.ensure_future(self._on_start(self))
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
            self._threads.shutdown(wait=True)


def _check_length(request: Request, most: int) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise RequestError("the body is compressed, expected it as it is", 415, "content type")
    length = request.headers.get("content-length")
    if length is not None and length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise RequestError(f"the body is of {int(length[:20]):,} bytes, expected at most {most:,}", 413, "bytes")


def _key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].strip().decode("latin-1"))
        if name == b"x-api-key":
            return str(value.decode("latin-1"))
    return ""


def _json(value: Any) -> bytes:
    try:
        # Ten times as fast as Python's own where there are many numbers; scores are finite here.
        content: bytes = orjson.dumps(value)
    except TypeError:  # half a character, in the name of a feature
        content = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return content


def _answer(value: Any, status: int = 200) -> Response:
    return Response(_json(value), status, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {
        404: f"there is no such address, expected one of {', '.join(_ROUTES)}",
        405: "this address has another method",
    }
    return _answer({"error": told.get(error.status_code, str(error.detail))}, error.status_code)
