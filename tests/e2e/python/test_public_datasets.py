"""paddle.dataset: readers of well-known data sets, on small files of their kinds."""

import gzip
import io
import pickle
import sys
import tarfile
import types
import zipfile

import numpy
import pytest

from fleetrun import Error
from fleetrun.dataset import (
    cifar,
    common,
    conll05,
    flowers,
    image,
    imdb,
    mnist,
    movielens,
    uci_housing,
    wmt14,
    wmt16,
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where the files of data sets lie."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    for function in vars(movielens).values():
        getattr(function, "cache_clear", lambda: None)()
    return tmp_path


def _archive(path, files):
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_ratings_of_films_name_users_and_films(home):
    (home / "movielens").mkdir()
    with zipfile.ZipFile(home / "movielens" / "movielens%2Fml-1m.zip", "w") as archive:
        films = "1::Toy Story (1995)::Comedy|Animation\n3::Toy Café (1999)::Drama\n"
        archive.writestr("ml-1m/movies.dat", films.encode("latin-1"))
        archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n7::M::56::16::70072\n")
        archive.writestr("ml-1m/ratings.dat", "1::3::5::978300760\n7::1::2::978302109\n" * 20)
    assert (movielens.max_movie_id(), movielens.max_user_id(), movielens.max_job_id()) == (3, 7, 16)
    assert movielens.get_movie_title_dict() == {"café": 0, "story": 1, "toy": 2}
    assert movielens.movie_categories() == {"Animation": 0, "Comedy": 1, "Drama": 2}
    train, test = list(movielens.train()()), list(movielens.test()())
    numpy.random.seed(0)
    drawn = [bool(numpy.random.random() < 0.1) for _ in range(40)]
    assert (len(train), len(test)) == (drawn.count(False), drawn.count(True))
    assert [1, 1, 0, 10, 3, [2], [2, 0], [5.0]] in train
    assert [7, 0, 6, 16, 1, [1, 0], [2, 1], [-1.0]] in train
    assert str(movielens.user_info()[7]) == "<UserInfo id(7), gender(M), age(56), job(16)>"


def test_pictures_are_between_0_and_1(home):
    pictures = numpy.arange(2 * 3072, dtype="uint8").reshape(2, 3072)
    _archive(home / "cifar" / "cifar-10-python.tar.gz", {
        "cifar-10-batches-py/data_batch_1": pickle.dumps({b"data": pictures, b"labels": [3, 9]}),
        "cifar-10-batches-py/test_batch": pickle.dumps({b"data": pictures[:1], b"labels": [7]}),
    })  # fmt: skip
    _archive(home / "cifar" / "cifar-100-python.tar.gz",
             {"cifar-100-python/train": pickle.dumps({b"data": pictures, b"fine_labels": [99, 0]})})
    found = list(cifar.train10()())
    assert [label for _, label in found] == [3, 9]
    assert found[1][0].dtype == "float32"
    assert numpy.array_equal(found[1][0], (pictures[1] / 255).astype("float32"))
    assert [label for _, label in cifar.test10()()] == [7]
    assert [label for _, label in cifar.train100()()] == [99, 0]
    endless = cifar.train10(cycle=True)()
    assert [next(endless)[1] for _ in range(5)] == [3, 9, 3, 9, 3]


def _picture(file, flag):
    """A decoder of pictures of 300 x 260: each value is the first byte of the file, plus its row."""
    rows = file[0] + numpy.arange(300, dtype="uint8")[:, None]
    return numpy.broadcast_to(rows[..., None] if flag else rows, (300, 260, 3) if flag else (300, 260))


def _resized(picture, sides, interpolation):
    places = [numpy.arange(side) * was // side for side, was in zip(sides[::-1], picture.shape)]
    return picture[places[0]][:, places[1]]


@pytest.fixture
def decoders(monkeypatch):
    """What stands for OpenCV and SciPy."""
    tables = {"imagelabels.mat": {"labels": [[5, 102, 7]]},
              "setid.mat": {"tstid": [[3, 1]], "trnid": [[2]], "valid": [[2, 3]]}}
    reads = types.SimpleNamespace(loadmat=lambda path: tables[path.rpartition("/")[2]])
    opencv = types.SimpleNamespace(imdecode=_picture, resize=_resized, INTER_CUBIC=2)
    monkeypatch.setitem(sys.modules, "cv2", opencv)
    monkeypatch.setitem(sys.modules, "scipy", types.SimpleNamespace(io=reads))
    monkeypatch.setitem(sys.modules, "scipy.io", reads)


def test_flowers_are_cut_and_without_their_mean(home, decoders):
    _archive(home / "flowers" / "102flowers.tgz", {f"jpg/image_0000{n}.jpg": bytes([n]) for n in (1, 2, 3)})
    for name in ("imagelabels.mat", "setid.mat"):
        (home / "flowers" / name).touch()
    flowers.fetch()
    (picture, label), = flowers.test()()
    assert (picture.dtype, picture.shape, label) == ("float32", (3 * 224 * 224,), 101)
    rows = numpy.arange(295)[(295 - 224) // 2 :][:224] * 300 // 295  # of 295 x 256, in the middle
    wanted = (2 + rows).astype("uint8")[None, :, None] - numpy.array([103.94, 116.78, 123.68])[:, None, None]
    assert abs(picture.reshape(3, 224, 224) - wanted).max() < 1e-4
    assert [kind for _, kind in flowers.valid(use_xmap=False)()] == [101, 6]
    assert [kind for _, kind in flowers.train(mapper=lambda sample: sample)()] == [4, 6]


def test_pictures_are_made_smaller_cut_and_turned(home, decoders):
    grey = image.load_image_bytes(b"\x01", is_color=False)
    assert image.resize_short(grey, 26).shape == (30, 26)
    assert image.center_crop(grey, 4).tolist() == [[149] * 4, [150] * 4, [151] * 4, [152] * 4]
    assert image.random_crop(grey, 300 - 40, False).shape == (260, 260)
    steps = numpy.arange(6).reshape(1, 2, 3)
    assert image.left_right_flip(steps).tolist() == [[[3, 4, 5], [0, 1, 2]]]
    assert image.to_chw(steps).tolist() == [[[0, 3]], [[1, 4]], [[2, 5]]]
    one = image.simple_transform(grey, 26, 20, True, is_color=False, mean=numpy.ones((20, 20)))
    assert (one.shape, one.dtype) == ((20, 20), "float32")
    _archive(home / "some" / "a.tgz", {"1.jpg": b"1", "2.jpg": b"2", "3.jpg": b"3", "no": b""})
    listed = image.batch_images_from_tar(
        str(home / "some" / "a.tgz"), "train", {"1.jpg": 8, "2.jpg": 9, "3.jpg": 7}, num_per_batch=2)
    with open(listed, encoding="utf-8") as paths:
        batches = [pickle.loads(open(path.strip(), "rb").read()) for path in paths]
    assert batches == [{"label": [8, 9], "data": [b"1", b"2"]}, {"label": [7], "data": [b"3"]}]


def test_a_decoder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(Error) as raised:
        image.load_image("a.jpg")
    assert str(raised.value) == (
        "pictures of paddle.dataset need cv2, which is not here\n  hint: pip install opencv-python-headless")


def test_roles_of_a_sentence_follow_its_brackets(home):
    folder = home / "conll05st"
    words = "The\ndog\nof\nhim\nbarks\nloudly\n.\n\nNo\n\n"
    props = "- (A0*\n- *\n- *\n- *)\nbark (V*)\n- (AM-MNR*)\n- *\n\n- \n\n"
    _archive(folder / "conll05st-tests.tar.gz", {
        "conll05st-release/test.wsj/words/test.wsj.words.gz": gzip.compress(words.encode()),
        "conll05st-release/test.wsj/props/test.wsj.props.gz": gzip.compress(props.encode()),
    })  # fmt: skip
    (folder / "conll05st%2FwordDict.txt").write_text("<unk>\nThe\ndog\nof\nhim\nbarks\nloudly\nbos\neos\n")
    (folder / "verbDict.txt").write_text("sleep\nbark\n")
    (folder / "targetDict.txt").write_text("B-V\nI-V\nB-A0\nI-A0\nB-AM-MNR\nO\n")
    labels = conll05.get_dict()[2]
    assert labels == {"B-A0": 0, "I-A0": 1, "B-AM-MNR": 2, "I-AM-MNR": 3, "B-V": 4, "I-V": 5, "O": 6}
    (example,) = conll05.test()()
    assert example[0] == [1, 2, 3, 4, 5, 6, 0]
    assert [column[0] for column in example[1:6]] == [3, 4, 5, 6, 0]
    assert example[6] == [1] * 7
    assert example[7] == [0, 0, 1, 1, 1, 1, 1]
    assert example[8] == [0, 1, 1, 1, 4, 2, 6]


def test_a_file_that_is_not_there_is_named(home):
    with pytest.raises(Error, match=r"movielens/ml-1m\.zip is not there, and fleetrun downloads nothing"):
        movielens.max_user_id()


def test_sentences_of_two_languages_are_numbers_of_their_words(home):
    lines = "a b a\tx y\nb c\ty\nonly one\n".encode()
    _archive(home / "wmt16" / "wmt16.tar.gz",
             {"wmt16/train": lines, "wmt16/test": b"c d\tx z\n", "wmt16/val": b"a\ty\n"})
    assert wmt16.get_dict("en", 100) == {"<s>": 0, "<e>": 1, "<unk>": 2, "a": 3, "b": 4, "c": 5}
    assert wmt16.get_dict("de", 4, reverse=True) == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "y"}
    assert list(wmt16.train(5, 100)()) == [([0, 3, 4, 3, 1], [0, 4, 3], [4, 3, 1]),
                                           ([0, 4, 2, 1], [0, 3], [3, 1])]
    assert list(wmt16.test(100, 100, src_lang="de")()) == [([0, 4, 2, 1], [0, 5, 2], [5, 2, 1])]
    assert list(wmt16.validation(100, 100)()) == [([0, 3, 1], [0, 3], [3, 1])]
    with pytest.raises(ValueError, match="use en or de"):
        wmt16.train(5, 5, "fr")


def test_french_sentences_are_numbers_by_the_dictionaries_of_the_archive(home):
    dictionary = b"<s>\n<e>\n<unk>\na\nb\n"
    _archive(home / "wmt14" / "wmt14.tgz",
             {"x/src.dict": dictionary, "x/trg.dict": dictionary + b"c\n",
              "x/train/train": b"a b\tc a\nno pair\n" + b"a " * 81 + b"\ta\n", "x/test/test": b"z\tb\n",
              "x/gen/gen": b"b\tz\n"})
    assert list(wmt14.train(6)()) == [([0, 3, 4, 1], [0, 5, 3], [5, 3, 1])]
    assert list(wmt14.train(4)()) == [([0, 3, 2, 1], [0, 2, 3], [2, 3, 1])]
    assert list(wmt14.test(6)()) == [([0, 2, 1], [0, 4], [4, 1])]
    assert list(wmt14.gen(6)()) == [([0, 4, 1], [0, 2], [2, 1])]
    assert wmt14.get_dict(4) == ({0: "<s>", 1: "<e>", 2: "<unk>", 3: "a"},) * 2
    assert wmt14.get_dict(9, reverse=False)[1] == {"<s>": 0, "<e>": 1, "<unk>": 2, "a": 3, "b": 4, "c": 5}


def test_files_that_paddle_saved_under_more_of_their_address_are_found(home):
    _archive(home / "imdb" / "imdb%2FaclImdb_v1.tar.gz", {"aclImdb/train/pos/0_7.txt": b"Good, good!\n"})
    assert list(imdb.train({b"good": 0, "<unk>": 1})()) == [([0, 0], 0)]
    (home / "uci_housing").mkdir()
    (home / "uci_housing" / "uci_housing%2Fhousing.data").write_text("1 " * 14 + "2 " * 14)
    assert len(list(uci_housing.train()())) == 1
    uci_housing.fetch()
    for read in (mnist.train, mnist.fetch):
        with pytest.raises(Error, match="train-images-idx3-ubyte.gz is not there"):
            read()
