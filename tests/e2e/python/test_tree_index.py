"""Trees over items. What a tree is said to answer is what Paddle 2.6.2 answered, from the same file."""

import struct

import pytest

LEAVES = {7: 10, 8: 11, 9: 12, 10: 13, 11: 14, 13: 15}


@pytest.fixture(scope="module")
def paddle():
    import fleetrun

    return fleetrun


@pytest.fixture(scope="module")
def messages(paddle):
    from fleetrun.distributed.fleet.proto import index_dataset_pb2

    return index_dataset_pb2


def entry(messages, key, message):
    """The bytes of one entry, as PaddleRec's builder writes them."""
    item = messages.KVItem()
    item.key, item.value = key, message.SerializeToString()
    data = item.SerializeToString()
    return struct.pack("i", len(data)) + data


@pytest.fixture(scope="module")
def file(messages, tmp_path_factory):
    """Six items under a tree of four levels: its node of code c has the id 100 + c."""
    codes = {0, *LEAVES}
    for code in LEAVES:
        while code > 0:
            code = (code - 1) // 2
            codes.add(code)
    meta = messages.TreeMeta()
    meta.height, meta.branch = 4, 2
    written = [entry(messages, ".tree_meta", meta)]
    for code in sorted(codes):
        node = messages.IndexNode()
        node.id, node.is_leaf = LEAVES.get(code, 100 + code), code in LEAVES
        node.probability = 0.125 * (code + 1)
        written.append(entry(messages, str(code), node))
    path = tmp_path_factory.mktemp("tree") / "tree.pb"
    path.write_bytes(b"".join(written))
    return path


@pytest.fixture
def tree(paddle, file):
    return paddle.distributed.fleet.dataset.TreeIndex("demo", str(file))


def test_a_tree_says_what_paddles_says(tree):
    assert (tree.height(), tree.branch(), tree.total_node_nums(), tree.emb_size()) == (4, 2, 13, 107)
    assert sorted((node.id(), node.is_leaf(), node.probability()) for node in tree.get_all_leafs())[:2] == [
        (10, True, 1.0), (11, True, 1.125)]
    assert [node.id() for node in tree.get_nodes([0, 3, 12, 14])] == [100, 103, 0, 0]
    assert [tree.get_layer_codes(level) for level in range(4)] == [
        [0], [1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11, 13]]
    assert (tree.get_travel_codes(13), tree.get_travel_codes(15, 2)) == ([10, 4, 1, 0], [13, 6])
    assert [tree.get_ancestor_codes([10, 12, 99, 15], level) for level in (-1, 0, 1, 2, 3)] == [
        [7, 9, 14, 13], [0, 0, 14, 0], [1, 1, 14, 2], [3, 4, 14, 6], [7, 9, 14, 13]]
    assert [tree.get_children_codes(code, level) for code, level in ((0, 1), (0, 3), (1, 3), (5, 3))] == [
        [1, 2], [7, 8, 9, 10, 11, 13], [7, 8, 9, 10], [11]]
    assert tree.get_travel_path(10, 0) == [10, 4, 1]
    assert tree.get_pi_relation([10, 14], 1) == {10: 1, 14: 2}


def drawn(tree, rows):
    """What was not drawn: [features…, node] of an item's own nodes, [features…, 0] of the others."""
    levels = [[node.id() for node in tree.get_nodes(tree.get_layer_codes(level))] for level in range(4)]
    for row in rows:
        assert any(row[2] in ids for ids in levels)
    return [row[:3] if row[3] else [*row[:2], 0] for row in rows]


def test_other_nodes_are_drawn_on_each_level(tree):
    tree.init_layerwise_sampler([1, 2], 1, seed=3)
    rows = tree.layerwise_sample([[10, 11], [14, 99]], [12, 15])
    first, second = ([user, 0] for user in ([10, 11], [14, 99]))
    assert drawn(tree, rows) == [
        *([*first[0], node] for node in (12, 0, 104, 0, 0, 101, 0)),
        *([*second[0], node] for node in (15, 0, 106, 0, 0, 102, 0)),
    ]
    assert all(row[2] != 12 for row in rows[1:7]) and rows[6][2] == 102 and rows[13][2] == 101


def test_features_climb_with_the_levels(tree):
    tree.init_layerwise_sampler([1, 2], 2, seed=3)
    rows = tree.layerwise_sample([[10, 11], [14, 99]], [12, 15], True)
    assert drawn(tree, rows) == [
        [10, 11, 12], [10, 11, 0], [10, 11, 0], [103, 103, 104], [103, 103, 0],
        [14, 99, 15], [14, 99, 0], [14, 99, 0], [105, 0, 106], [105, 0, 0]]


def test_what_is_wrong_is_named(paddle, messages, file, tree, tmp_path):
    with pytest.raises(paddle.Error, match="the tree 'demo' has no item 99"):
        tree.get_travel_codes(99)
    with pytest.raises(paddle.Error, match="start_sample_layer=4 of a tree of 4 levels"):
        tree.init_layerwise_sampler([1], 4)
    with pytest.raises(ValueError, match="please init layerwise_sampler first"):
        tree.layerwise_sample([[1]], [10])
    cut = tmp_path / "cut.pb"
    cut.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(paddle.Error, match="an entry of .* bytes has"):
        paddle.distributed.fleet.dataset.TreeIndex("cut", str(cut))
    cut.write_bytes(entry(messages, "0", messages.IndexNode()))
    with pytest.raises(paddle.Error, match="has no .tree_meta"):
        paddle.distributed.fleet.dataset.TreeIndex("cut", str(cut))
    with pytest.raises(paddle.Error, match="ends within"):
        messages.IndexNode().ParseFromString(b"\x08")
