"""Which options of the two-stage protocol contradict each other, or would do nothing."""

from __future__ import annotations

from fedarena.core.errors import UserError
from fedarena.defenses.two_stage.card import Options

OF_FIRST_STAGE, OF_SECOND_STAGE = ("norm_sds", "level"), ("aux_per_class", "aux_dataset")
"""Options that only one of the stages reads."""


def check(options: Options, first_stage: bool, noisy: bool) -> None:
    """Refuse options that contradict each other or would do nothing. Raises UserError.

    Args:
        options: the protocol's.
        first_stage: whether stage one is run.
        noisy: whether clients add noise.
    """
    if first_stage and not noisy:
        raise UserError(
            "defense two-stage: option 'epsilon' is none, allowed: a number, unless first_stage=false (stage one "
            "tests for the noise)"
        )
    if not first_stage:
        _refuse_changed(options, OF_FIRST_STAGE, "first_stage")
    if not options.second_stage:
        _refuse_changed(options, OF_SECOND_STAGE, "second_stage")
        _check_without_second(options, first_stage)


def _refuse_changed(options: Options, names: tuple[str, ...], stage: str) -> None:
    """Refuse options of a stage that is off."""
    defaults = type(options)()
    for name in names:
        if getattr(options, name) != getattr(defaults, name):
            raise UserError(
                f"defense two-stage: option '{name}' is {getattr(options, name)}, allowed where {stage} is off: "
                f"{getattr(defaults, name) or 'empty'}"
            )


def _check_without_second(options: Options, first_stage: bool) -> None:
    """Refuse what needs stage two."""
    if not first_stage:
        raise UserError(
            "defense two-stage: option 'second_stage' is false, allowed: true where first_stage is off; "
            "for neither use dp-sgd with bound=normalise,momentum=0.1"
        )
    if options.gamma is not None or options.variant == "code":
        raise UserError(
            "defense two-stage: option 'second_stage' is false, allowed: true with gamma or variant=code, "
            "which are about stage two"
        )
    if options.divisor != "rule":
        raise UserError(
            f"defense two-stage: option 'divisor' is {options.divisor}, allowed: rule, unless "
            "second_stage=true (stage one alone divides by all)"
        )
