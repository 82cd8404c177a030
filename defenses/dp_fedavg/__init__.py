"""DP-FedAvg (McMahan et al. 2018): bounded updates, and noise that a trusted server adds to their mean."""
