"""Counters and times of a service, in the text that Prometheus reads; each service has a registry of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gradrank.errors import MissingExtraError
from gradrank.serve.alignment import Oddities
from gradrank.serve.served_models import ServedModel
from gradrank.version import __version__

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector
    from prometheus_client.registry import Collector
except ImportError:
    raise MissingExtraError("prometheus-client", "serve") from None

CONTENT_TYPE = CONTENT_TYPE_LATEST
_MODEL_INFO = "gradrank_model_info"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DOCUMENTS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)


class Metrics:
    """What a service counts. Names that strangers choose never become labels: there would be no end of them.

    Parameters
    ----------
    shared
        The folder where several processes of one service keep their numbers: prometheus_client's, which must have been
        loaded with it as PROMETHEUS_MULTIPROC_DIR. None = this process is alone.
    """

    def __init__(self, shared: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self._shared = shared
        self._shown: set[tuple[str, str]] = set()
        Gauge(
            "gradrank_version_info",
            "Version of gradrank",
            ["version"],
            registry=self.registry,
            multiprocess_mode="livemax",
        ).labels(__version__).set(1)
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
        self.in_flight = Gauge(
            "gradrank_requests_in_flight",
            "Requests being parsed or scored",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.waiting = Gauge(
            "gradrank_requests_waiting",
            "Requests whose body is arriving, or that wait for their turn",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.models = Gauge(
            _MODEL_INFO,
            "Models served",
            ["model", "sha256"],
            registry=self.registry,
            multiprocess_mode="livemax",
        )
        self.reloads = Counter(
            "gradrank_reloads", "Model files loaded again", ["model", "result"], registry=self.registry
        )
        self.stale = Gauge(
            "gradrank_model_stale",
            "1 if the model's newest file is bad",
            ["model"],
            registry=self.registry,
            multiprocess_mode="livemax",
        )
        self.logged = Counter(
            "gradrank_log_events", "Events of the traffic log", ["event", "result"], registry=self.registry
        )

    def show_models(self, models: Iterable[ServedModel], stale: Iterable[str] = ()) -> None:
        """Tell which models are served now."""
        bad = set(stale)
        now = {(model.label, model.sha256) for model in models}
        for labels in self._shown - now:
            # Shared numbers cannot be removed; those of 0 are left out when they are shown.
            self.models.labels(*labels).set(0)
            if self._shared is None:
                self.models.remove(*labels)
        for labels in now:
            self.models.labels(*labels).set(1)
            self.stale.labels(labels[0]).set(labels[0] in bad)
        self._shown = now

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
        """All of it as Prometheus reads it; of all processes of the service."""
        if self._shared is None:
            return bytes(generate_latest(self.registry))
        together = CollectorRegistry()
        together.register(_AllProcesses(self._shared))
        return bytes(generate_latest(together))


class _AllProcesses(Collector):
    """The numbers of all processes added up, without models that no process serves any more."""

    def __init__(self, folder: Path) -> None:
        self._files = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        for metric in self._files.collect():  # type: ignore[no-untyped-call]
            if metric.name == _MODEL_INFO:
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield metric
