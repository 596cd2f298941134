"""paddle.distributed.fleet.dataset.index_dataset: a tree over all items, by which tree-based models of
recommendation narrow them down. The children of code c are branch * c + 1 and so on; the root is 0."""

from __future__ import annotations

import struct

from fleetrun._error import Error
from fleetrun._types import Any, Sequence
from fleetrun.distributed.dataset._index_messages import IndexNode, KVItem, TreeMeta

__all__ = ["Index", "TreeIndex"]


class Index:
    """What has a name."""

    def __init__(self, name: str) -> None:
        self._name = name


class _Node:
    """A node as scripts read it: by calls."""

    def __init__(self, message: IndexNode) -> None:
        self._message: Any = message

    def id(self) -> int:
        """The item's id, or the node's."""
        return self._message.id

    def is_leaf(self) -> bool:
        """Whether it is an item."""
        return self._message.is_leaf

    def probability(self) -> float:
        """Its share of all items that were seen."""
        return self._message.probability


def _entries(path):
    """(key, value) of each entry of a file: its length in four bytes, then a KVItem."""
    with open(path, "rb") as file:
        while (head := file.read(4)) and len(head) == 4:
            (size,) = struct.unpack("<i", head)
            if size <= 0:
                return
            data = file.read(size)
            if len(data) != size:
                raise Error(
                    "data", f"{path}: an entry of {size} bytes has {len(data)}", "write the tree's file again"
                )
            item: Any = KVItem()
            item.ParseFromString(data)
            yield item.key.decode(), item.value


