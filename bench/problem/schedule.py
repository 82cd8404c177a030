"""How a federation trains: rounds, batches, local work and optimisers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from fedarena.core.errors import UserError
from fedarena.core.options import option


@dataclass(frozen=True)
class Schedule:
    """The training schedule; each field is an option `--set training.NAME=VALUE`.

    FedSGD (`local_epochs=0`): each sampled client sends the gradient of one batch, and the server
    steps with learning rate `lr`·`server_lr`. FedAvg (`local_epochs≥1`): each sampled client takes
    local steps with learning rate `lr` and sends start − end; the server steps along the average
    with learning rate `server_lr` (McMahan et al. 2017). Averages are weighted by N_c/N.

    FedSGD with `client_optimizer=momentum`: each sampled client sends m ← β·m + c·g in place of g, with c = 1 (`sum`)
    or 1 − β (`ema`), and keeps m until its next round (`fedarena.problem.client_steps.momentum`).
    """

    rounds: int = option(1000, "communication rounds", low=1)
    loss: str = option(
        "cross-entropy",
        "cross-entropy; mse: half the squared error to one-hot labels; regression: one output, half its squared error",
        choices=("cross-entropy", "mse", "regression"),
    )
    batch_size: int = option(1, "samples per local step and client", low=1)
    local_epochs: int = option(0, "0: FedSGD, one gradient a round; else FedAvg with that many local epochs", low=0)
    local_samples: int | None = option(
        None, "samples that a client works on in a round of local epochs, at most; none: all that it holds", low=1
    )
    participation: float = option(1.0, "share of clients sampled each round", above=0, high=1)
    lr: float = option(0.3, "learning rate of gradient steps (FedSGD: the server's, FedAvg: the clients')", above=0)
    client_optimizer: str = option(
        "sgd",
        "optimiser of local steps; momentum with local-epochs 0: a client sends its momentum in place of its gradient",
        choices=("sgd", "momentum", "adam"),
    )
    momentum: float = option(
        0.9, "β, the momentum of clients", low=0, below=1, acts_with=("client_optimizer", "momentum")
    )
    momentum_form: str = option(
        "sum",
        "sum: m ← β·m + g, as in PyTorch; ema: m ← β·m + (1 − β)·g, as in ByzFL",
        choices=("sum", "ema"),
        acts_with=("client_optimizer", "momentum"),
        listed=False,
    )
    server_optimizer: str = option("sgd", "optimiser of the server's step", choices=("sgd", "adam"))
    server_lr: float = option(1.0, "factor on the server's step", above=0)
    adam_beta2: float = option(0.999, "decay of Adam's second moment, clients' and server's", low=0, below=1)
    weight_decay: float = option(
        0.0,
        "λ: whoever takes a gradient step (FedSGD: the server, FedAvg: the clients) adds λ·W to the gradient",
        low=0,
        listed=False,
    )
    lr_schedule: str = option(
        "constant",
        "how lr changes from round to round; steps: times lr_gamma at each of lr_steps; cosine: times (1 + cos πt/T)/2",
        choices=("constant", "steps", "cosine"),
        listed=False,
    )
    lr_steps: tuple[float, ...] = option(
        (0.3, 0.6, 0.8),
        "shares of the rounds after which lr is multiplied by lr_gamma",
        above=0,
        below=1,
        acts_with=("lr_schedule", "steps"),
        listed=False,
    )
    lr_gamma: float = option(
        0.1, "factor on lr at each of lr_steps", above=0, below=1, acts_with=("lr_schedule", "steps"), listed=False
    )
    warmup: float = option(
        0.0,
        "share of the rounds, at the beginning, in which lr grows in proportion to the round",
        low=0,
        below=1,
        listed=False,
    )
    augment: tuple[str, ...] = option(
        (),
        "random changes of training images; crop: shifted by up to 4 pixels; flip: mirrored half of the time; jitter: "
        "brightness, contrast and saturation times 0.6 to 1.4",
        choices=("crop", "flip", "jitter"),
        listed=False,
    )
    batch_statistics: bool = option(
        False,
        "each client sends beside its gradient the means and variances that batch normalisation took of its batch, as "
        "running statistics show them",
        acts_with=("local_epochs", 0),
        listed=False,
    )
    client_memory: float | None = option(
        None, "memory of a client in MB (10^6 bytes), below which protocols that can do so slice its work", above=0
    )
    eval_every: int = option(
        0, "evaluate every k rounds; 0: at the end only; unless given, 20 times where clients are corrupted", low=0
    )

    @property
    def fedsgd(self) -> bool:
        """One gradient a round instead of local training."""
        return self.local_epochs == 0

    @property
    def client_momentum(self) -> bool:
        """Whether clients send momenta of the gradients of several rounds, and not the gradient of one."""
        return self.fedsgd and self.client_optimizer == "momentum"

    @property
    def fresh_share(self) -> float:
        """c, the factor of the newest gradient in a momentum: 1, or 1 − β."""
        return 1.0 - self.momentum if self.momentum_form == "ema" else 1.0

    def at(self, share: float) -> float:
        """The round at which a share of the rounds is over; rounded, because .07·100 is above 7 in binary fractions."""
        return round(share * self.rounds, 9)

    def in_round(self, t: int) -> Self:
        """The schedule with the learning rate of round t (from 0) in place of the changing one; itself if none changes.

        The rate is lr times two factors: min(1, (t + 1)/⌈warmup·T⌉), and that of `lr_schedule`.
        """
        if self.lr_schedule == "constant" and not self.warmup:
            return self
        factor = min(1.0, (t + 1) / max(1, math.ceil(self.at(self.warmup))))
        if self.lr_schedule == "cosine":
            factor *= (1 + math.cos(math.pi * t / self.rounds)) / 2
        elif self.lr_schedule == "steps":
            factor *= self.lr_gamma ** sum(t >= self.at(share) for share in self.lr_steps)
        usual = Schedule()
        return replace(
            self,
            lr=self.lr * factor,
            lr_schedule=usual.lr_schedule,
            lr_steps=usual.lr_steps,
            lr_gamma=usual.lr_gamma,
            warmup=usual.warmup,
        )

    @property
    def server_decay(self) -> float:
        """The λ of the server's steps: `weight_decay` where they are gradient steps, else 0."""
        return self.weight_decay if self.fedsgd else 0.0

    @property
    def step_size(self) -> float:
        """The server's learning rate on the averaged upload."""
        return self.lr * self.server_lr if self.fedsgd else self.server_lr

    def taken(self, size: int) -> int:
        """How many of its `size` samples a client's local work takes in a round: b, or an epoch's full batches."""
        if self.fedsgd:
            return self.batch_size
        return min(size, self.local_samples or size) // self.batch_size * self.batch_size

    def steps(self, size: int) -> int:
        """Local steps of a client with `size` samples: full batches only, ⌊N_c/b⌋ an epoch."""
        return 1 if self.fedsgd else self.local_epochs * (self.taken(size) // self.batch_size)

    def check(self, sizes: tuple[int, ...]) -> None:
        """Refuse settings that cannot run or would do nothing. Raises UserError."""
        smallest = min(sizes)
        if self.batch_size > smallest:
            client = sizes.index(smallest)
            raise UserError(
                f"option 'batch-size' is {self.batch_size}, but client {client} holds only {smallest} samples: "
                f"at most {smallest} is possible with this partition"
            )
        if self.adam_beta2 != 0.999 and "adam" not in (self.client_optimizer, self.server_optimizer):
            raise UserError(
                f"option 'adam_beta2' is {self.adam_beta2}, but neither client_optimizer nor server_optimizer is adam"
            )
        if self.warmup and self.at(self.warmup) <= 1:
            raise UserError(
                f"option 'warmup' is {self.warmup:g}, allowed with {self.rounds} rounds: 0, or more than one round's "
                f"share, {1 / self.rounds:.2g}"
            )
        if self.lr_schedule == "steps" and not self.lr_steps:
            raise UserError("option 'lr_steps' is empty, allowed with lr_schedule=steps: shares of the rounds")
        if self.local_samples is not None and self.fedsgd:
            raise UserError(
                f"option 'local_samples' is {self.local_samples}, but with local-epochs 0 a client takes one batch: "
                "set --local-epochs to 1 or more, or --batch-size"
            )
        if self.local_samples is not None and self.local_samples < self.batch_size:
            raise UserError(
                f"option 'local_samples' is {self.local_samples}, allowed: at least batch-size, {self.batch_size}"
            )
        self._check_momentum()

    def _check_momentum(self) -> None:
        """Refuse a client's optimiser that cannot be had in FedSGD, and a momentum without effect. Raises UserError."""
        if self.fedsgd and self.client_optimizer == "adam":
            raise UserError(
                "option 'client_optimizer' is adam, but with local-epochs 0 clients take no step of their own: set "
                "--local-epochs to 1 or more, or use server_optimizer; allowed with local-epochs 0: sgd, momentum"
            )
        if not self.momentum and (self.client_momentum or self.momentum_form != "sum"):
            raise UserError(
                "option 'momentum' is 0, with which client_optimizer=momentum and momentum_form do nothing: allowed "
                "here: above 0, or client_optimizer=sgd"
            )
