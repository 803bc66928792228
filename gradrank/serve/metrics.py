"""Counters and times of a service, in the text that Prometheus reads; each service has a registry of its own."""

from __future__ import annotations

from collections.abc import Iterable

from gradrank.errors import MissingExtraError
from gradrank.serve.alignment import Oddities
from gradrank.serve.served_models import ServedModel
from gradrank.version import __version__

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
except ImportError:
    raise MissingExtraError("prometheus-client", "serve") from None

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DOCUMENTS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)


class Metrics:
    """What a service counts. Names that strangers choose never become labels: there would be no end of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        Gauge("gradrank_version_info", "Version of gradrank", ["version"], registry=self.registry).labels(
            __version__
        ).set(1)
        self.requests = Counter("gradrank_requests", "Requests answered", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "gradrank_request_seconds",
            "Seconds from request to answer",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.scoring_seconds = Histogram(
            "gradrank_scoring_seconds", "Seconds of scoring alone", ["model"], buckets=_SECONDS, registry=self.registry
        )
        self.documents = Counter("gradrank_documents", "Documents scored", ["model"], registry=self.registry)
        self.list_length = Histogram(
            "gradrank_documents_per_request", "Documents per request", buckets=_DOCUMENTS, registry=self.registry
        )
        self.rankings = Counter(
            "gradrank_rankings", "Lists answered, by what chose the model", ["model", "by"], registry=self.registry
        )
        self.missing_features = Counter(
            "gradrank_missing_features",
            "Documents that lacked a feature of the model",
            ["model", "feature"],
            registry=self.registry,
        )
        self.unknown_features = Counter(
            "gradrank_unknown_features", "Features sent that the model does not know", ["model"], registry=self.registry
        )
        self.missing_values = Counter(
            "gradrank_missing_values", "Values sent as missing", ["model"], registry=self.registry
        )
        self.new_categories = Counter(
            "gradrank_new_categories",
            "Values of categorical features that the model does not know",
            ["model"],
            registry=self.registry,
        )
        self.refused = Counter("gradrank_refused", "Requests refused, by reason", ["reason"], registry=self.registry)
        self.in_flight = Gauge("gradrank_requests_in_flight", "Requests being read or scored", registry=self.registry)
        self.waiting = Gauge("gradrank_requests_waiting", "Requests waiting for their turn", registry=self.registry)
        self.models = Gauge("gradrank_model_info", "Models served", ["model", "sha256"], registry=self.registry)
        self.reloads = Counter(
            "gradrank_reloads", "Model files loaded again", ["model", "result"], registry=self.registry
        )
        self.stale = Gauge(
            "gradrank_model_stale", "1 if the model's newest file is bad", ["model"], registry=self.registry
        )
        self.logged = Counter(
            "gradrank_log_events", "Events of the traffic log", ["event", "result"], registry=self.registry
        )

    def show_models(self, models: Iterable[ServedModel], stale: Iterable[str] = ()) -> None:
        """Tell which models are served now."""
        self.models.clear()
        bad = set(stale)
        for model in models:
            self.models.labels(model.label, model.sha256).set(1)
            self.stale.labels(model.label).set(model.label in bad)

    def count_oddities(self, model: ServedModel, odd: Oddities) -> None:
        """Count what a request lacked or had too much."""
        for feature, count in odd.missing.items():
            self.missing_features.labels(model.label, feature).inc(count)
        if odd.unknown:
            self.unknown_features.labels(model.label).inc(sum(odd.unknown.values()))
        if odd.null_values:
            self.missing_values.labels(model.label).inc(odd.null_values)
        if odd.new_categories:
            self.new_categories.labels(model.label).inc(odd.new_categories)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return bytes(generate_latest(self.registry))
