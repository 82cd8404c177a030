"""The law of boards: a defense that is worth nothing never stands above a sound one."""

from __future__ import annotations

import pytest
from helpers.degenerate import CLASSES, installed
from helpers.suite import measure

from fedarena.board import markdown
from fedarena.board.board import Board
from fedarena.board.frame import to_csv
from fedarena.board.leaderboard import render
from fedarena.board.load import load_board
from fedarena.board.page import html
from fedarena.board.ranking import RankingRow, rank_defenses

SOUND = ("two-stage", "dp-sgd", "nnm+krum")

SUITE = f"""
seeds = [0]

[problems.upload]
dataset = "digits"
model = "mlp"
clients = 4
model_options = {{ widths = [32] }}
training = {{ rounds = 150, batch_size = 1, lr = 0.1 }}
utility = false

[problems.poison]
dataset = "digits"
model = "mlp"
clients = 20
corrupted = 4
partition = "similarity"
partition_options = {{ share = 0.4 }}
model_options = {{ widths = [32] }}
training = {{ rounds = 60, batch_size = 16, lr = 0.5, eval_every = 5 }}

[problems.members]
dataset = "digits"
model = "mlp"
clients = 6
partition = "few"
partition_options = {{ samples = 20 }}
model_options = {{ widths = [32] }}
training = {{ rounds = 50, batch_size = 16, lr = 0.2 }}
utility = false

[methods.two-stage]
epsilon = 8

[methods.dp-sgd]
epsilon = 8

[methods.sign-flip]
tune = 2
tune_rounds = 20

[methods.gradient-ascent]
tune = 2
tune_rounds = 20

[methods.analytic]
victims = 3

[methods.upload-regression]
rounds = 10

[methods.last-layer-label]
rounds = 4

[[matrix]]
problem = "upload"
defenses = {["fedavg", *SOUND, *CLASSES]}
attacks = ["analytic", "last-layer-label"]
parties = ["server"]

[[matrix]]
problem = "members"
defenses = {["fedavg", *SOUND, *CLASSES]}
attacks = ["upload-regression"]
parties = ["server"]
forms = ["adaptive"]

[[matrix]]
problem = "poison"
defenses = {["fedavg", *SOUND, *CLASSES]}
attacks = ["sign-flip", "gradient-ascent"]

[[matrix]]
problem = "poison"
defenses = {["fedavg", *SOUND, *CLASSES]}
attacks = ["last-layer-label"]
parties = ["server"]
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    where = tmp_path_factory.mktemp("degenerate")
    with installed(where / "package"):
        assert measure(SUITE, where).lost == {}
        return load_board(where / "out")


@pytest.fixture(scope="module")
def rows(board: Board) -> dict[str, RankingRow]:
    """The ranking, in its order."""
    return {row.defense: row for row in rank_defenses(board)}


@pytest.mark.parametrize("name", CLASSES)
def test_it_stands_below_every_sound_defense(rows: dict[str, RankingRow], name: str) -> None:
    order = list(rows)
    assert all(rows[sound].rank for sound in SOUND)
    assert order.index(name) > max(order.index(sound) for sound in SOUND), order


def test_a_server_that_ignores_its_clients_trains_and_has_no_rank(board: Board, rows: dict[str, RankingRow]) -> None:
    (run,) = [r for r in board.clean_runs if r.defense == "ignores-clients" and r.problem == "poison"]
    assert run.accuracy[0] > 0.5
    assert rows["ignores-clients"].rank is None
    assert rows["ignores-clients"].utility.level < 0.1
    assert "empty: what clients send does not depend on their samples" in rows["ignores-clients"].unranked


@pytest.mark.parametrize("name", ["constant-model", "drops-uploads", "random-labels"])
def test_it_has_no_utility_whatever_its_accuracy(rows: dict[str, RankingRow], name: str) -> None:
    assert rows[name].utility.level == 0.0


def test_who_is_silent_in_small_federations_leaks_in_the_large_one(board: Board, rows: dict[str, RankingRow]) -> None:
    row = rows["silent-when-few"]
    private = [c for c in board.cells if c.defense == row.defense and c.axis == "privacy"]
    small = [score for c in private if c.problem != "poison" for score in c.scores.values()]
    assert len(small) == 3
    assert min(small) > 0.9
    assert row.utility.level == 1.0
    assert row.privacy.level < 0.2


@pytest.mark.parametrize("name", ["silent", "misleading"])
def test_it_has_no_rank_if_it_hides_what_its_messages_tell(
    board: Board, rows: dict[str, RankingRow], name: str
) -> None:
    assert rows[name].rank is None
    assert rows[name].privacy.value is None
    for what in ("samples", "labels", "who is in a client's data set"):
        reason = f"{name}: a control reading of the same messages leaks {what}"
        assert reason in rows[name].unranked
        assert reason in to_csv(board)
        assert reason in html.page(board)
        assert reason in markdown.page(render(board))


def test_a_public_code_stops_no_one_who_runs_the_client_step(board: Board, rows: dict[str, RankingRow]) -> None:
    left = {
        c.attack: score
        for c in board.cells
        if c.defense == "checksum" and c.axis == "integrity"
        for score in c.scores.values()
    }
    assert left["sign-flip"] > 0.9
    assert left["gradient-ascent"] < 0.1
    assert rows["checksum"].integrity.level < 0.1


@pytest.mark.parametrize("name", ["round-pad", "round-order", "key-from-upload"])
def test_what_the_server_takes_off_hides_nothing(rows: dict[str, RankingRow], name: str) -> None:
    assert rows[name].privacy.level < 0.05


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("few-and-labels", "empty: what clients send does not depend on their samples"),
        ("silent-when-few", "empty: what clients send does not depend on their samples"),
        ("key-inside", "unexplained: no reading holds what clients add to messages, and no promise"),
    ],
)
def test_a_message_that_is_empty_or_unexplained_has_no_rank(
    rows: dict[str, RankingRow], name: str, reason: str
) -> None:
    assert rows[name].rank is None
    assert reason in rows[name].unranked


def test_no_other_defense_is_said_to_hide_anything(board: Board) -> None:
    hiding = {c.defense for c in board.cells if c.excluded.startswith(("silent", "misleading"))}
    assert hiding == {"silent", "misleading"}
