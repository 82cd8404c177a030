"""Card of `lfw`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="lfw",
    title="Labeled Faces in the Wild, woman or man: photographs, grey 62×47, with attributes",
    n_train=9256,
    n_test=3968,
    licence="research use; no licence is granted on the photographs",
    files=(
        File(
            name="lfw_62x47.npz",
            shape=(1, 62, 47),
            n_classes=2,
            sha256="17753cda428b91a12440345da16c68a9346ed7631bfec106f25ca3b95f1d674a",
            source="LFW, all 13233 images in an aligned grey version, with label lists of others for gender, race and "
            "smile; new split, by person",
            lacks="9 of 13233 images are left out, their gender is unknown",
        ),
    ),
    blind_auc=0.57,
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.lfw:lfw",
    version=2,
    paper="Labeled Faces in the Wild: A Database for Studying Face Recognition in Unconstrained Environments",
    authors="Huang, Ramesh, Berg, Learned-Miller",
    year=2007,
    url="http://vis-www.cs.umass.edu/lfw/",
    departures=(
        "DBCL (Zhang, Wang 2021) has colour images of 64×47 and 8,150 faces for training, 3,400 for testing, of which "
        "it does not say how they were chosen. Here images are grey, of 62×47, and all whose gender is known.",
        "Melis et al. 2019, whom DBCL follows, take race from automatic scores of all images. Here it comes from a "
        "list of people, which knows 866 of 5749: 178 images are `black`, 3432 not, 9614 unknown.",
    ),
    facts=(
        *SPEC.facts(),
        ("labels", "0 female, 1 male; 78 % of the images are of men, in both parts"),
        (
            "attributes",
            "black, asian (east Asian), white: the race list's african, eastasian, caucasian, not known of 73 % of the "
            "images; smile: not known of 71 %",
        ),
        (
            "images with and without, training + testing",
            "black 125 and 2401 + 53 and 1031; asian 40 and 2486 + 18 and 1066; white 1894 and 632 + 812 and 272; "
            "smile 1288 and 1368 + 577 and 545",
        ),
        (
            "split",
            "About 70/30 and by person: 4009 people for training, 1734 others for testing, by a fixed seed. The shares "
            "of every race by gender are equal, so that `black` is as frequent in both parts (1.3 %; 4.9 % of those "
            "whose race is known).",
        ),
        (
            "few people",
            "the 125 training images that are `black` show 36 people, 52 of them one; an attack that finds the "
            "attribute may have found that person",
        ),
        (
            "origin",
            "aligned images of baileyfriend/Gender-Image-Classifier (GitHub), box [70:195, 78:172], scaled by one "
            "half; gender lists of Lukeli0425/Gender-Classification, believed to be those of Afifi and Abdelhamed "
            "2017; race list of usc-sail/mica-race-from-face (MIT); smile list of yusuke-morishita/lecture",
        ),
        (
            "care",
            "real people, who were not asked. Gender and race are other people's judgements, and two values of the one "
            "and six of the other describe no person well. For research on what leaks; show no more faces than that "
            "needs",
        ),
    ),
    usual=(("model", "cnn-lfw"),),
)
