"""Where the real data files are, and little files that look like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.paths import DATA
from helpers.web import Web, serving

from fedarena.datasets.npz import Array


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real files."""
    folder = DATA
    if not (folder / "usps.npz").is_file():
        pytest.skip(f"no data files in {folder}: set FEDARENA_DATA")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no other place to find data in."""
    folder = tmp_path / "cache"
    monkeypatch.delenv("FEDARENA_DATA", raising=False)
    monkeypatch.setenv("FEDARENA_CACHE", str(folder))
    return folder


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A web server on this machine, whose certificate is trusted."""
    with serving(tmp_path_factory.mktemp("web")) as (server, certificate):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        yield server


@pytest.fixture
def little() -> Callable[..., dict[str, Array]]:
    """Arrays of 20 + 10 random images; keyword arguments replace arrays, None removes one."""

    def make(*image: int, classes: int = 10, **changes: Array | None) -> dict[str, Array]:
        rng = np.random.default_rng(0)
        made = {
            "x_train": rng.integers(0, 256, (20, *image), dtype=np.uint8),
            "y_train": rng.integers(0, classes, 20),
            "x_test": rng.integers(0, 256, (10, *image), dtype=np.uint8),
            "y_test": rng.integers(0, classes, 10),
        }
        return {key: value for key, value in (made | changes).items() if value is not None}

    return make
