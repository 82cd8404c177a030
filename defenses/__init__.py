"""Defenses, in a folder for each protocol. A name's card is light; the protocol is imported when it is used."""

CARDS = {
    "ats": "fedarena.defenses.ats.card:CARD",
    "baffle": "fedarena.defenses.baffle.card:CARD",
    "censor": "fedarena.defenses.censor.card:CARD",
    "dbcl": "fedarena.defenses.dbcl.card:CARD",
    "dp-fedavg": "fedarena.defenses.dp_fedavg.card:CARD",
    "dp-rsa": "fedarena.defenses.dp_rsa.card:CARD",
    "dp-sgd": "fedarena.defenses.dp_sgd.card:CARD",
    "fedavg": "fedarena.defenses.fedavg.card:CARD",
    "fedzo": "fedarena.defenses.fedzo.card:CARD",
    "fetchsgd": "fedarena.defenses.fetchsgd.card:CARD",
    "gradient-noise": "fedarena.defenses.gradient_noise.card:CARD",
    "pbpfl": "fedarena.defenses.pbpfl.card:CARD",
    "precode": "fedarena.defenses.precode.card:CARD",
    "pruning": "fedarena.defenses.pruning.card:CARD",
    "qsgd": "fedarena.defenses.qsgd.card:CARD",
    "sign-dp": "fedarena.defenses.sign_dp.card:CARD",
    "sign-sgd": "fedarena.defenses.sign_sgd.card:CARD",
    "soteria": "fedarena.defenses.soteria.card:CARD",
    "two-stage": "fedarena.defenses.two_stage.card:CARD",
    "two-stage-hardened": "fedarena.defenses.two_stage.hardened_card:CARD",
}
