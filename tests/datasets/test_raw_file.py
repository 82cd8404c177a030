"""Raw files come over https alone, go on after a break, and are used only with the checksum that is known of them."""

from __future__ import annotations

import hashlib
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pytest
from helpers.web import Web

from fedarena.datasets import raw_file
from fedarena.datasets.raw_file import TRIES, RawFile, download

CONTENT = bytes(range(256)) * 1000


def of(web: Web, **changes: object) -> RawFile:
    web.files["raw.gz"] = CONTENT
    known = {"url": web.url("raw.gz"), "most": len(CONTENT), "checksum": hashlib.sha256(CONTENT).hexdigest()}
    return RawFile(**(known | changes))  # type: ignore[arg-type]


def test_a_file_arrives_whole(web: Web, tmp_path: Path) -> None:
    assert download(of(web), tmp_path).read_bytes() == CONTENT
    assert web.ranges == [""]
    assert download(of(web, checksum=hashlib.md5(CONTENT).hexdigest()), tmp_path).name == "raw.gz"


def test_a_broken_connection_goes_on_where_it_broke(web: Web, tmp_path: Path) -> None:
    web.breaks = [100_000, 50_000]
    assert download(of(web), tmp_path).read_bytes() == CONTENT
    assert web.ranges == ["", "bytes=100000-", "bytes=150000-"]


def test_a_server_that_cannot_go_on_sends_all_again(web: Web, tmp_path: Path) -> None:
    web.breaks, web.resumes = [100_000], False
    assert download(of(web), tmp_path).read_bytes() == CONTENT


def test_a_server_that_refuses_to_go_on_is_asked_for_all_again(web: Web, tmp_path: Path) -> None:
    web.breaks, web.refuses = [100_000], True
    assert download(of(web), tmp_path).read_bytes() == CONTENT
    assert web.ranges == ["", "bytes=100000-", ""]


def test_a_connection_that_always_breaks_leaves_nothing(web: Web, tmp_path: Path) -> None:
    web.breaks = [10] * TRIES
    with pytest.raises(OSError, match=r"raw\.gz: the connection broke after 40 of 256000 bytes"):
        download(of(web), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "tries"), [(403, 1), (404, 1), (410, 1), (408, TRIES), (429, TRIES), (500, TRIES), (503, TRIES)]
)
def test_what_is_refused_for_good_is_asked_for_once(
    code: int, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RawFile] = []

    def refuse(raw: RawFile, path: Path) -> None:
        asked.append(raw)
        raise HTTPError(raw.url, code, "refused", Message(), None)

    monkeypatch.setattr(raw_file, "_go_on", refuse)
    with pytest.raises(OSError, match=rf"raw\.gz: HTTP Error {code}: refused"):
        download(RawFile("https://localhost/raw.gz", 1, None), tmp_path)
    assert len(asked) == tries


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"most": len(CONTENT) - 1}, r"is longer than the 255999 bytes"),
        ({"checksum": "0" * 64}, r"has sha256 [0-9a-f]{64}, expected 0{64}"),
        ({"checksum": "0" * 32}, r"has md5 [0-9a-f]{32}, expected 0{32}"),
        ({"url": "http://localhost/raw.gz"}, r"http://localhost/raw\.gz is not https"),
        ({"url": "file:///etc/passwd"}, r"file:///etc/passwd is not https"),
    ],
)
def test_other_content_and_other_ways_are_refused(
    changes: dict[str, object], words: str, web: Web, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=words):
        download(of(web, **changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_redirect_stays_on_https(web: Web, tmp_path: Path) -> None:
    web.moved = {"old": web.url("raw.gz"), "plain": f"http://localhost:{web.port}/raw.gz"}
    assert download(of(web, url=web.url("old")), tmp_path).read_bytes() == CONTENT
    with pytest.raises(ValueError, match=r"http://localhost:\d+/raw\.gz is not https"):
        download(of(web, url=web.url("plain")), tmp_path)


def test_a_certificate_that_nobody_trusts_is_refused(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OSError, match="certificate verify failed"):
        download(of(web), tmp_path)