class TreeIndex(Index):
    """The tree of a file that PaddleRec's TreeIndexBuilder writes.

    Throws: Error(data) for a file that is cut short, or has no .tree_meta.
    """

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        self._nodes: dict[int, _Node] = {}
        meta: Any = TreeMeta()
        for key, value in _entries(path):
            message: Any = meta if key == ".tree_meta" else IndexNode()
            message.ParseFromString(value)
            if key != ".tree_meta":
                self._nodes[int(key)] = _Node(message)
        if meta.height < 1 or meta.branch < 1:
            raise Error("data", f"{path} has no .tree_meta", "write it with a TreeIndexBuilder")
        self._height, self._branch = meta.height, meta.branch
        self._codes = {node.id(): code for code, node in self._nodes.items() if node.is_leaf()}
        self._none = _Node(IndexNode())
        self._sampler: Any = None

    def height(self) -> int:
        """How many levels there are."""
        return self._height

    def branch(self) -> int:
        """How many children a node has at most."""
        return self._branch

    def total_node_nums(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def emb_size(self) -> int:
        """One more than the largest id: the rows of an embedding of all nodes."""
        return max((node.id() for node in self._nodes.values()), default=0) + 1

    def get_all_leafs(self) -> list[_Node]:
        """All items."""
        return [self._nodes[code] for code in self._codes.values()]

    def get_nodes(self, codes: Sequence[int]) -> list[_Node]:
        """The nodes of these codes; one of id 0 where there is none."""
        return [self._nodes.get(code, self._none) for code in codes]

    def get_layer_codes(self, level: int) -> list[int]:
        """The codes of a level; the root is level 0."""
        count = self._branch**level
        first = self._first(level)
        return [code for code in range(first, first + count) if code in self._nodes]

    def _first(self, level):
        # As in Paddle, whose trees have two branches.
        return self._branch**level - 1

    def get_travel_codes(self, id: int, start_level: int = 0) -> list[int]:
        """The codes from an item up to start_level. Throws: Error(config) for an id that is no item."""
        if id not in self._codes:
            raise Error("config", f"the tree '{self._name}' has no item {id}", "give the id of a leaf")
        return self._up(self._codes[id], start_level)

    def _up(self, code, start_level):
        codes = []
        for _ in range(start_level, self._height):
            codes.append(code)
            code = (code - 1) // self._branch
        return codes

    def get_ancestor_codes(self, ids: Sequence[int], level: int) -> list[int]:
        """The code above each item on a level; one more than the largest code for what is no item."""
        unknown = max(self._nodes, default=-1) + 1
        return [
            self._up(self._codes[one], max(level, 0) if level >= 0 else self._height - 1)[-1]
            if one in self._codes
            else unknown
            for one in ids
        ]

    def get_children_codes(self, ancestor: int, level: int) -> list[int]:
        """The codes on a level that are below a code."""
        codes, first = [ancestor], self._first(level)
        while codes and not first <= codes[0] < first + self._branch**level:
            codes = [
                child
                for code in codes
                for child in range(code * self._branch + 1, (code + 1) * self._branch + 1)
                if child in self._nodes
            ]
        return codes

    def get_travel_path(self, child: int, ancestor: int) -> list[int]:
        """The codes from a child up to its ancestor, without that."""
        codes = []
        while child > ancestor:
            codes.append(child)
            child = (child - 1) // self._branch
        return codes

    def get_pi_relation(self, ids: Sequence[int], level: int) -> dict[int, int]:
        """{item: the code above it on a level}."""
        return dict(zip(ids, self.get_ancestor_codes(ids, level)))

    def init_layerwise_sampler(
        self, layer_sample_counts: Sequence[int], start_sample_layer: int = 1, seed: int = 0
    ) -> None:
        """Says how many nodes layerwise_sample() draws on each level from start_sample_layer on, 1 where
        counts end. seed: 0 for fresh numbers; they are others than Paddle's."""
        if self._sampler is not None:
            raise Error("config", f"the tree '{self._name}' has a sampler already", "make it once")
        if not 0 < start_sample_layer < self._height:
            raise Error(
                "config",
                f"start_sample_layer={start_sample_layer} of a tree of {self._height} levels",
                "it is above 0 and below the tree's height",
            )
        self._sampler = _Sampler(self, layer_sample_counts, start_sample_layer, seed)

    def layerwise_sample(
        self,
        user_input: Sequence[Sequence[int]],
        index_input: Sequence[int],
        with_hierarchy: bool = False,
    ) -> list[list[int]]:
        """Of each item, level by level upwards, [user features…, node, 1] and for so many other nodes of the
        level [user features…, node, 0]; with_hierarchy: the features are those above them on the level."""
        if self._sampler is None:
            raise ValueError("please init layerwise_sampler first.")
        return [
            row
            for features, item in zip(user_input, index_input)
            for row in self._sampler.rows(list(features), item, with_hierarchy)
        ]


class _Sampler:
    """Nodes of each level that are not the wanted one."""

    def __init__(self, tree: TreeIndex, counts: Sequence[int], first: int, seed: int) -> None:
        import numpy

        self._tree, self._first = tree, first
        levels = range(first, tree.height())
        self._levels = {
            level: (
                [node.id() for node in tree.get_nodes(tree.get_layer_codes(level))],
                counts[at] if at < len(counts) else 1,
            )
            for at, level in enumerate(levels)
        }
        self._random = numpy.random.default_rng(seed or None)

    def rows(self, features: list[int], item: int, with_hierarchy: bool) -> list[list[int]]:
        """What layerwise_sample() gives for one item."""
        made = []
        path = self._tree.get_travel_codes(item, self._first)
        for up, (code, node) in enumerate(zip(path, self._tree.get_nodes(path))):
            level = self._tree.height() - 1 - up
            user = features
            if up and with_hierarchy:
                above = self._tree.get_nodes(self._tree.get_ancestor_codes(features, level))
                user = [one.id() for one in above]
            made.append([*user, node.id(), 1])
            made += [[*user, other, 0] for other in self._others(level, node.id(), code)]
        return made

    def _others(self, level, wanted, code):
        ids, count = self._levels[level]
        others = [one for one in ids if one != wanted]
        if count and not others:
            raise Error(
                "data",
                f"level {level} of the tree has no other node than {wanted} (code {code})",
                "begin on a lower level: start_sample_layer",
            )
        return [others[place] for place in self._random.integers(0, len(others), count)] if count else []
