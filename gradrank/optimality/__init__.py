"""Whether a ranker's weights are a local maximum of a measure: random directions, one weight at a time, climbing."""

from gradrank.optimality.climb import Climb as Climb
from gradrank.optimality.climb import climb as climb
from gradrank.optimality.directions import confidence_of as confidence_of
from gradrank.optimality.directions import direction_count as direction_count
from gradrank.optimality.result import OptimalityResult as OptimalityResult
from gradrank.optimality.result import Probe as Probe
from gradrank.optimality.search import FINE_STEPS as FINE_STEPS
from gradrank.optimality.search import STEPS as STEPS
from gradrank.optimality.search import Tried as Tried
from gradrank.optimality.search import local_optimality as local_optimality
