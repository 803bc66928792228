"""The papers' experiments: one file a paper, one recipe a table or figure.

>>> sorted(RECIPES)[:2]
['donmez-1', 'donmez-2']
>>> recipe("svore-1").__name__
'table_1'
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gradrank.errors import DataError
from gradrank.experiments.result import Result

# A new recipe is one line here: its name -> the function that runs it. All take keyword options and return a Result.
RECIPES: dict[str, str] = {
    "donmez-1": "gradrank.experiments.donmez:table_1",
    "donmez-2": "gradrank.experiments.donmez:table_2",
    "donmez-3": "gradrank.experiments.donmez:table_3",
    "donmez-4": "gradrank.experiments.donmez:table_4",
    "donmez-fig1": "gradrank.experiments.optimality:figure_1",
    "donmez-fig2": "gradrank.experiments.optimality:figure_2",
    "donmez-fig3": "gradrank.experiments.optimality:figure_3",
    "donmez-fig4": "gradrank.experiments.optimality:figure_4",
    "donmez-fig5": "gradrank.experiments.donmez:figure_5",
    "donmez-fig6": "gradrank.experiments.optimality:figure_6",
    "niu-4": "gradrank.experiments.niu:table_4",
    "niu-5": "gradrank.experiments.niu:table_5",
    "niu-fig1": "gradrank.experiments.niu:figure_1",
    "niu-fig2": "gradrank.experiments.niu:figure_2",
    "svore-1": "gradrank.experiments.svore:table_1",
    "svore-2": "gradrank.experiments.svore:table_2",
    "svore-fig2": "gradrank.experiments.svore:figure_2",
    "svore-fig3": "gradrank.experiments.svore:figure_3",
    "svore-fig4": "gradrank.experiments.svore:figure_4",
    "svore-fig7": "gradrank.experiments.svore:figure_7",
    "wu-1": "gradrank.experiments.wu:table_1",
    "wu-fig2": "gradrank.experiments.wu:figure_2",
    "wu-fig3": "gradrank.experiments.wu:figure_3",
}


def recipe(name: str) -> Callable[..., Result]:
    """The function of a recipe, loaded when asked for."""
    try:
        module, function = RECIPES[name.lower()].split(":")
    except KeyError:
        raise DataError(f"there is no experiment {name!r}; there are {', '.join(RECIPES)}") from None
    found: Callable[..., Result] = getattr(import_module(module), function)
    return found


def run(name: str, **options: Any) -> Result:
    """Run a recipe by name; options are those of its function."""
    return recipe(name)(**options)
