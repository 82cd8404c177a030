"""Attacks: one a file. A name's card is light; the attack is imported on use."""

CARDS = {
    "dlg": "fedarena.attacks.cards.dlg:CARD",
}
