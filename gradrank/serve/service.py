"""What a service does with a parsed request: choose, score, order, interleave, log."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.traffic import Impression, click_event, shown_event
from gradrank.errors import GradrankError, ScoreError
from gradrank.evaluation.interleaving import team_draft
from gradrank.ranking import order_of_list
from gradrank.serve.alignment import MissingFeature, Oddities, aligned
from gradrank.serve.choice import chosen_models, unit_label
from gradrank.serve.line_log import LineLog, now
from gradrank.serve.metrics import Metrics
from gradrank.serve.request_error import RequestError
from gradrank.serve.requests import ClickRequest, RankRequest
from gradrank.serve.served_models import ModelTable, ServedModel
from gradrank.serve.settings import Settings


@dataclass(frozen=True, eq=False)
class Scored:
    """One model's view of a request."""

    model: ServedModel
    scores: NDArray[np.float64]
    order: NDArray[np.int64]
    odd: Oddities


class Service:
    """Answers requests with the models of a table.

    Parameters
    ----------
    settings
        Models, policies, shares.
    log
        Where lists and clicks are kept; None = nowhere.
    metrics
        What counts; of its own unless given.
    """

    def __init__(self, settings: Settings, log: LineLog | None = None, metrics: Metrics | None = None) -> None:
        self.settings = settings
        self.table = ModelTable(settings.sources)
        self.metrics = metrics or Metrics()
        self.log = log
        self.metrics.show_models(self.table)

    # ------------------------------------------------------------------ ranking
    def rank(self, request: RankRequest, header: str | None = None) -> dict[str, Any]:
        """The answer to a request; ``header`` names a model if the request itself does not."""
        id = request.id or secrets.token_hex(12)
        named = request.model or header or None
        models = [
            self.table.get(name) for name in chosen_models(self.settings, self.table.default, named, request.key or id)
        ]
        if len(models) > 1 and (request.qid is None or request.ids is None):
            raise RequestError(
                "the list is shared by two models, which needs 'qid' and 'ids' to be logged and compared"
            )
        scored = [self._scored(request, model) for model in models]
        self.metrics.list_length.observe(request.documents.count)
        teams = None
        if len(scored) == 1:
            order = scored[0].order[: request.k].tolist()
        else:
            order, teams = team_draft(
                scored[0].order.tolist(),
                scored[1].order.tolist(),
                request.k,
                random_state=f"{self.settings.salt} {id}",
            )
        by = "request" if named else "interleaving" if teams else "share" if self.settings.shares else "default"
        for item in scored:
            self.metrics.rankings.labels(item.model.label, by).inc()
        answer: dict[str, Any] = {"id": id, "models": [item.model.label for item in scored], "order": order}
        if request.ids is not None:
            answer["ids"] = [request.ids[place] for place in order]
        if len(scored) == 1:
            answer["scores"] = scored[0].scores.tolist()
        answer["logged"] = self._log_list(request, id, answer, teams)
        for item in scored:
            answer |= item.odd.told()
        return answer

    def _scored(self, request: RankRequest, model: ServedModel) -> Scored:
        settings = self.settings
        try:
            matrix, odd = aligned(request.documents, model, settings.missing_features, settings.unknown_features)
        except MissingFeature as error:
            self.metrics.count_oddities(model, error.odd)
            raise
        self.metrics.count_oddities(model, odd)
        began = time.perf_counter()
        try:
            scores = model.ranker.predict(matrix, n_jobs=1)
        except GradrankError as error:
            reason = "scores" if isinstance(error, ScoreError) else "features"
            raise RequestError(f"model {model.label} cannot score the documents: {error}", 422, reason) from None
        order = order_of_list(scores)
        self.metrics.scoring_seconds.labels(model.label).observe(time.perf_counter() - began)
        self.metrics.documents.labels(model.label).inc(len(scores))
        return Scored(model, scores, order, odd)

    def _log_list(self, request: RankRequest, id: str, answer: dict[str, Any], teams: list[int] | None) -> bool:
        """Keep the list; without names of query and documents there is nothing that clicks could be joined to."""
        if self.log is None or request.qid is None or request.ids is None:
            return False
        unit = None if request.key is None else unit_label(self.settings.salt, request.key)
        impression = Impression(id, request.qid, answer["ids"], tuple(answer["models"]), teams, unit)
        return self._write("shown", shown_event(impression, now()))

    # ------------------------------------------------------------------ clicks
    def click(self, request: ClickRequest) -> dict[str, Any]:
        """Keep clicks."""
        if self.log is None:
            raise RequestError("this server keeps no log, so that clicks cannot be kept", 409, "log")
        written = [self._write("click", click_event(request.id, docid, now())) for docid in request.docids]
        if not all(written):
            raise RequestError("the log cannot be written at the moment", 503, "log")
        return {"id": request.id, "logged": True}

    def _write(self, kind: str, event: dict[str, Any]) -> bool:
        assert self.log is not None
        written = self.log.write(event)
        self.metrics.logged.labels(kind, "written" if written else "failed").inc()
        return written
