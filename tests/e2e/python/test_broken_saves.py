"""Directories that are no saves, or no longer: each is refused by the file's name, and nothing is lost."""

import os
import shutil

import numpy as np
import pytest

from fleetrun import Error, ps

TABLES = [ps.SparseTable("emb", 2, rule="adam"), ps.DenseTable("fc", 3)]
KEYS = np.arange(50)


def trained(value):
    client = ps.Client(TABLES)
    client.set_dense("fc", np.full(3, value, "float32"))
    client.push("emb", KEYS, np.full((50, 2), value, "float32"))
    return client


def cut(name, size):
    return lambda save: os.truncate(save / name, size if size >= 0 else (save / name).stat().st_size + size)


def replaced_by(make):
    def change(save):
        (save / PART).unlink()
        make(save / PART)
    return change


def mixed_with_another(name):
    def change(save):
        trained(3.0).save(str(save.parent / "other"))
        shutil.copy(save.parent / "other" / name, save / name)
    return change


def only(name, text):
    def change(save):
        shutil.rmtree(save)
        save.mkdir()
        if name:
            (save / name).write_text(text)
    return change


ANOTHERS = ": it is not the file that the manifest names"
PART = "part-0000000000000000-0000000000000001-00000-000"
NO_SAVE = "manifest: cannot be opened; there is no complete save in "
BROKEN = {
    "missing": (shutil.rmtree, NO_SAVE),
    "empty": (only("", ""), NO_SAVE),
    "foreign": (only("notes.txt", "mine"), NO_SAVE),
    "foreign manifest": (only("manifest", '{"name": "app"}'), "manifest: the manifest is damaged"),
    "half-written": (lambda save: (save / "manifest").unlink(), NO_SAVE),
    "manifest empty": (cut("manifest", 0), "manifest: the manifest is damaged"),
    "manifest cut": (cut("manifest", -5), "manifest: the manifest is damaged"),
    "part empty": (cut(PART, 0), PART + ": it has 0 bytes, the manifest says "),
    "part cut": (cut(PART, -1), PART + ": it has "),
    "part gone": (replaced_by(lambda part: None), PART + ": the file is not there"),
    "part a directory": (replaced_by(os.mkdir), PART + ": it is not a file"),
    "part a pipe": (replaced_by(os.mkfifo), PART + ": it is not a file"),
    "part a link": (replaced_by(lambda part: part.symlink_to("/dev/zero")), PART + ": it is a symbolic link"),
    "another's manifest": (mixed_with_another("manifest"), PART + ANOTHERS),
    "another's part": (mixed_with_another(PART), PART + ANOTHERS),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_whole_save_is_named_and_the_tables_stay(tmp_path, name):
    change, says = BROKEN[name]
    save = tmp_path / "save"
    trained(1.0).save(str(save))
    change(save)
    client = trained(7.0)
    before = client.pull("emb", KEYS)
    with pytest.raises(Error) as caught:
        client.load(str(save))
    assert f"{save}/{says}" in str(caught.value)
    assert (client.pull("emb", KEYS) == before).all()


def test_a_load_from_a_directory_without_a_name_is_refused():
    with pytest.raises(Error, match="the name of the directory to load is empty"):
        trained(1.0).load("")


@pytest.mark.parametrize("text, says", [('{"name": "app"}', "it is no manifest of a save"),
                                        ("fleetrun tables 3\n", "the tables are in format 3")])
def test_a_save_replaces_no_file_that_is_not_its_own(tmp_path, text, says):
    (tmp_path / "manifest").write_text(text)
    with pytest.raises(Error) as caught:
        trained(1.0).save(str(tmp_path))
    assert f"{tmp_path}/manifest: {says}" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest"]
    assert (tmp_path / "manifest").read_text() == text


def test_a_save_replaces_a_manifest_that_was_cut(tmp_path):
    trained(1.0).save(str(tmp_path))
    cut("manifest", 9)(tmp_path)
    trained(2.0).save(str(tmp_path))
    client = ps.Client(TABLES)
    assert client.load(str(tmp_path)) == ""
    assert (client.pull("emb", KEYS) == trained(2.0).pull("emb", KEYS)).all()
