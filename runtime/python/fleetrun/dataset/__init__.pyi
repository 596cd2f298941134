# Written by scripts/python-stubs.
"""paddle.dataset: readers of well-known data sets, from files that are there; nothing is downloaded."""
from fleetrun.dataset import cifar as cifar
from fleetrun.dataset import common as common
from fleetrun.dataset import conll05 as conll05
from fleetrun.dataset import flowers as flowers
from fleetrun.dataset import image as image
from fleetrun.dataset import imdb as imdb
from fleetrun.dataset import imikolov as imikolov
from fleetrun.dataset import mnist as mnist
from fleetrun.dataset import movielens as movielens
from fleetrun.dataset import uci_housing as uci_housing
from fleetrun.dataset import wmt14 as wmt14
from fleetrun.dataset import wmt16 as wmt16
__all__ = ['cifar', 'common', 'conll05', 'flowers', 'image', 'imdb', 'imikolov', 'mnist', 'movielens', 'uci_housing', 'wmt14', 'wmt16']
