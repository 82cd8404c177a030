"""signSGD (Bernstein et al. 2018), with the length of Karimireddy et al. 2019: clients send signs."""
