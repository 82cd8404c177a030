"""Attacks: one a file. A name's card is light; the attack is imported on use."""

CARDS = {
    "alie": "fedarena.attacks.cards.alie:CARD",
    "bank": "fedarena.attacks.cards.bank:CARD",
    "delayed": "fedarena.attacks.cards.delayed:CARD",
    "dlg": "fedarena.attacks.cards.dlg:CARD",
    "gaussian": "fedarena.attacks.cards.gaussian:CARD",
    "ipm": "fedarena.attacks.cards.ipm:CARD",
    "joint-membership": "fedarena.attacks.cards.joint_membership:CARD",
    "label-flip": "fedarena.attacks.cards.label_flip:CARD",
    "last-layer-label": "fedarena.attacks.cards.last_layer_label:CARD",
    "marginal-membership": "fedarena.attacks.cards.marginal_membership:CARD",
    "mimic": "fedarena.attacks.cards.mimic:CARD",
    "min-max": "fedarena.attacks.cards.min_max:CARD",
    "min-sum": "fedarena.attacks.cards.min_sum:CARD",
    "model-extraction": "fedarena.attacks.cards.model_extraction:CARD",
    "optimized": "fedarena.attacks.cards.optimized:CARD",
    "pixel-trigger": "fedarena.attacks.cards.pixel_trigger:CARD",
    "rank-map": "fedarena.attacks.cards.rank_map:CARD",
    "steer": "fedarena.attacks.cards.steer:CARD",
    "sign-flip": "fedarena.attacks.cards.sign_flip:CARD",
}
