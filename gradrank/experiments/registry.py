"""All recipes by name."""

from __future__ import annotations

from importlib import import_module

from gradrank.errors import DataError
from gradrank.experiments.recipe import Recipe

# A new recipe is one line here: its name -> where it is declared.
RECIPES: dict[str, str] = {
    "donmez-1": "gradrank.experiments.donmez:TABLE_1",
    "donmez-2": "gradrank.experiments.donmez:TABLE_2",
    "donmez-3": "gradrank.experiments.donmez:TABLE_3",
    "donmez-4": "gradrank.experiments.donmez:TABLE_4",
    "donmez-fig1": "gradrank.experiments.donmez_optimality:FIGURE_1",
    "donmez-fig2": "gradrank.experiments.donmez_optimality:FIGURE_2",
    "donmez-fig3": "gradrank.experiments.donmez_optimality:FIGURE_3",
    "donmez-fig4": "gradrank.experiments.donmez_optimality:FIGURE_4",
    "donmez-fig5": "gradrank.experiments.donmez:FIGURE_5",
    "donmez-fig6": "gradrank.experiments.donmez_optimality:FIGURE_6",
    "niu-1": "gradrank.experiments.niu_labeling:TABLE_1",
    "niu-2": "gradrank.experiments.niu_labeling:TABLE_2",
    "niu-3": "gradrank.experiments.niu_labeling:TABLE_3",
    "niu-4": "gradrank.experiments.niu:TABLE_4",
    "niu-5": "gradrank.experiments.niu:TABLE_5",
    "niu-fig1": "gradrank.experiments.niu:FIGURE_1",
    "niu-fig2": "gradrank.experiments.niu:FIGURE_2",
    "svore-1": "gradrank.experiments.svore:TABLE_1",
    "svore-2": "gradrank.experiments.svore:TABLE_2",
    "svore-fig2": "gradrank.experiments.svore:FIGURE_2",
    "svore-fig3": "gradrank.experiments.svore:FIGURE_3",
    "svore-fig4": "gradrank.experiments.svore:FIGURE_4",
    "svore-fig5": "gradrank.experiments.svore:FIGURE_5",
    "svore-fig6": "gradrank.experiments.svore:FIGURE_6",
    "svore-fig7": "gradrank.experiments.svore:FIGURE_7",
    "wu-1": "gradrank.experiments.wu:TABLE_1",
    "wu-2": "gradrank.experiments.wu:TABLE_2",
    "wu-3": "gradrank.experiments.wu_adaptation:TABLE_3",
    "wu-4": "gradrank.experiments.wu_adaptation:TABLE_4",
    "wu-5": "gradrank.experiments.wu_adaptation:TABLE_5",
    "wu-fig2": "gradrank.experiments.wu:FIGURE_2",
    "wu-fig3": "gradrank.experiments.wu:FIGURE_3",
}


def recipe(name: str) -> Recipe:
    """The recipe of a name, loaded when asked for.

    >>> recipe("svore-1").shows
    'table 1'
    """
    try:
        module, attribute = RECIPES[name.lower()].split(":")
    except KeyError:
        raise DataError(f"there is no experiment {name!r}; there are {', '.join(RECIPES)}") from None
    found: Recipe = getattr(import_module(module), attribute)
    return found
