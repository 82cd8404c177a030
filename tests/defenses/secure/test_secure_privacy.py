"""What the server, the wire and colluding clients learn from the masking protocol, and what they do not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from helpers.secure import Play, play, secrets, uniform, without

from fedarena.contracts.secure_sum import TooFewSurvivors
from fedarena.core.rng import Rng
from fedarena.defenses.secure import shamir
from fedarena.defenses.secure.cards.pairwise_masks import Options
from fedarena.defenses.secure.client import Client, Refused
from fedarena.defenses.secure.fixed_point import FixedPoint
from fedarena.defenses.secure.graph import circles
from fedarena.defenses.secure.key_agreement import KeyPair
from fedarena.defenses.secure.messages import BOX, KEYS, pack, unpack
from fedarena.defenses.secure.pairwise import PairwiseMasks
from fedarena.defenses.secure.server import Server
from fedarena.defenses.secure.stream import Words, words

FAIR = 1e-3
"""p-values below it are called not uniform; the seeds are fixed, so that a test always comes out the same."""

D = 64


def vector(kind: str, n: int = 3) -> Words:
    """[n, D] words of which the first row is chosen to be seen through masks that are not uniform."""
    first = {"zero": np.zeros(D), "bound": np.full(D, 16.0), "comb": np.resize([16.0, -16.0], D)}[kind]
    return FixedPoint(64, 16.0, n).encode(np.concatenate([first[None], np.ones((n - 1, D))]))


def uploads(x: Words, seeds: range) -> Words:
    """The first client's upload in many rounds [rounds, D]."""
    return np.stack([play(x, 2, Rng(seed)).uploads[0] for seed in seeds])


# -- the server and the wire -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zero", "bound", "comb"])
def test_an_upload_is_uniform(kind: str) -> None:
    """Alone, between coordinates and between rounds; the same test tells bare encodings at once."""
    x = vector(kind)
    seen = uploads(x, range(150))
    assert uniform(seen) > FAIR
    assert uniform(seen[:, 1:] - seen[:, :-1]) > FAIR
    assert uniform(seen[1:] - seen[:-1]) > FAIR
    assert uniform(np.tile(x[0], (150, 1))) < 1e-100


@pytest.mark.parametrize("bits", [32, 64])
def test_all_rows_of_an_exchange_are_uniform(bits: int) -> None:
    x = torch.full((4, 5000), 0.25)
    wire = PairwiseMasks(Options(bits=bits))(x, Rng(0)).wire
    for row in wire:
        assert uniform(row.numpy()) > FAIR
    for one, other in combinations(wire, 2):
        assert uniform((one + other).numpy()) > FAIR
        assert uniform((one - other).numpy()) > FAIR


def test_masks_do_not_depend_on_the_vector() -> None:
    """With the same randomness, two vectors' uploads must differ by exactly the vectors' difference: masks that knew
    the vector could tell of it. So randomness must never be used twice: with fresh randomness the difference is
    uniform."""
    x, other = vector("zero"), vector("comb")
    for seed in range(5):
        one, two = play(x, 2, Rng(seed)).uploads, play(other, 2, Rng(seed)).uploads
        for u in range(3):
            np.testing.assert_array_equal(two[u] - one[u], other[u] - x[u])
    assert uniform(uploads(other, range(150)) - uploads(x, range(150, 300))) > FAIR
    assert uniform(uploads(other, range(20)) - uploads(x, range(20))) < 1e-100


def test_the_server_holds_what_it_was_sent() -> None:
    """Public keys, encrypted shares, masked vectors: none of the clients' secrets are among them, in any form."""
    x = vector("bound")
    done = play(x, 2, Rng(0))
    held = b"".join(
        [*done.server.keys.values(), *(b for sent in done.server.boxes.values() for b in sent.values())]
        + [y.tobytes() for y in done.server.uploads.values()]
    )
    for c in done.clients:
        assert c.sealing.public in held
        raw = [c.self_seed, c.sealing.private.private_bytes_raw(), c.masking.private.private_bytes_raw()]
        for secret in [*raw, *(share for two in c.shares.values() for share in two)]:
            assert secret not in held
    assert x[0].tobytes() not in held


def test_fewer_shares_than_the_threshold_unmask_nothing() -> None:
    """The server refuses; one that goes on with t − 1 shares gets something else than the sum."""
    x = vector("comb", 5)
    done = play(x, 4, Rng(0))
    revealed = {u: done.clients[u].reveal(done.alive[u]) for u in range(3)}
    with pytest.raises(TooFewSurvivors, match="3 clients answered the unmasking, allowed: at least 4"):
        done.server.total(revealed)
    done.server.threshold = 3
    try:
        guess = done.server.total(revealed)
    except OverflowError:  # what was joined is not even 32 bytes
        return
    assert (guess != x.sum(0, dtype=x.dtype)).all()


