"""What a variable has as a method, and its operators: the functions of fleetrun/tensor.py by name."""

from fleetrun import _indexing, tensor
from fleetrun._variable import METHODS


def _power_of(x, base):
    return tensor.pow(tensor.full_like(x, base), x)


METHODS.update({name: getattr(tensor, name) for name in (
    "abs add all any argmax argmin argsort bernoulli bmm broadcast_to cast ceil chunk clip cos cumsum divide dot equal "
    "equal_all erf exp expand expand_as expm1 flatten flip floor floor_divide floor_mod gather gather_nd greater_equal "
    "greater_than index_select isfinite isinf isnan less_equal less_than log log10 log1p log2 logical_and logical_not "
    "logical_or logical_xor logsumexp masked_select matmul max maximum mean min minimum mm mod multinomial multiply "
    "nonzero norm not_equal numel pow prod reciprocal remainder reshape roll round rsqrt scale scatter sign sin slice sort "
    "split sqrt square squeeze std strided_slice subtract sum t take_along_axis tan tanh tile topk transpose tril triu "
    "unbind unique unsqueeze unstack var where").split()}, astype=tensor.cast, __getitem__=_indexing.index,
    __rpow__=_power_of)
