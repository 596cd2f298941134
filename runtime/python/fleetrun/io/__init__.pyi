# Written by scripts/python-stubs.
"""paddle.io: data sets, samplers and the DataLoader, for numpy arrays and for PyTorch.

Source: documents 001 (DistributedBatchSampler, DataLoader) and 004 (from_generator, double buffering, uint8,
infinite reading). Names, defaults and orders are Paddle 2.6.2's; what fleetrun adds is said in the
docstrings.
"""
from fleetrun.io.dataset import Dataset as Dataset
from fleetrun.io.dataset import IterableDataset as IterableDataset
from fleetrun.io.dataset import TensorDataset as TensorDataset
from fleetrun.io.dataset import ComposeDataset as ComposeDataset
from fleetrun.io.dataset import ChainDataset as ChainDataset
from fleetrun.io.dataset import ConcatDataset as ConcatDataset
from fleetrun.io.dataset import Subset as Subset
from fleetrun.io.dataset import random_split as random_split
from fleetrun.io.sampler import Sampler as Sampler
from fleetrun.io.sampler import SequenceSampler as SequenceSampler
from fleetrun.io.sampler import RandomSampler as RandomSampler
from fleetrun.io.sampler import WeightedRandomSampler as WeightedRandomSampler
from fleetrun.io.sampler import SubsetRandomSampler as SubsetRandomSampler
from fleetrun.io.loader import DataLoader as DataLoader
from fleetrun.io.dali import from_dali as from_dali
from fleetrun.io._worker import get_worker_info as get_worker_info
from fleetrun.io._collate import default_collate_fn as default_collate_fn
from fleetrun.io.batch_sampler import BatchSampler as BatchSampler
from fleetrun.io.batch_sampler import DistributedBatchSampler as DistributedBatchSampler
from fleetrun.io.batch_sampler import InfiniteBatchSampler as InfiniteBatchSampler
__all__ = ['Dataset', 'IterableDataset', 'TensorDataset', 'ComposeDataset', 'ChainDataset', 'ConcatDataset', 'Subset', 'random_split', 'Sampler', 'SequenceSampler', 'RandomSampler', 'WeightedRandomSampler', 'SubsetRandomSampler', 'DataLoader', 'from_dali', 'get_worker_info', 'default_collate_fn', 'BatchSampler', 'DistributedBatchSampler', 'InfiniteBatchSampler', 'Dataset', 'IterableDataset', 'TensorDataset', 'ComposeDataset', 'ChainDataset', 'ConcatDataset', 'Subset', 'random_split', 'Sampler', 'SequenceSampler', 'RandomSampler', 'WeightedRandomSampler', 'SubsetRandomSampler', 'DataLoader', 'from_dali', 'get_worker_info', 'default_collate_fn', 'BatchSampler', 'DistributedBatchSampler', 'InfiniteBatchSampler']
