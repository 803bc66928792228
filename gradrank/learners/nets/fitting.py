"""From a learner's settings to a trained net: the module, its batches, its state on disk."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.checkpoint import keeper, resume
from gradrank.learners.base.loop import Callback, Record, run_course
from gradrank.learners.base.monitor import Monitor, watched_sets
from gradrank.learners.base.positions import shown_positions
from gradrank.learners.base.something_to_learn import announced_pairs, check_labels
from gradrank.learners.nets.epochs import EpochCourse
from gradrank.learners.nets.settings import NetSettings
from gradrank.learners.nets.torch_nets import (
    FOR_WEIGHTS,
    Weights,
    build,
    chance,
    device_of,
    initialize,
    ranker_of,
    reproducible,
)
from gradrank.learners.nets.towers import TwoTowers, relevance_of, terms_of
from gradrank.learners.nets.training import Batches, NetState, NetTrainer, without_features
from gradrank.models.nets.module import ModuleRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.ranker import Ranker
from gradrank.objectives import Objective

if TYPE_CHECKING:
    from gradrank.learners.nets.learner import NetLearner


def fit_net(
    learner: NetLearner,
    train: RankingData,
    valid: Mapping[str, RankingData],
    objective: Objective,
    settings: NetSettings,
    callbacks: Sequence[Callback],
    run: Mapping[str, Any],
) -> tuple[Record, NetState, Ranker]:
    """Train the net that a learner describes; what happened, the last state, and the ranker of the best epoch."""
    check_labels(train, objective)
    pairs = announced_pairs(objective.bind(without_features(train), n_jobs=settings.n_jobs), train, callbacks)
    if len(settings.rates) > 1 and not valid:
        raise TrainingError("several learning rates need validation data to choose from: give one, or valid=…")
    device = device_of(settings.device)
    scaling = Scaling.learned(train.X, settings.scaling)
    names = train.feature_names
    watched = watched_sets(train, valid, settings.train_measure)
    with reproducible(settings.random_state):
        net, restarted = _net(learner.module, train.n_features, settings, _constant(objective, train))
        served, positions, places = net, None, None
        if learner.positions is not None:
            positions, places = np.unique(shown_positions(train, learner.positions), return_inverse=True)
            net, restarted = _with_positions(net, restarted, len(positions), learner.position_dropout)
        net.to(device)

        def ranker(weights: Weights) -> Ranker:
            weights = weights if positions is None else relevance_of(weights)
            if learner.module is None:
                return ranker_of(weights, settings, scaling, names)
            module = copy.deepcopy(served)
            module.load_state_dict(weights)
            return ModuleRanker(module, feature_names=names, scaling=scaling)

        batches = Batches(train, objective, scaling, settings, device, places)
        trainer = NetTrainer(net, restarted, batches, settings)
        course = EpochCourse(trainer, ranker, watched, settings)
        record, keep = None, None
        if learner.checkpoint is not None:
            record = resume(course, learner.checkpoint, run)
            keep = keeper(course, learner.checkpoint, run, learner.checkpoint_every)
        monitor = Monitor.of_sets(watched, valid, learner._measure(), n_jobs=settings.n_jobs)
        record = run_course(course, monitor, callbacks=callbacks, record=record, keeper=keep)
        record.pairs = pairs
        best = ranker(course.state.best_weights)
        if isinstance(best, ModuleRanker):
            best.module.cpu().eval()
        if positions is not None:
            learner.position_terms_ = terms_of(course.state.best_weights, positions)
        return record, course.state, best


def _constant(objective: Objective, train: RankingData) -> float | None:
    """What scores may start from; None if the objective does not see a constant."""
    return None if objective.shift_invariant else objective.bind(train).start()


def _net(
    given: Any, n_features: int, settings: NetSettings, constant: float | None
) -> tuple[torch.nn.Module, Callable[[int], None]]:
    """The net, and what gives it the random weights of the n-th start."""
    if given is None:
        built = build(n_features, settings)

        def draw(number: int) -> None:
            initialize(built, settings, chance(settings.random_state, FOR_WEIGHTS, number), constant)

        draw(0)
        return built, draw
    if isinstance(given, torch.nn.Module):
        net = copy.deepcopy(given)
    else:
        torch.manual_seed(_seed(settings, 0))
        net = given(n_features)
        if not isinstance(net, torch.nn.Module):
            raise TrainingError(f"module gives {type(net).__name__}, expected a torch.nn.Module")

    def redraw(number: int) -> None:
        # The first start takes the module as it was given; later ones, what its layers draw by themselves.
        if number == 0:
            return
        torch.manual_seed(_seed(settings, number))
        for part in net.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()

    return net, redraw


def _with_positions(
    net: torch.nn.Module, restarted: Callable[[int], None], n_positions: int, dropout: float
) -> tuple[torch.nn.Module, Callable[[int], None]]:
    """The net with a second tower for the positions, and what starts both anew."""
    towers = TwoTowers(net, n_positions, dropout)

    def redraw(number: int) -> None:
        restarted(number)
        towers.forget_positions()

    return towers, redraw


def _seed(settings: NetSettings, number: int) -> int:
    return int(chance(settings.random_state, FOR_WEIGHTS, number).integers(2**62))
