"""Links between the pages lead somewhere; Sphinx checks those of built pages again."""

import re
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").exists(), reason="this is not a checkout"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def links(page):
    text = page.read_text(encoding="utf-8")
    text = CODE.sub(lambda code: "" if "\n" in code[0] else "code", text)
    return [link for link in LINK.findall(text) if "://" not in link]


def source_of(target):
    """Return the file behind a page: pages of the gallery are made from scripts."""
    parts = target.relative_to(ROOT).parts
    if parts[:2] != ("docs", "auto_examples"):
        return target
    example = (ROOT / "examples").joinpath(*parts[2:])
    if "images" in parts and example.suffix == ".png":
        name = re.sub(r"^sphx_glr_(\w+)_\d+$", r"\1", example.stem)
        return example.parents[1] / f"{name}.py"
    if example.stem == "index":
        return example.with_name("GALLERY_HEADER.rst")
    return example.with_suffix(".py")


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {text.strip().replace(" ", "-") for text in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert source_of(target).exists(), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_a_missing_page_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[one](other.md#part) `[no](link.md)` [two](https://a.b)\n")
    assert links(page) == ["other.md#part"]
    assert source_of(ROOT / "docs/auto_examples/kernels/nothing.rst").exists() is False
    assert "a-part-of-it" in anchors_of_text(tmp_path, "## A `part` of it\n")


def anchors_of_text(folder, text):
    page = folder / "headings.md"
    page.write_text(text)
    return anchors(page)


def test_every_page_is_in_the_table_of_contents():
    contents = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w/]+)$", contents, re.M))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed


def test_the_entry_to_cite_names_this_version():
    page = (ROOT / "docs/cite.md").read_text(encoding="utf-8")
    assert f"version = {{{mercer.__version__}}}" in page
