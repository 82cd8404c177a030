"""FedSGD and FedAvg (McMahan et al. 2017): the federation without a defense."""
