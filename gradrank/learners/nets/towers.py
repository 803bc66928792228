"""A second tower beside a net: what positions add to clicks, whatever is shown there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.models.nets.module import scores_of

_RELEVANCE, _TERMS = "relevance.", "terms"


class TwoTowers(torch.nn.Module):  # type: ignore[misc]
    """score(x, k) = relevance(x) + term_k: a net of the features, and one number for each position.

    With the objective ``Logistic`` on clicks this is P(click) = σ(relevance(x) + term_k), additive in logit space (Guo
    et al. 2019; Yan et al. 2022): what makes clicks likely at a position goes into its term, and the relevance tower
    alone is served. Nothing but like documents at different positions keeps the towers apart. A strong logging ranker
    shows good documents on top, so that the terms also explain what is relevance; with ``dropout`` each document's
    term is left out with that probability in every step of training, and the relevance tower has to explain more by
    itself (Zhang et al. 2023).

    Rows are features with the place of the position, from 0, in a last column.

    >>> towers = TwoTowers(torch.nn.Linear(2, 1), 3)
    >>> towers(torch.tensor([[1.0, 2.0, 0.0], [1.0, 2.0, 2.0]])).shape
    torch.Size([2])
    """

    def __init__(self, relevance: torch.nn.Module, n_positions: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.relevance = relevance
        self.terms = torch.nn.Parameter(torch.zeros(n_positions))
        self.dropout = dropout

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores of documents at their positions."""
        terms = self.terms[rows[:, -1].long()]
        if self.training and self.dropout > 0:
            terms = terms * (torch.rand(len(terms), device=terms.device) >= self.dropout)
        return scores_of(self.relevance, rows[:, :-1]) + terms

    def forget_positions(self) -> None:
        """Set all terms to 0, for another start."""
        with torch.no_grad():
            self.terms.zero_()


def relevance_of(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of the relevance tower, as its module names them.

    >>> list(relevance_of(TwoTowers(torch.nn.Linear(2, 1), 3).state_dict()))
    ['weight', 'bias']
    """
    return {name.removeprefix(_RELEVANCE): value for name, value in weights.items() if name.startswith(_RELEVANCE)}


def terms_of(weights: Mapping[str, torch.Tensor], positions: NDArray[np.int64]) -> dict[int, float]:
    """The term of each position, 0 for the topmost: a constant could as well belong to the other tower.

    >>> terms_of({"terms": torch.tensor([1.0, 0.5])}, np.array([1, 3]))
    {1: 0.0, 3: -0.5}
    """
    terms = weights[_TERMS].numpy().astype(np.float64)
    return dict(zip(positions.tolist(), (terms - terms[0]).tolist(), strict=True))
