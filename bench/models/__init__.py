"""Models: small modules that say how they are initialised."""

CARDS: dict[str, str] = {
    "cnn": "fedarena.models.cards.cnn:CARD",
    "cnn-bucketing": "fedarena.models.cards.cnn_bucketing:CARD",
    "cnn-cifar10": "fedarena.models.cards.cnn_cifar10:CARD",
    "cnn-lfw": "fedarena.models.cards.cnn_lfw:CARD",
    "cnn-mnist": "fedarena.models.cards.cnn_mnist:CARD",
    "cnn-pooled": "fedarena.models.cards.cnn_pooled:CARD",
    "cnn-two-stage": "fedarena.models.cards.cnn_two_stage:CARD",
    "lenet-baffle": "fedarena.models.cards.lenet_baffle:CARD",
    "lenet-dlg": "fedarena.models.cards.lenet_dlg:CARD",
    "mlp": "fedarena.models.cards.mlp:CARD",
    "mlp-two-stage": "fedarena.models.cards.mlp_two_stage:CARD",
    "mobilenet-head": "fedarena.models.cards.mobilenet_head:CARD",
    "resnet": "fedarena.models.cards.resnet:CARD",
    "vit": "fedarena.models.cards.vit:CARD",
    "transformer": "fedarena.models.cards.transformer:CARD",
    "wrn-10-2": "fedarena.models.cards.wrn:CARD",
}
