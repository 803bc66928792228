"""The algorithms by the names that their papers gave them."""

from __future__ import annotations

from typing import Any

from gradrank.learners.grower import TrainingError
from gradrank.learners.lambdamart import MART, LambdaMART, LambdaSMART
from gradrank.learners.mcrank import McRank

# A new algorithm is one line here.
ALGORITHMS: dict[str, type[LambdaMART]] = {
    "lambdamart": LambdaMART,
    "lambdasmart": LambdaSMART,
    "mart": MART,
    "mcrank": McRank,
}


def algorithm(name: str) -> type[LambdaMART]:
    """The learner of a name, in any case.

    >>> algorithm("LambdaMART").__name__
    'LambdaMART'
    """
    try:
        return ALGORITHMS[name.lower()]
    except KeyError:
        raise TrainingError(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}") from None


def effective_parameters(learner: LambdaMART) -> dict[str, Any]:
    """A learner's parameters with what it chooses by itself (objective, measure, rules) spelt out.

    A learner made from them learns the same. Parameters that are out of range raise :class:`TrainingError`.

    >>> chosen = effective_parameters(LambdaMART("MAP"))
    >>> chosen["objective"], chosen["measure"], chosen["split"], chosen["step"]
    ('Lambda(MAP, normalise=log, gap=true)', 'MAP', 'newton', 'newton')
    """
    objective = learner._objective()
    settings = learner._settings(objective)
    return {
        **learner.get_params(deep=False),
        "objective": str(objective),
        "measure": str(learner._measure()),
        "split": settings.split,
        "step": settings.step,
    }
