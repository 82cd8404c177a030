"""Raw files from the web: over https alone, resumed after a break, and held to a checksum before they are used."""

from __future__ import annotations

import hashlib
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError

TRIES = 4
CHUNK = 1 << 16
PARTIAL_CONTENT, RANGE_REFUSED = 206, 416
PASSING = {408, RANGE_REFUSED, 425, 429}
"""What a server refuses (4xx) and may grant later: too slow, this range, too early, too many requests."""


@dataclass(frozen=True)
class RawFile:
    """A file on the web whose content is known.

    Attributes:
        url: its address, https.
        most: its size in bytes, or an upper bound; a longer answer is refused.
        checksum: hexadecimal sha256, or md5 where nobody publishes a sha256; None if the caller holds what is packed in
            the file to a checksum.
    """

    url: str
    most: int
    checksum: str | None

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[-1]


class _HttpsAlone(urllib.request.HTTPRedirectHandler):
    """Refuses to be sent on to an address that is not https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def download(raw: RawFile, folder: Path) -> Path:
    """Download a file into `folder` and hold it to its checksum.

    Raises:
        OSError: no network, a connection that breaks again and again, or a server that refuses the file.
        ValueError: an address that is not https, a file that is too long or has another checksum; nothing is left.
    """
    _require_https(raw.url)
    path = folder / raw.name
    try:
        _complete(raw, path)
        _verify(raw, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _complete(raw: RawFile, path: Path) -> None:
    """Download all of a file; each try goes on where the last one broke. Raises the last try's error.

    What a server refuses for good, such as a file that is not there, is not asked for again.
    """
    path.write_bytes(b"")
    for left in reversed(range(TRIES)):
        try:
            _go_on(raw, path)
            return
        except (OSError, HTTPException) as error:
            code = error.code if isinstance(error, HTTPError) else None
            if not left or (code is not None and code < 500 and code not in PASSING):
                raise OSError(f"{raw.url}: {error}") from error
            if code == RANGE_REFUSED:
                path.write_bytes(b"")


def _go_on(raw: RawFile, path: Path) -> None:
    """Append what is missing; from the beginning where the server does not go on. Raises OSError, ValueError."""
    have = path.stat().st_size
    request = urllib.request.Request(raw.url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.build_opener(_HttpsAlone).open(request) as answer:
        resumed = answer.status == PARTIAL_CONTENT
        total = (have if resumed else 0) + int(answer.headers.get("Content-Length") or 0)
        with path.open("ab" if resumed else "wb") as file:
            _copy(answer, file, raw)
        if path.stat().st_size < total:
            raise OSError(f"the connection broke after {path.stat().st_size} of {total} bytes")


def _copy(answer: Any, file: IO[bytes], raw: RawFile) -> None:
    while chunk := answer.read(CHUNK):
        if file.tell() + len(chunk) > raw.most:
            raise ValueError(f"{raw.url} is longer than the {raw.most} bytes that are known of it")
        file.write(chunk)


def _verify(raw: RawFile, path: Path) -> None:
    """Hold a file to its checksum. Raises ValueError."""
    if raw.checksum is None:
        return
    kind = "sha256" if len(raw.checksum) == hashlib.sha256().digest_size * 2 else "md5"
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, kind).hexdigest()
    if digest != raw.checksum:
        raise ValueError(f"{raw.url} has {kind} {digest}, expected {raw.checksum}")


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        raise ValueError(f"{url} is not https")