def test_whoever_reads_all_messages_learns_the_sum() -> None:
    """The unmasking's shares are in clear: a second server, fed with the messages alone, ends with the same total."""
    x = vector("comb", 4)
    done = play(x, 3, Rng(0), gone={1})
    revealed = {u: done.clients[u].reveal(done.alive[u]) for u in done.uploads}
    listener = Server(3, 64, done.server.circles)
    listener.roster(done.server.keys)
    listener.route({u: pack(sent) for u, sent in done.server.boxes.items()})
    listener.alive({u: y.tobytes() for u, y in done.uploads.items()})
    np.testing.assert_array_equal(listener.total(revealed), x[[0, 2, 3]].sum(0, dtype=x.dtype))


def test_no_secret_is_drawn_twice() -> None:
    """Nor are coefficients: shares of two secrets by one polynomial would differ by what the secrets differ by."""
    n, x = 4, vector("zero", 4)
    rounds = [play(x, 3, Rng(0).child(r)) for r in range(2)]
    everybody = [c for done in rounds for c in done.clients]
    raw = [
        secret
        for c in everybody
        for secret in (
            c.self_seed,
            c.sealing.private.private_bytes_raw(),
            c.masking.private.private_bytes_raw(),
        )
    ]
    assert len(set(raw)) == 3 * 2 * n
    for done in rounds:
        for owner in range(n):
            pairs = [[int.from_bytes(share, "little") for share in c.shares[owner]] for c in done.clients]
            assert len({(key - seed) % shamir.PRIME for key, seed in pairs}) == n


# -- colluding clients -----------------------------------------------------------------------------


