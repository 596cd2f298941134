# Written by scripts/python-stubs.
"""paddle.optimizer: SGD, Momentum, Adagrad, Adam and others; the formulas are those of
runtime/engine/optimizer.h."""
from fleetrun.optimizer.optimizers import Optimizer as Optimizer
from fleetrun.optimizer.optimizers import SGD as SGD
from fleetrun.optimizer.optimizers import Momentum as Momentum
from fleetrun.optimizer.optimizers import Adagrad as Adagrad
from fleetrun.optimizer.optimizers import Adam as Adam
from fleetrun.optimizer.optimizers import AdamW as AdamW
from fleetrun.optimizer.optimizers import Adamax as Adamax
from fleetrun.optimizer.optimizers import Adadelta as Adadelta
from fleetrun.optimizer.optimizers import Lamb as Lamb
from fleetrun.optimizer.optimizers import RMSProp as RMSProp
from fleetrun.optimizer.older import Ftrl as Ftrl
from fleetrun.optimizer import lr as lr
__all__ = ['Optimizer', 'SGD', 'Momentum', 'Adagrad', 'Adam', 'AdamW', 'Adamax', 'Adadelta', 'Lamb', 'RMSProp', 'Ftrl', 'lr']
