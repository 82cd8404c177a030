"""A defense as a function: clients send noisy signs of their gradients."""

import fedarena as fa


@fa.defense("short-signs", title="Signs of gradients with noise")
def signs(upload, noise):  # upload [d]: FedAvg's; noise [d]: standard normal
    return 0.01 * (upload.sign() + 0.1 * noise)
