"""FedZO (Fang et al. 2022): local steps on gradients estimated from losses alone, without shared directions."""
