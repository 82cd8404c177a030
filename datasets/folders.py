"""The folders of data files.

A file is searched in this order, and the first hit is used:
    1. the folder given as `data_dir` (`--data-dir`)
    2. the folder named by the environment variable FEDARENA_DATA
    3. the cache folder: FEDARENA_CACHE, else the user's cache folder of this platform
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fedarena.core.errors import UserError

DATA = "FEDARENA_DATA"
CACHE = "FEDARENA_CACHE"


def cache_folder() -> Path:
    """The folder that downloads go to; it need not exist yet."""
    given = os.environ.get(CACHE)
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("fedarena", appauthor=False))


def search_path(data_dir: Path | None = None) -> tuple[Path, ...]:
    """The folders to search, in order. Raises UserError if a path that the user gave is not a folder."""
    places = [("option '--data-dir'", data_dir)]
    if os.environ.get(DATA):
        places.append((f"environment variable {DATA}", Path(os.environ[DATA])))
    folders: list[Path] = []
    for owner, path in places:
        if path is None:
            continue
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise UserError(
                f"{owner} is '{path}', which is not a folder: expected the folder that holds the .npz files"
            )
        folders.append(folder)
    return (*folders, cache_folder())


def find(names: Iterable[str], data_dir: Path | None = None) -> Path | None:
    """The first file of one of these names on the search path; None when there is none. Raises UserError."""
    wanted = tuple(names)
    for folder in search_path(data_dir):
        for name in wanted:
            if (folder / name).exists():
                return folder / name
    return None
