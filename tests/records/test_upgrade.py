"""Records of schema 6 are read as records of the present schema, under the keys that they have always had."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedarena.cli import main
from fedarena.records.command import command_of
from fedarena.records.schema import SCHEMA
from fedarena.records.store import Store, read_record
from fedarena.records.trial_key import key_of, trial_key

FILE = Path(__file__).parent / "files" / "0043805be569f1d2788a.json"


def test_a_file_of_schema_6_is_read_and_has_its_key() -> None:
    old, record = json.loads(FILE.read_text()), read_record(FILE.read_bytes(), FILE.stem)
    assert record is not None
    assert (old["schema"], record["schema"]) == (6, SCHEMA)
    assert key_of(record) == old["key"] == FILE.stem
    assert trial_key(record) == old["trial"]["key"]
    assert record["attacker_knowledge"] == old["knows"] == "own"
    assert record["warnings"] == old["marks"]
    assert record["problem"]["assumed_corrupted"] == old["problem"]["belief"] == 4
    # What the model was compared with then is not what it is compared with now.
    assert record["utility"]["references"] == {}
    assert "relative" not in record["utility"]
    renamed = {"schema", "problem", "knows", "marks", "attacker_knowledge", "warnings", "sum", "utility"}
    assert {n: v for n, v in record.items() if n not in renamed} == {n: v for n, v in old.items() if n not in renamed}


def test_the_command_of_a_record_of_schema_6_makes_the_same_trial(tmp_path: Path) -> None:
    """Its key differs by the version of the judge alone."""
    record = read_record(FILE.read_bytes(), FILE.stem)
    assert record is not None
    words = command_of(record).split()
    assert main([*words[1:], "--jobs=1", "--quiet", f"--out={tmp_path}"]) == 0
    place: tuple[Any, ...] = ("defense", "attack", "party", "form", "attacker_knowledge", "seed")
    written = [read_record(path.read_bytes(), path.stem) for path in (tmp_path / "records").glob("*.json")]
    (again,) = [r for r in written if r is not None and [r[n] for n in place] == [record[n] for n in place]]
    assert {**again["versions"], "judge": 1} == {**record["versions"], "judge": 1}
    assert {name: again["metrics"][name] for name in record["metrics"]} == pytest.approx(record["metrics"], abs=0.1)


@pytest.mark.parametrize("field", ["knows", "marks", "problem", "seed"])
def test_a_file_of_schema_6_that_was_changed_is_damaged(field: str) -> None:
    content = {**json.loads(FILE.read_text()), field: 3}
    with pytest.raises(ValueError, match=r" is 3, |changed after it was written|not that of its content"):
        read_record(json.dumps(content).encode(), FILE.stem)
    del content[field]
    with pytest.raises(ValueError, match=r"it has no "):
        read_record(json.dumps(content).encode(), FILE.stem)


def test_a_board_says_that_an_earlier_version_measured_its_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records").mkdir()
    shutil.copy(FILE, tmp_path / "records")
    assert main(["leaderboard", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"1 record of a schema before {SCHEMA}, with the scores of the version that measured them" in told
    record = read_record(FILE.read_bytes(), FILE.stem)
    assert record is not None
    Store(tmp_path).add([record])  # as the present version writes it
    assert Store(tmp_path).notes() == []
