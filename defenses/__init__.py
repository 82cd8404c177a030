"""Defenses: one protocol a file. A name's card is light; its protocol is imported on use."""

CARDS = {
    "baffle": "fedarena.defenses.cards.baffle:CARD",
    "dbcl": "fedarena.defenses.cards.dbcl:CARD",
    "dp-sgd": "fedarena.defenses.cards.dp_sgd:CARD",
    "fedavg": "fedarena.defenses.cards.fedavg:CARD",
    "pbpfl": "fedarena.defenses.cards.pbpfl:CARD",
    "two-stage": "fedarena.defenses.cards.two_stage:CARD",
    "two-stage-hardened": "fedarena.defenses.cards.two_stage_hardened:CARD",
}