def unmask(done: Play, victim: int, members: list[Client]) -> Words:
    """What members make of a victim's upload with their shares of its secrets: right if there are t of them."""
    key, seed = secrets(members, victim)
    publics = {c.index: c.masking.public for c in done.clients if c.index != victim}
    bare = without(done.uploads[victim], victim, KeyPair.of(key), publics)
    return bare - words(seed, len(bare), 64)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_all_but_one_learn_the_last_vector_from_the_sum(n: int) -> None:
    """It is the law of any sum."""
    x = vector("comb", n)
    total = play(x, n // 2 + 1, Rng(0)).total()
    for victim in range(n):
        own = np.delete(x, victim, 0).sum(0, dtype=x.dtype)
        np.testing.assert_array_equal(total - own, x[victim])


@pytest.mark.parametrize(("n", "t"), [(4, 3), (6, 4), (7, 4)])
def test_as_many_as_the_threshold_unmask_any_upload(n: int, t: int) -> None:
    """Without the server's help, from the wire and their shares; n − 1 of them in particular."""
    x = vector("comb", n)
    done = play(x, t, Rng(0))
    members = done.clients[n - t :]
    for victim in range(n - t):
        np.testing.assert_array_equal(unmask(done, victim, members), x[victim])
        assert (unmask(done, victim, members[1:]) != x[victim]).all()


def test_fewer_learn_the_sum_of_the_others_only() -> None:
    """n − 2 colluders, fewer than t, together with the server: what is left of either honest upload, once all that
    they know is taken away, is uniform, and the two add up to the two vectors' sum."""
    x, left = vector("comb", 4), []
    for seed in range(150):
        done = play(x, 3, Rng(seed))
        known = {c.index: c.masking for c in done.clients[2:]}
        bare = []
        for victim in (0, 1):
            y = done.uploads[victim] - words(done.clients[victim].self_seed, D, 64)  # b, which the unmasking reveals
            for v, pair in known.items():  # a colluder v > victim added what the victim subtracted
                y = y - without(np.zeros_like(y), v, pair, {victim: done.clients[victim].masking.public})
            bare.append(y)
        np.testing.assert_array_equal(bare[0] + bare[1], x[0] + x[1])
        left.append(bare[0])
    assert uniform(np.stack(left)) > FAIR


# -- a server that lies ----------------------------------------------------------------------------


def joined(shares: dict[int, bytes]) -> int:
    points = {u + 1: int.from_bytes(share, "little") for u, share in shares.items()}
    return shamir.join(points, shamir.weights(points))


def test_a_client_gives_a_share_of_either_secret_and_never_of_both() -> None:
    """The server claims that client 0 dropped, although its masked vector arrived: it gets shares of its key, which
    take off the pairwise masks, and the self mask stays."""
    x = vector("comb", 5)
    done = play(x, 3, Rng(0))
    lie = pack(dict.fromkeys(range(1, 5), b""))
    answers = {u: unpack(done.clients[u].reveal(lie), shamir.SHARE) for u in range(1, 5)}
    for u, answer in answers.items():
        assert answer[0] == done.clients[u].shares[0][0] != done.clients[u].shares[0][1]
        assert answer[1] == done.clients[u].shares[1][1] != done.clients[u].shares[1][0]
        with pytest.raises(Refused, match="reveal is asked for after reveal, and comes once"):
            done.clients[u].reveal(done.alive[u])
    key = joined({u: answer[0] for u, answer in answers.items() if u <= 3}).to_bytes(32, "little")
    publics = {c.index: c.masking.public for c in done.clients[1:]}
    bare = without(done.uploads[0], 0, KeyPair.of(key), publics)
    np.testing.assert_array_equal(bare - words(done.clients[0].self_seed, D, 64), x[0])
    assert (bare != x[0]).all()
    assert uniform(bare) > FAIR


@pytest.mark.parametrize("colluders", [0, 1])
def test_telling_two_stories_takes_colluders(colluders: int) -> None:
    """The server tells some that client 0 is alive and the others that it is gone. A majority as threshold keeps one
    of the two secrets, as long as 2t > n + colluders; a colluder gives both of its shares."""
    n, t, x = 5, 3, vector("comb", 5)
    for size in range(n + 1):
        done = play(x, t, Rng(size))
        lie = pack(dict.fromkeys(range(1, 5), b""))
        of_seed, of_key = {}, {}
        for c in done.clients:
            if c.index >= n - colluders:
                of_key[c.index], of_seed[c.index] = c.shares[0]
            elif c.index < size or c.index == 0:  # client 0 itself would not believe that it is gone
                of_seed[c.index] = unpack(c.reveal(done.alive[c.index]), shamir.SHARE)[0]
            else:
                of_key[c.index] = unpack(c.reveal(lie), shamir.SHARE)[0]
        target = done.clients[0]
        got_seed = joined(of_seed) == int.from_bytes(target.self_seed, "little")
        got_key = joined(of_key) == int.from_bytes(target._masking_raw, "little")
        assert (got_seed, got_key) == (len(of_seed) >= t, len(of_key) >= t)
        assert (got_seed and got_key) == (colluders == 1 and size == 2)


def test_clients_refuse_what_breaks_the_protocol() -> None:
    x = vector("zero", 4)

    def started() -> tuple[list[Client], dict[int, bytes]]:
        clients = [Client(u, row, 3, Rng(0).child(u)) for u, row in enumerate(x)]
        return clients, {c.index: c.advertise() for c in clients}

    clients, keys = started()
    with pytest.raises(Refused, match="upload is asked for after advertise"):
        clients[0].upload(b"")
    with pytest.raises(Refused, match="2 clients on the roster, fewer than the threshold of 3"):
        clients[0].share(pack({u: keys[u] for u in (0, 1)}))
    with pytest.raises(Refused, match="another key for this client"):
        clients[1].share(pack({**keys, 1: bytes(KEYS)}))
    with pytest.raises(Refused, match="a key twice"):
        clients[2].share(pack({**keys, 3: keys[0]}))

    clients, keys = started()
    server = Server(3, 64, circles(4, 0, Rng(0)))
    roster = server.roster(keys)
    routed = server.route({c.index: c.share(roster[c.index]) for c in clients})
    swapped = unpack(routed[0], BOX)
    with pytest.raises(Refused, match="that client 1 did not encrypt for this one"):
        clients[0].upload(pack({1: swapped[2], 2: swapped[1], 3: swapped[3]}))
    with pytest.raises(Refused, match="not on the roster"):
        clients[1].upload(pack({7: swapped[2]}))
    with pytest.raises(Refused, match="2 clients that shared their keys, fewer than the threshold of 3"):
        clients[2].upload(pack({1: unpack(routed[2], BOX)[1]}))
    clients[3].upload(routed[3])
    with pytest.raises(Refused, match="alive that shared no keys"):
        clients[3].reveal(pack(dict.fromkeys(range(5), b"")))

    done = play(x, 3, Rng(0))
    with pytest.raises(Refused, match="2 clients alive, fewer than the threshold of 3"):
        done.clients[0].reveal(pack({0: b"", 1: b""}))
