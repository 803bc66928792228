"""The papers' experiments: one file per paper, one recipe per table or figure, one driver that runs them all.

>>> run("donmez-fig6", scale="tiny").name
'donmez-fig6'
"""

from gradrank.experiments.driver import run
from gradrank.experiments.registry import RECIPES, recipe
from gradrank.experiments.result import Result

__all__ = ["RECIPES", "Result", "recipe", "run"]
