"""State-space models, one file each; `herdfilter.models.contract` says what a filter may call on one.

A model refuses with a ValueError an array of another shape than its docstring states, a covariance that is not positive
semi-definite, and a variance, standard deviation, density, rate or length that is not positive and finite; and with a
TypeError a function with other arguments, or another kind of object. Those that document ``initial_mean`` and
``initial_covariance`` start from this Gaussian at step 0.
"""

from herdfilter._repr import listing_of
from herdfilter.models.bearings import BearingsTracking
from herdfilter.models.bearings_only import BearingsOnly
from herdfilter.models.circling_range import CirclingRange
from herdfilter.models.compiled import CompiledFunction, CompiledModel
from herdfilter.models.conditionally_linear import ConditionallyLinear
from herdfilter.models.constant_velocity import ConstantVelocity
from herdfilter.models.coordinated_turn import CoordinatedTurn
from herdfilter.models.double_well import DoubleWell
from herdfilter.models.evaluations import Evaluations, count_evaluations
from herdfilter.models.from_functions import FunctionModel, from_functions
from herdfilter.models.jump_markov import JumpMarkov
from herdfilter.models.landmarks import LandmarkLocalisation
from herdfilter.models.linear_gaussian import LinearGaussian, linear_chain
from herdfilter.models.lorenz63 import Lorenz63
from herdfilter.models.lorenz96 import Lorenz96
from herdfilter.models.parts import UniformBox
from herdfilter.models.radar import RadarTracking
from herdfilter.models.random import RandomModel, random_model
from herdfilter.models.range_only import RangeOnly
from herdfilter.models.range_tracking import RangeTracking
from herdfilter.models.reentry import BallisticReentry
from herdfilter.models.simulation import sample_modes
from herdfilter.models.stochastic_volatility import StochasticVolatility
from herdfilter.models.ungm import UNGM
from herdfilter.models.with_clutter import WithClutter

__all__ = [
    "UNGM",
    "BallisticReentry",
    "BearingsOnly",
    "BearingsTracking",
    "CirclingRange",
    "CompiledFunction",
    "CompiledModel",
    "ConditionallyLinear",
    "ConstantVelocity",
    "CoordinatedTurn",
    "DoubleWell",
    "Evaluations",
    "FunctionModel",
    "JumpMarkov",
    "LandmarkLocalisation",
    "LinearGaussian",
    "Lorenz63",
    "Lorenz96",
    "RadarTracking",
    "RandomModel",
    "RangeOnly",
    "RangeTracking",
    "StochasticVolatility",
    "UniformBox",
    "WithClutter",
    "count_evaluations",
    "from_functions",
    "linear_chain",
    "random_model",
    "sample_modes",
]
__dir__ = listing_of(globals())
