import sys
from pathlib import Path

import pytest

from mercer.datasets.places import cache_folder, find_file, folders, how_to_get


def test_the_named_folder_comes_before_the_cache(bare):
    assert folders() == [bare, cache_folder()]


@pytest.mark.parametrize("value", ["", None])
def test_without_a_named_folder_there_is_the_cache(bare, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("MERCER_DATA")
    else:
        monkeypatch.setenv("MERCER_DATA", value)
    assert folders() == [cache_folder()]


def test_a_named_folder_must_exist(bare, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(bare / "nowhere"))
    with pytest.raises(NotADirectoryError, match=r"nowhere is not a folder\. Set it"):
        folders()


@pytest.mark.parametrize(
    ("platform", "tail"),
    [
        ("linux", "home/mercer"),
        ("darwin", "home/Library/Caches/mercer"),
        ("win32", "home/mercer"),
    ],
)
def test_the_cache_is_where_the_system_wants_it(bare, monkeypatch, platform, tail):
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == bare.parent / tail


@pytest.mark.parametrize(
    ("platform", "tail"),
    [("linux", ".cache/mercer"), ("win32", "AppData/Local/mercer")],
)
def test_the_cache_without_hints(bare, monkeypatch, platform, tail):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    assert cache_folder() == Path.home() / tail


def test_files_are_found_place_by_place(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "a").touch()
    assert find_file("ab", [first, second]) == second / "a"
    (first / "b").touch()
    assert find_file("ab", [first, second]) == first / "b"
    assert find_file("c", [first, second]) is None
    (first / "c").mkdir()
    assert find_file("c", [first, second]) is None


def test_the_hint_names_files_and_folders(bare):
    text = how_to_get("this.gz")
    assert "this.gz" in text
    assert str(cache_folder()) in text
    assert "MERCER_DATA" in text
